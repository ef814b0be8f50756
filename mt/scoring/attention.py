"""Cross-attention of given pairs from one teacher-forced pass, for alignment and attention maps."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Pair = tuple[Sequence[int], Sequence[int]]
"""Token ids of a source, with tag and EOS, and of a target, without BOS and EOS."""


@dataclass(frozen=True)
class CrossAttention:
    """Cross-attention of one pair: `weights` [L, H, T + 1, S], with L layers, H heads, T target and S source tokens.

    Row t contains the weights with which the model predicts target token t. The last row is for EOS.
    """

    weights: NDArray[np.float32]

    def alignment(self, tag_length: int = 0, prefix_length: int = 0) -> NDArray[np.float32]:
        """Return alignment weights [target tokens, source tokens], without tags and EOS.

        `tag_length` tokens at the beginning of the source and `prefix_length` tokens of the target are left out.
        """
        return self.mean()[prefix_length:-1, tag_length:-1]

    def mean(self) -> NDArray[np.float32]:
        """Return the mean over the heads of the last two layers, [T + 1, S].

        The penultimate layer aligns best in a deep model that was not trained to align (Garg et al. 2019, "Jointly
        Learning to Align and Translate with Transformer Models"), but badly in one of two layers.
        """
        mean: NDArray[np.float32] = self.weights[-2:].mean((0, 1))
        return mean
