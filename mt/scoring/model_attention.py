"""Cross-attention of given pairs by a model in torch."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from mt.decoding.scorer import padded, token_mask
from mt.engine.backends.one_thread import one_torch_thread
from mt.model.transformer import Transformer
from mt.scoring.attention import Pair
from mt.tokenizer import BOS, PAD


@dataclass(frozen=True)
class ModelAttention:
    """Function that returns the cross-attention weights of each pair (`Attend`)."""

    model: Transformer

    @torch.inference_mode()
    def __call__(self, pairs: Sequence[Pair]) -> list[NDArray[np.float32]]:
        device = next(self.model.parameters()).device
        sources, fed = [source for source, _ in pairs], [[BOS, *target] for _, target in pairs]
        with one_torch_thread():
            weights = self.model.cross_attention(
                padded(sources, PAD, device), token_mask(sources, device), padded(fed, PAD, device)
            )
            weights = weights.float().cpu()  # [L, B, H, T + 1, S]
        return [
            weights[:, number, :, : len(target), : len(source)].numpy()
            for number, (source, target) in enumerate(zip(sources, fed, strict=True))
        ]
