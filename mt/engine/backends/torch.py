"""Reference backend in plain torch for any device. A batch runs a search over the logits of a scorer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch

from mt.checkpoint import LoadedModel
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.scorer import EnsembleScorer, ModelScorer, Scorer
from mt.decoding.search import start_search
from mt.decoding.search_state import Search
from mt.engine.backends.memory import device_limits
from mt.engine.backends.protocol import GPU_THREADS, Backend, Dtype
from mt.engine.devices import has_bfloat16
from mt.engine.engine import Engine
from mt.engine.requests import Request
from mt.engine.scheduler import BatchKind
from mt.errors import ModelError

STEPS_BETWEEN_POLLS = 8
"""Number of steps between two reads of the finished flags on a GPU. Each read makes the host wait."""


@dataclass
class SearchBatch:
    """Batch that runs a search over the logits of a scorer. The tests compare the batches of other backends with it."""

    scorer: Scorer[Any]
    search: Search
    state: Any
    steps: int = 0

    @torch.inference_mode()
    def advance(self, steps: int = 1) -> list[int]:
        """Take one step, whatever `steps` is: several steps in one call would not be faster."""
        rows = self.search.advance(self.scorer.step(self.state, self.search.tokens))
        if rows is not None:
            self.state.reorder(rows)
        self.steps += 1
        if self.scorer.device.type != "cpu" and self.steps % STEPS_BETWEEN_POLLS:
            return []
        return [index for index, finished in enumerate(self.search.finished.tolist()) if finished]

    def results(self, indices: Sequence[int]) -> list[list[Hypothesis]]:
        return self.search.results(indices)

    @torch.inference_mode()
    def select(self, indices: Sequence[int]) -> None:
        keep = torch.tensor(indices, dtype=torch.int64, device=self.scorer.device)
        self.search.select(keep)
        self.state.select(keep)

    @torch.inference_mode()
    def extend(self, other: Self) -> None:
        self.search.extend(other.search)
        self.state.extend(other.state)


@dataclass(frozen=True)
class SearchDecoder:
    """Decoder that creates `SearchBatch` objects."""

    scorer: Scorer[Any]

    def kind(self, request: Request) -> BatchKind:
        return BatchKind.of(request)

    def cost(self, request: Request) -> int:
        return 1

    @torch.inference_mode()
    def begin(self, requests: Sequence[Request]) -> SearchBatch:
        sources = [request.source for request in requests]
        lengths, options = [len(source) for source in sources], [request.options for request in requests]
        constraints = [request.constraints for request in requests if request.constraints is not None]
        prefixes, special, device = [request.prefix for request in requests], self.scorer.special, self.scorer.device
        search = start_search(lengths, options, prefixes, special, device, constraints)
        return SearchBatch(self.scorer, search, self.scorer.start(sources, options[0].rows))


def load_backend(models: Sequence[LoadedModel], device_name: str, dtype: Dtype) -> Backend:
    """Return the reference backend of a model, or of an ensemble of several models. It does not use a shortlist.

    Raises:
        ModelError: The dtype is int8.
    """
    if dtype is Dtype.INT8:
        raise ModelError("dtype is int8; accepted: auto, float32, bfloat16")
    device = torch.device(device_name)
    if dtype is Dtype.AUTO:
        dtype = Dtype.BFLOAT16 if has_bfloat16(device) else Dtype.FLOAT32
    if dtype is Dtype.BFLOAT16:
        for loaded in models:
            loaded.model.bfloat16()
    scorers = tuple(ModelScorer(loaded.model, device=device) for loaded in models)
    scorer: Scorer[Any] = scorers[0] if len(scorers) == 1 else EnsembleScorer(scorers)
    threads = None if device.type == "cpu" else GPU_THREADS
    limits = device_limits([loaded.model for loaded in models], device)
    return Backend(SearchDecoder(scorer), dtype, limits, threads=threads)


def load_engine(loaded: LoadedModel) -> Engine:
    """Return an engine that decodes with the reference backend and the present weights of `loaded`."""
    device = next(loaded.model.parameters()).device
    decoder = SearchDecoder(ModelScorer(loaded.model, device=device))
    return Engine(decoder, device_limits([loaded.model], device))
