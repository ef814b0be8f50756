"""Given translations, in text: how probable a model holds them, and which word comes from which."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch

from mt.decoding.alignment import align, group_words
from mt.decoding.scorer import padded, real
from mt.decoding.search import ScoredPair, score
from mt.engine.translator import Translator
from mt.errors import RequestError, problems
from mt.tokenizer import BOS, EOS, PAD, SPACE_MARK, Tokenizer

BATCH = 64  # pairs in one pass


@dataclass(frozen=True)
class AlignedPair:
    """Words of both sides, and which goes with which: (source word, target word), counted from 0."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]


def score_pairs(
    translator: Translator, sources: Sequence[str], targets: Sequence[str], direction: str
) -> list[ScoredPair]:
    """The log-probabilities of given translations, a token each. Raises RequestError naming every pair too long."""
    encoded = _encode(translator, sources, targets, direction)
    scorer = translator.scorer
    found: list[ScoredPair] = []
    for begin in range(0, len(encoded), BATCH):
        chunk = encoded[begin : begin + BATCH]
        found += score(scorer, [source for source, _ in chunk], [target for _, target in chunk])
    return found


@torch.inference_mode()
def align_pairs(
    translator: Translator, sources: Sequence[str], targets: Sequence[str], direction: str
) -> list[AlignedPair]:
    """Word alignments of given translations, from cross-attention. Raises RequestError naming every pair too long.

    The step that predicts a token is the one that looks at what it translates: step t reads token t - 1, BOS first.
    """
    encoded = _encode(translator, sources, targets, direction)
    scorer = translator.scorer
    tagged = len(translator.tokenizer.opening(direction.split("-")[1], translator.directions))
    found = []
    for begin in range(0, len(encoded), BATCH):
        chunk = encoded[begin : begin + BATCH]
        inputs = [source for source, _ in chunk]
        fed = padded([[BOS, *target[:-1]] if target else [BOS] for _, target in chunk], PAD, scorer.device)
        attention = translator.model.cross_attention(
            padded(inputs, PAD, scorer.device), real(inputs, scorer.device), fed
        ).cpu()[..., tagged:]
        lengths = [len(source) - 1 - tagged for source in inputs]
        for (source, target), alignment in zip(
            chunk, align(attention, lengths, [len(target) for _, target in chunk]), strict=True
        ):
            own = ((translator.tokenizer, source[tagged:-1]), (translator.tokenizer.target, target))
            starts, words = zip(*(_words(tokenizer, ids) for tokenizer, ids in own), strict=True)
            found.append(AlignedPair(words[0], words[1], group_words(alignment, *starts).pairs))
    return found


def _encode(
    translator: Translator, sources: Sequence[str], targets: Sequence[str], direction: str
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Sources with their tag and EOS, and bare targets, as ids."""
    limit = translator.description.model.max_length
    tag = translator.tokenizer.opening(direction.split("-")[1], translator.directions)
    found, encoded = [], []
    for number, (source, target) in enumerate(zip(sources, targets, strict=True), start=1):
        wanted = translator.request(source, source=direction.split("-")[0], target=direction.split("-")[1])
        ids = tuple(translator.tokenizer.target.encode(target.strip()))
        if len(ids) + 1 > limit:
            found.append(f"pair {number}: {len(ids) + 1} target tokens; accepted: at most {limit}")
        encoded.append((wanted.source if wanted else (*tag, EOS), ids))
    if found:
        raise RequestError(problems("these pairs cannot be read", found))
    return encoded


def _words(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[tuple[bool, ...], tuple[str, ...]]:
    """Whether each piece begins a word, and the words."""
    pieces = tokenizer.pieces(ids)
    starts = tuple(index == 0 or piece.startswith(SPACE_MARK) for index, piece in enumerate(pieces))
    bounds = [*(index for index, start in enumerate(starts) if start), len(ids)]
    words = (ids[begin:end] for begin, end in pairwise(bounds))
    return starts, tuple(tokenizer.decode(word).strip() for word in words)
