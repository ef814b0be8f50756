"""A step of beam search over static memory by the CUDA kernels of beam_step.cu."""

from dataclasses import dataclass

import torch
from torch import Tensor

from mt.decoding.options import SpecialIds
from mt.kernels.cuda.compiled import Kernel, load_kernels

BEAMS = range(2, 7)  # numbers of beams for which there are kernels
THREADS = 256  # of a block, as in beam_step.cu
BLOCKS = 512  # blocks that fill a GPU; a row is divided among several if there are fewer rows
MAX_PARTS = 32  # of a row


@dataclass(frozen=True)
class SearchTables:
    """Tables that a step reads and changes. The documentation of `StaticBeam` states their shapes and meaning."""

    best: Tensor
    pool: Tensor
    newest: Tensor
    progress: Tensor
    limits: Tensor
    nth: Tensor
    margin: Tensor
    totals: Tensor
    continuations: Tensor
    first_end: Tensor


class BeamStep:
    """Steps of beam search without prefixes and n-gram constraints.

    They equal `StaticBeam.advance` except for ties and rounding.

    torch needs 27 kernels for a step, which read the logits several times. These are two, which read them once.
    """

    def __init__(self, rows: Kernel, slots: Kernel, special: SpecialIds) -> None:
        self._rows, self._slots, self._special = rows, slots, special

    def __call__(self, logits: Tensor, tables: SearchTables) -> None:
        """Take one step with logits [R, V], which are contiguous and float32."""
        assert logits.dtype == torch.float32 and logits.is_contiguous()
        slots, beams = tables.newest.shape
        rows, vocabulary = logits.shape
        count = max(1, min(MAX_PARTS, BLOCKS // rows))
        special = [self._special.pad, self._special.unk, self._special.bos, self._special.eos]
        parts = logits.new_empty(rows, count, 2 + 2 * beams)
        block = (THREADS, 1, 1)
        self._rows(grid=(rows, count, 1), block=block, args=[logits, parts, vocabulary, *special])
        packed = [tables.limits, tables.nth, tables.margin, tables.first_end, tables.totals, tables.continuations]
        arguments = [logits, parts, tables.best, tables.pool, tables.newest, tables.progress, *packed]
        strides = [table.stride(0) for table in packed]
        self._slots(grid=(slots, 1, 1), block=block, args=[*arguments, *strides, count, vocabulary, special[-1]])


def beam_step(beams: int, special: SpecialIds, device: torch.device) -> BeamStep | None:
    """Return the step for this number of beams on `device`; None if there are no kernels for them."""
    names = tuple(f"beam_{part}_{number}" for number in BEAMS for part in ("rows", "slots"))
    kernels = load_kernels("beam_step", names, device) if beams in BEAMS else None
    if kernels is None:
        return None
    first = 2 * BEAMS.index(beams)
    return BeamStep(kernels[first], kernels[first + 1], special)
