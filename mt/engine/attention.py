"""What each token of a translation looks at: one forced pass of the model, for the few sentences that need it."""

from collections.abc import Iterable, Iterator, Sequence
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

Weights = list[list[float]]
"""[T][S]: of a bare target on a source, with its tag and without EOS."""

MOST_AT_ONCE = 2**24  # weights of a pass, unless a sentence alone has more


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
    """Cross-attention of the layer and heads that align best."""

    model: Transformer
    device: torch.device

    @_alone()
    @torch.inference_mode()
    def __call__(self, pairs: Sequence[Pair]) -> list[Weights]:
        """What each target looks at, from passes over as many pairs as fit.

        The step that predicts a token is the one that looks at what it translates: step t reads token t - 1, BOS first.
        """
        found: list[Weights] = []
        for group in self.groups(pairs):
            found += [self.aligned(weights[:, :, :-1]) for weights in self.layers([pairs[each] for each in group])]
        return found

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

    def groups(self, pairs: Iterable[Pair]) -> Iterator[list[int]]:
        """The numbers of pairs that one pass takes, in order."""
        heads = self.model.config.decoder_layers * self.model.config.heads
        group: list[int] = []
        longest = (0, 0)
        for number, (source, target) in enumerate(pairs):
            size = (len(source), len(target) + 1)
            wider = (max(longest[0], size[0]), max(longest[1], size[1]))
            if group and heads * wider[0] * wider[1] * (len(group) + 1) > MOST_AT_ONCE:
                yield group
                group, wider = [], size
            group.append(number)
            longest = wider
        if group:
            yield group

    def aligned(self, weights: Tensor) -> Weights:
        """[L, H, T, S] with EOS of the source -> the weights [T][S] that align best, without it."""
        if not weights.shape[2]:
            return []
        own = weights.float().cpu()
        found: Weights = align(own[:, None], [own.shape[-1] - 1], [own.shape[-2]])[0].soft.tolist()
        return found
