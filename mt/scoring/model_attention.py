"""Cross-attention of given pairs by a model in torch."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

import numpy as np
import torch
from numpy.typing import NDArray

from mt.decoding.scorer import padded, real
from mt.model.transformer import Transformer
from mt.scoring.attention import Pair
from mt.tokenizer import BOS, PAD

_passes = Lock()


@dataclass(frozen=True)
class ModelAttention:
    """Function that returns the cross-attention weights [L, H, T + 1, S] of each pair, for `AttentionPass`.

    During a pass on a CPU, torch uses one thread in the whole process. A pass is too short to be split among threads,
    and additional threads would wait for cores that the engine's threads occupy.
    """

    model: Transformer

    @torch.inference_mode()
    def __call__(self, pairs: Sequence[Pair]) -> list[NDArray[np.float32]]:
        device = next(self.model.parameters()).device
        sources, fed = [source for source, _ in pairs], [[BOS, *target] for _, target in pairs]
        with _one_torch_thread():
            weights = self.model.cross_attention(
                padded(sources, PAD, device), real(sources, device), padded(fed, PAD, device)
            )
            weights = weights.float().cpu()  # [L, B, H, T + 1, S]
        return [
            weights[:, number, :, : len(target), : len(source)].numpy()
            for number, (source, target) in enumerate(zip(sources, fed, strict=True))
        ]


@contextmanager
def _one_torch_thread() -> Iterator[None]:
    """Limit torch to one thread. A lock prevents two passes from changing the limit at the same time."""
    with _passes:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
