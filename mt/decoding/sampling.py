"""Sampling of translations, for back-translation (Edunov et al. 2018).

Shapes: B sentences, K samples per sentence, R = B x K rows, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mt.decoding.greedy import GreedySearch
from mt.decoding.options import SearchOptions
from mt.decoding.token_search import TokenSearch

LOW_32 = 0xFFFFFFFF


def mixed(x: Tensor) -> Tensor:
    """Return a 32-bit hash of each 32-bit number in `x`. Both tensors are int64.

    The hash is lowbias32 (C. Wellons, "Prospecting for hash functions", 2018).
    """
    x = x ^ 0x9E3779B9  # without this, the hash of 0 would be 0
    x = ((x ^ (x >> 16)) * 0x7FEB352D) & LOW_32
    x = ((x ^ (x >> 15)) * 0x846CA68B) & LOW_32
    return x ^ (x >> 16)


def uniform(keys: Tensor) -> Tensor:
    """Return a pseudo-random float64 number in (0, 1) for each key. Equal keys give equal numbers."""
    return (mixed(keys).double() + 0.5) / 2**32


def draw(scores: Tensor, numbers: Tensor) -> Tensor:
    """Draw one id per row, [R], from unnormalized log-probabilities `scores` [R, V].

    `numbers` [R] are random numbers in (0, 1). The drawn id is the first one whose cumulative probability exceeds the
    number. An id of probability 0 is never drawn. If all scores of a row are -inf, the result is an arbitrary id. Sums
    are float64, because float32 would lose the least probable tokens.
    """
    below = scores.softmax(dim=1, dtype=torch.float64).cumsum(dim=1)
    ids = torch.searchsorted(below, numbers[:, None] * below[:, -1:], right=True).squeeze(1)
    return ids.clamp(max=scores.shape[1] - 1)


@dataclass
class Sampling(GreedySearch):
    """Search that draws the next token of each row from the model's distribution.

    A draw depends on the seed, the number of the sample and the step, never on other sentences. The temperature divides
    the log-probabilities that the constraints allow. It does not change the log-probabilities in the results.
    """

    keys: Tensor  # [B, K] keys of the random numbers
    temperature: Tensor  # [B]

    @classmethod
    def _tables(cls, options: Sequence[SearchOptions], common: TokenSearch) -> dict[str, Any]:
        device = common.steps.device
        seeds = torch.tensor([sentence.seed for sentence in options], device=device)
        samples = torch.arange(options[0].rows, device=device)
        return {
            **super()._tables(options, common),
            "keys": mixed(mixed(seeds)[:, None] ^ samples),
            "temperature": torch.tensor([sentence.temperature for sentence in options], device=device),
        }

    def _choose(self, log_probs: Tensor) -> Tensor:
        scores = log_probs / self.temperature.repeat_interleave(self.latest.shape[1])[:, None]
        return draw(scores, uniform(mixed(self.keys ^ self.steps[:, None]).view(-1)))
