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
    """Sentences of one kind that are decoded together. Sentences may be at different steps.

    A sentence is identified by its index in the batch.
    """

    @property
    def steps(self) -> int:
        """Number of decoder steps that the batch has taken."""

    def advance(self, steps: int = 1) -> list[int]:
        """Take at most `steps` decoder steps, but stop when a sentence finishes.

        Return the indices of finished sentences. A step decodes one token of every row. A backend may take fewer steps.
        It may return a finished sentence some steps late, and more than once. A finished sentence stays in the batch
        until `select` removes it.
        """

    def results(self, indices: Sequence[int]) -> list[list[Hypothesis]]:
        """Return the hypotheses of each of these finished sentences, best first.

        A sentence has none if its scores were not finite or if no hypothesis meets its search options.
        """

    def select(self, indices: Sequence[int]) -> None:
        """Keep only the sentences at these indices, in this order."""

    def extend(self, other: Self) -> None:
        """Append the sentences of `other`, a batch of the same kind. `other` must not be used afterwards."""


class BatchDecoder(Protocol):
    """Decoder of one backend, which creates its batches."""

    def kind(self, request: Request) -> BatchKind | None:
        """Return the kind of the batch that `request` needs. Requests of the same kind can share a batch.

        The kind is None if requests of all kinds can share a batch.
        """

    def cost(self, request: Request) -> int:
        """Return the time of one step of one row of `request`, relative to the fastest search of the backend."""

    def begin(self, requests: Sequence[Request]) -> Batch:
        """Encode requests of one kind and return a batch of them.

        Raises:
            RequestError: A prefix is invalid (see `check_prefixes`), or the backend has no such search.
        """


class Dtype(StrEnum):
    """Number format of the weights.

    `auto` on a GPU is bfloat16 if the GPU has instructions for it, otherwise float32. `auto` on a CPU is int8 if the
    model directory has int8 weights, or if a comparison of int8 with float32 showed little loss; otherwise float32. The
    comparison uses the model's calibration text, or was made when the model was imported.
    """

    AUTO = "auto"
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"


GPU_THREADS = 2
"""Default number of torch's CPU threads if a GPU decodes. Little work is left for the CPU."""


Attend = Callable[[Sequence[tuple[Sequence[int], Sequence[int]]]], Sequence[NDArray[np.float32]]]
"""Function that returns the cross-attention weights of each (source, target) pair, each [L, H, T + 1, S].

L layers, H heads, T target tokens without BOS and EOS, S source tokens with EOS.
"""

UseThreads = Callable[[int], None]


@dataclass(frozen=True)
class Backend:
    """Decoder with loaded weights, and the settings for the engines that use it."""

    decoder: BatchDecoder
    dtype: Dtype
    limits: Limits
    multithreaded: bool = False  # several engines, each in its own thread, may share the decoder
    shortlist: bool = False  # whether a shortlist limits the tokens of translations
    attend: Attend | None = None  # None if the model in torch must compute cross-attention weights
    threads: int | None = None  # default number of torch's CPU threads; None: one per core
    use_threads: UseThreads | None = None  # receives the number of engines before they start; None if nothing needs it


def device_failed(error: Exception) -> bool:
    """Return whether `error` means that this process can no longer use the GPU.

    If an operation on a GPU fails, torch raises an AcceleratorError, and raises it again at every later operation. If
    memory runs out, torch raises another error. The type is compared by name because the engine does not import torch.
    """
    return type(error).__name__ == "AcceleratorError"
