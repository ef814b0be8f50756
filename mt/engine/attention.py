"""What each token of a translation looks at: one forced pass of the model, for the few sentences that need it."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from mt.decoding.alignment import align
from mt.decoding.scorer import padded, real
from mt.model.transformer import Transformer
from mt.tokenizer import BOS, PAD


@dataclass(frozen=True)
class Attender:
    """Cross-attention of the layer and heads that align best. `tagged` is the number of ids before a source's own."""

    model: Transformer
    device: torch.device
    tagged: int

    @torch.inference_mode()
    def __call__(self, source: Sequence[int], target: Sequence[int]) -> list[list[float]]:
        """Weights [T][S] of a bare target on a source with tag and EOS, which are left out.

        The step that predicts a token is the one that looks at what it translates: step t reads token t - 1, BOS first.
        """
        if not target:
            return []
        fed = padded([[BOS, *target[:-1]]], PAD, self.device)
        attention = self.model.cross_attention(padded([source], PAD, self.device), real([source], self.device), fed)
        own = len(source) - self.tagged - 1
        weights: list[list[float]] = align(attention[..., self.tagged :].float().cpu(), [own], [len(target)])[
            0
        ].soft.tolist()
        return weights
