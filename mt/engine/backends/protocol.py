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
        """Return the hypotheses of each finished sentence, best first; an empty list if the scores were not finite."""

    def select(self, indices: Sequence[int]) -> None:
        """Keep the sentences at these indices, in this order."""

    def extend(self, other: Self) -> None:
        """Append the sentences of another batch of the same kind. `other` must not be used afterwards."""


class BatchDecoder(Protocol):
    """Creates the batches of one model."""

    def kind(self, request: Request) -> BatchKind:
        """Return the kind of a request. Requests of the same kind can share a batch."""

    def begin(self, requests: Sequence[Request]) -> Batch:
        """Encode requests of one kind and return their batch.

        Raises:
            RequestError: A prefix cannot be used.
        """


class Dtype(StrEnum):
    """Number format of the weights.

    `auto` is bfloat16 on a GPU with instructions for it, and float32 on an older GPU. On a CPU, `auto` is int8 if the
    model directory has int8 weights, or if a comparison of int8 with float32 (on the model's calibration text, or at
    the model's import) showed little loss; otherwise float32.
    """

    AUTO = "auto"
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"


GPU_THREADS = 2
"""Default number of torch's CPU threads if a GPU decodes: little work is left for the CPU."""


Attend = Callable[[Sequence[tuple[Sequence[int], Sequence[int]]]], Sequence[NDArray[np.float32]]]
"""Function that returns the cross-attention weights [L, H, T + 1, S] of each given (source, target) pair."""


@dataclass(frozen=True)
class Backend:
    """Decoder for loaded weights, with the settings for engines that use it."""

    decoder: BatchDecoder
    dtype: Dtype
    limits: Limits
    multithreaded: bool = False  # several engines, each in its own thread, may share the decoder
    shortlist: bool = False  # whether a shortlist limits the tokens of translations
    attend: Attend | None = None  # None: the model in torch computes the cross-attention of pairs
    threads: int | None = None  # default number of torch's CPU threads; None: one per core


def device_failed(error: Exception) -> bool:
    """Return whether an error of a backend means that this process can no longer use the accelerator.

    torch raises an AcceleratorError if an operation fails, and again at every later operation. If memory runs out,
    torch raises a different error. The type is compared by name because the engine does not import torch.
    """
    return type(error).__name__ == "AcceleratorError"
