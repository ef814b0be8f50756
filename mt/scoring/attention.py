"""Cross-attention of given pairs from one teacher-forced pass, for alignment and attention maps."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Pair = tuple[Sequence[int], Sequence[int]]
"""Token ids of a source, with tag and EOS, and of a target, without BOS and EOS."""


_SHALLOW = 2  # layers of a model in which all align


@dataclass(frozen=True)
class CrossAttention:
    """Cross-attention of one pair: `weights` [L, H, T + 1, S], with L layers, H heads, T target and S source tokens.

    Row t contains the weights with which the model predicts target token t. The last row is for EOS.
    """

    weights: NDArray[np.float32]

    def alignment(self, tag_length: int = 0, prefix_length: int = 0) -> NDArray[np.float32]:
        """Return alignment weights [target tokens, source tokens], without tags and EOS.

        They are the mean over the heads of the penultimate layer, which aligns best in a deep model that was not
        trained to align (Garg et al. 2019, "Jointly Learning to Align and Translate with Transformer Models"), or of
        both layers of two: there, the penultimate finds 3 of 4 words, and both find 19 of 20.

        `tag_length` tokens at the beginning of the source and `prefix_length` tokens of the target are left out.
        """
        weights = self.weights if len(self.weights) <= _SHALLOW else self._penultimate
        mean: NDArray[np.float32] = weights.mean((0, 1))
        return mean[prefix_length:-1, tag_length:-1]

    def mean(self) -> NDArray[np.float32]:
        """Return the mean over the heads of the penultimate layer, [T + 1, S], which a search records."""
        mean: NDArray[np.float32] = self._penultimate.mean((0, 1))
        return mean

    @property
    def _penultimate(self) -> NDArray[np.float32]:
        penultimate = max(len(self.weights) - 2, 0)
        return self.weights[penultimate : penultimate + 1]
