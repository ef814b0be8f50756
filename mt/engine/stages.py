"""Static memory for a batch, and the work of a step over it: model and search together."""

import torch
from torch import Tensor

from mt.decoding.beam import BeamSearch
from mt.decoding.constraints import Features
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.sampling import Filters, Sampling
from mt.kernels.graphs import Executor, Work
from mt.kernels.static import Shape, StaticDecoder, nbytes, reorder

Table = BeamSearch | Sampling


class Stage:
    """Static memory for sentences of one kind, and what a step over it does.

    A slot without a sentence runs like the others, with what it was made with or what was left in it: a search ends
    by itself, at the latest where its tables do, and nobody asks for its results.
    """

    def __init__(self, decoder: StaticDecoder, shape: Shape, beams: bool, special: SpecialIds) -> None:
        self.shape = shape
        self.beams = beams
        self.decoder = decoder
        self.memory = decoder.memory(shape)
        self.search = _vacant(shape, beams, special, self.memory.source.device)

    @property
    def bytes(self) -> int:
        return nbytes(self.memory) + nbytes(self.search)

    def step(self, features: Features, filters: Filters, columns: int) -> Work:
        """One token for each row of each slot, with what any of them asks for, over so many columns."""

        def work() -> None:
            # Asked of the sentences that are here, which the tables, with the traces of others in them, cannot tell.
            self.search.constraints.features = features
            if isinstance(self.search, Sampling):
                self.search._filters = filters
            logits = self.decoder.step(self.memory, self.search.tokens, self.search.steps, columns)
            rows = self.search.advance(logits)
            if rows is not None:
                reorder(self.memory, rows)

        return work


def _vacant(shape: Shape, beams: bool, special: SpecialIds, device: torch.device) -> Table:
    """Searches that nobody asked for, with room for whatever may be asked: every table as wide as the columns."""
    length = shape.columns - 1
    wide = {"max_length": length, "max_length_offset": length, "max_length_factor": 0.0, "repetition_penalty": 2.0}
    rows = {"beam_size": shape.rows} if beams else {"n_best": shape.rows, "sample": True}
    options = [SearchOptions(**wide, **rows)] * shape.slots  # type: ignore[arg-type]
    prefixes = [(special.unk,) * (length - 1), *[()] * (shape.slots - 1)]
    search = (BeamSearch if beams else Sampling).start([1] * shape.slots, options, prefixes, special, device)
    assert search.history.shape[2] == shape.columns
    return search


class Encoder:
    """Static memory for sources of one padded shape, and the work of encoding them."""

    def __init__(self, decoder: StaticDecoder, batch: int, width: int, executor: Executor) -> None:
        device = executor.device
        self.source = torch.zeros(batch, width, dtype=torch.int64, device=device)
        self.mask = torch.zeros(batch, width, dtype=torch.bool, device=device)
        self.mask[:, 0] = True  # what sees nothing is no number
        self.encoded = decoder.memory(Shape(batch, 1, 0, width)).cross
        self._program = executor.program(lambda: self.encoded.copy_(decoder.encode(self.source, self.mask)))

    def __call__(self, source: Tensor, mask: Tensor) -> Tensor:
        """source and mask [B', S'], within the static shape -> keys and values [B', S', L, 2, H, d_k]."""
        batch, width = source.shape
        self.mask[:batch] = False
        self.source[:batch, :width] = source
        self.mask[:batch, :width] = mask
        self._program.replay()
        return self.encoded[:batch, :width].clone()
