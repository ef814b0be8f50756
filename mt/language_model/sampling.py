"""Sampling of text from a language model: temperature, top-k and top-p.

Shapes: N distributions or texts, T bytes, V = 256 different bytes.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from mt.errors import RequestError, problems
from mt.language_model.model import BYTES, LanguageModel

FIRST = b"\n"
"""The byte that is read before a text without a prompt."""


@dataclass(frozen=True)
class SamplingOptions:
    """Options of the draw of the next byte. With the defaults, the distribution is that of the model.

    Raises:
        RequestError: A value is not accepted. The message lists all such values.
    """

    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        invalid = []
        if not 1e-3 <= self.temperature < math.inf:
            invalid.append(f"temperature is {self.temperature}; accepted: a number of at least 0.001")
        if not 0 <= self.top_k <= BYTES:
            invalid.append(f"top_k is {self.top_k}; accepted: from 1 to {BYTES}, or 0 for all")
        if not 0 < self.top_p <= 1:
            invalid.append(f"top_p is {self.top_p}; accepted: above 0 and at most 1")
        if invalid:
            raise RequestError(problems("the sampling options cannot be used", invalid))


def keep_top_k(logits: Tensor, k: int) -> Tensor:
    """Set all but the k highest logits of each row of `logits` [N, V] to -inf (Fan et al. 2018, section 5.4)."""
    return logits.masked_fill(logits < logits.topk(k).values[:, -1:], -math.inf)


def keep_top_p(logits: Tensor, p: float) -> Tensor:
    """Set all logits of a row to -inf but those of the nucleus (Holtzman et al. 2020, section 3.1).

    The nucleus is the smallest set of bytes whose total probability is at least p. `logits` is [N, V].
    """
    ordered, order = logits.softmax(1).sort(1, descending=True)
    outside = ordered.cumsum(1) - ordered >= p  # the more probable bytes reach p without this one
    return logits.masked_fill(torch.zeros_like(outside).scatter(1, order, outside), -math.inf)


def distribution(logits: Tensor, options: SamplingOptions) -> Tensor:
    """Return the probabilities [N, V] with which bytes are drawn, given the model's logits [N, V]."""
    logits = logits.float() / options.temperature
    if options.top_k:
        logits = keep_top_k(logits, options.top_k)
    if options.top_p < 1:
        logits = keep_top_p(logits, options.top_p)
    return logits.softmax(1)


@torch.inference_mode()
def generate(
    model: LanguageModel, prompt: bytes, length: int, options: SamplingOptions, random: torch.Generator
) -> Iterator[int]:
    """Yield `length` bytes that continue `prompt`. The model reads at most its last `block` bytes."""
    device = next(model.parameters()).device
    text = list(prompt or FIRST)
    for _ in range(length):
        text = text[-model.config.block :]
        logits = model(torch.tensor([text], device=device))[:, -1]
        text.append(int(torch.multinomial(distribution(logits, options).cpu(), 1, generator=random)))
        yield text[-1]
