"""Interface between the engine and its backends, without torch types."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from mt.decoding.hypothesis import Hypothesis
from mt.engine.requests import Request
from mt.engine.scheduler import BatchKind, Limits


class Batch(Protocol):
    """Sentences of one BatchKind that are decoded together. Sentences may be at different steps.

    A sentence is identified by its index in the batch.
    """

    @property
    def steps(self) -> int:
        """Steps taken so far."""

    def advance(self, steps: int = 1) -> list[int]:
        """Decode a token for every row, up to `steps` times until a sentence finishes. Return the finished indices.

        A backend may take fewer steps. It may return a finished sentence some steps late, and more than once. A
        finished sentence stays in the batch until `select` removes it.
        """

    def results(self, indices: Sequence[int]) -> list[list[Hypothesis]]:
        """Return the hypotheses of each finished sentence, best first; an empty list if its scores were not finite."""

    def select(self, indices: Sequence[int]) -> None:
        """Keep the sentences at these indices, in this order."""

    def extend(self, other: Self) -> None:
        """Append the sentences of another batch of the same kind. `other` must not be used afterwards."""


class BatchDecoder(Protocol):
    """Factory of batches over one model."""

    def kind(self, request: Request) -> BatchKind:
        """Return the kind of a request. Requests of the same kind can share a batch."""

    def begin(self, requests: Sequence[Request]) -> Batch:
        """Encode requests of one kind and return their batch.

        Raises:
            RequestError: A prefix cannot be used.
        """


class Dtype(StrEnum):
    """Number format of the weights.

    `auto` is bfloat16 on a GPU with instructions for it, and float32 on older GPUs. On a CPU it is int8 if the model's
    directory has int8 weights, or if the model's calibration text or the comparison at its import shows no loss; else
    float32.
    """

    AUTO = "auto"
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"


GPU_THREADS = 2
"""Default number of threads of torch on the CPU, if a GPU decodes: work on the CPU is small then."""


Attend = Callable[[Sequence[tuple[Sequence[int], Sequence[int]]]], Sequence[NDArray[np.float32]]]
"""Function that returns the cross-attention weights [L, H, T + 1, S] of pairs of a source and a target."""


@dataclass(frozen=True)
class Backend:
    """Decoder over loaded weights, with the settings of engines that use it."""

    decoder: BatchDecoder
    dtype: Dtype
    limits: Limits
    multithreaded: bool = False  # several engines, each in its own thread, may share the decoder
    shortlist: bool = False  # whether a shortlist limits the tokens of translations
    attend: Attend | None = None  # None: the model in torch computes the cross-attention of pairs
    threads: int | None = None  # default number of threads of torch on the CPU; None is one per core


def device_failed(error: Exception) -> bool:
    """Return whether an error of a backend means that this process can no longer use the accelerator.

    torch raises an AcceleratorError if an operation fails, and then again for every later operation. If only memory is
    short, torch raises another error. The type is compared by name because the engine does not import torch.
    """
    return type(error).__name__ == "AcceleratorError"
