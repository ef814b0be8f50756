"""Cross-attention of given pairs from one teacher-forced pass, for alignment and attention maps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mt.engine.backends.protocol import Attend

Pair = tuple[Sequence[int], Sequence[int]]
"""Token ids of a source, with tag and EOS, and of a target, without BOS and EOS."""

MAX_PAIRS = 16
"""Maximum number of pairs in a pass. A pass delays all sentences that are being decoded."""

MAX_WEIGHTS = 2**24
"""Maximum number of attention weights in a pass. A single pair may have more."""


@dataclass(frozen=True)
class CrossAttention:
    """Cross-attention of one pair: `weights` [L, H, T + 1, S], with L layers, H heads, T target and S source tokens.

    Row t contains the weights with which the model predicts target token t. The last row is for EOS.
    """

    weights: NDArray[np.float32]

    def alignment(self, tag_length: int = 0, prefix_length: int = 0) -> NDArray[np.float32]:
        """Return alignment weights [target tokens, source tokens], without tags and EOS.

        `tag_length` tokens at the beginning of the source and `prefix_length` tokens of the target are left out.
        The weights are the mean over the heads of the penultimate layer, which aligns best in a model that was not
        trained to align (Garg et al. 2019, "Jointly Learning to Align and Translate with Transformer Models").
        """
        layer = max(len(self.weights) - 2, 0)
        rows: NDArray[np.float32] = self.weights[layer].mean(0)[prefix_length:-1, tag_length:-1]
        return rows


@dataclass(frozen=True)
class AttentionPass:
    """Computation of the cross-attention of pairs, in passes of limited size."""

    attend: Attend
    heads: int  # number of heads of all decoder layers

    def __call__(self, pairs: Sequence[Pair]) -> Iterator[CrossAttention]:
        """Yield the cross-attention of each pair in order. A pass runs when its first result is requested."""
        for group in self.groups(pairs):
            yield from self._run([pairs[number] for number in group])

    def weight_count(self, pair: Pair) -> int:
        """Return the number of attention weights of a pair."""
        return self.heads * len(pair[0]) * (len(pair[1]) + 1)

    def groups(self, pairs: Sequence[Pair]) -> Iterator[range]:
        """Divide `pairs` among passes. For each pass, yield the range of the indices of its pairs."""
        begin = source_length = target_length = 0
        for number, (source, target) in enumerate(pairs):
            source_length, target_length = max(source_length, len(source)), max(target_length, len(target) + 1)
            count = number - begin + 1
            if count > 1 and (count > MAX_PAIRS or self.heads * source_length * target_length * count > MAX_WEIGHTS):
                yield range(begin, number)
                begin, source_length, target_length = number, len(source), len(target) + 1
        if begin < len(pairs):
            yield range(begin, len(pairs))

    def _run(self, pairs: Sequence[Pair]) -> list[CrossAttention]:
        return [CrossAttention(weights) for weights in self.attend(pairs)]
