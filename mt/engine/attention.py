"""What each token of a translation looks at: one forced pass of the model, for the few sentences that need it."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from mt.decoding.alignment import align
from mt.decoding.scorer import padded, real
from mt.model.transformer import Transformer
from mt.tokenizer import BOS, PAD

Pair = tuple[Sequence[int], Sequence[int]]
"""A source with tag and EOS, and a bare translation."""


@contextmanager
def _alone() -> Iterator[None]:
    """One thread: a pass over a sentence is too short to share, and others wait long beside the engine's threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@dataclass(frozen=True)
class Attender:
    """Cross-attention of the layer and heads that align best. `tagged` is the number of ids before a source's own."""

    model: Transformer
    device: torch.device
    tagged: int

    @_alone()
    @torch.inference_mode()
    def __call__(self, source: Sequence[int], target: Sequence[int]) -> list[list[float]]:
        """Weights [T][S] of a bare target on a source with tag and EOS, which are left out.

        The step that predicts a token is the one that looks at what it translates: step t reads token t - 1, BOS first.
        """
        if not target:
            return []
        fed = padded([[BOS, *target[:-1]]], PAD, self.device)
        attention = self.model.cross_attention(padded([source], PAD, self.device), real([source], self.device), fed)
        return self.aligned(attention[:, 0, :, : len(target)])

    @_alone()
    @torch.inference_mode()
    def layers(self, pairs: Sequence[Pair]) -> list[Tensor]:
        """All the weights of each pair, from one pass: float32 [L, H, T + 1, S], the last step being that of EOS."""
        sources, fed = [source for source, _ in pairs], [[BOS, *target] for _, target in pairs]
        attention = self.model.cross_attention(
            padded(sources, PAD, self.device), real(sources, self.device), padded(fed, PAD, self.device)
        )
        attention = attention.float().cpu()  # [L, B, H, T, S]
        return [
            attention[:, number, :, : len(steps), : len(source)]
            for number, (source, steps) in enumerate(zip(sources, fed, strict=True))
        ]

    def aligned(self, weights: Tensor) -> list[list[float]]:
        """[L, H, T, S] with tag and EOS of the source -> the weights [T][S] that align best, without these."""
        own = weights[..., self.tagged :].float().cpu()
        found: list[list[float]] = align(own[:, None], [own.shape[-1] - 1], [own.shape[-2]])[0].soft.tolist()
        return found
