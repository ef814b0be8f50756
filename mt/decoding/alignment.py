"""Word alignment from cross-attention."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Alignment:
    """`soft` [T, S] how much each target position leans on each source position; `pairs` (source, target), hard."""

    soft: Tensor
    pairs: tuple[tuple[int, int], ...]


def align(
    attention: Tensor,
    source_lengths: Sequence[int],
    target_lengths: Sequence[int],
    layers: Sequence[int] | None = None,
) -> list[Alignment]:
    """Cross-attention weights [L, B, H, T, S] -> one alignment a sentence, of its first T' and S' positions.

    Averaged over all heads of `layers`. By default that is the last layer but one, whose average Garg et al. 2019
    ("Jointly Learning to Align and Translate with Transformer Models") find the best aligner of all layers without
    any training for it.
    Leave EOS out of a length to keep it from being aligned.
    """
    chosen = [max(attention.shape[0] - 2, 0)] if layers is None else list(layers)
    soft = attention[chosen].mean(dim=(0, 2))  # [B, T, S]
    found = []
    for weights, source, target in zip(soft, source_lengths, target_lengths, strict=True):
        kept = weights[:target, :source].contiguous()
        found.append(Alignment(kept, hard_pairs(kept)))
    return found


def hard_pairs(soft: Tensor) -> tuple[tuple[int, int], ...]:
    """Each target position of [T, S] with the source position it leans on most: (source, target), by target."""
    if not soft.numel():
        return ()
    return tuple((source, target) for target, source in enumerate(soft.argmax(1).tolist()))


def group_words(alignment: Alignment, source_starts: Sequence[bool], target_starts: Sequence[bool]) -> Alignment:
    """From pieces to words: a flag a piece says whether it begins a word, as the first piece always does.

    A word receives what its pieces receive together, and gives what its pieces give on average.
    """
    device = alignment.soft.device
    source_words, target_words = _word_numbers(source_starts, device), _word_numbers(target_starts, device)
    received = _summed(alignment.soft.mT, source_words).mT  # [T, words]
    given = _summed(received, target_words)  # [words, words]
    pieces = torch.bincount(target_words, minlength=given.shape[0])
    soft = given / pieces[:, None]
    return Alignment(soft, hard_pairs(soft))


def _word_numbers(starts: Sequence[bool], device: torch.device) -> Tensor:
    """[True, False, True] -> [0, 0, 1]."""
    begins = [i == 0 or start for i, start in enumerate(starts)]
    return torch.tensor(begins, dtype=torch.int64, device=device).cumsum(0) - 1


def _summed(lines: Tensor, groups: Tensor) -> Tensor:
    """[N, M] -> [G, M], the lines of each group added."""
    count = int(groups[-1]) + 1 if groups.numel() else 0
    return lines.new_zeros(count, lines.shape[1]).index_add_(0, groups, lines)
