"""Words that a model cannot know: found by their tokens, and copied from the source instead of invented.

A tokenizer divides a rare word into tokens. If two neighbouring tokens of a word never occurred together in the
training text, the model has never read the word. Its translation is a guess, often a word of no language.
"""

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mt.pipeline.results import Alternative
from mt.pipeline.variants import DecodedVariant, SentenceContext, piece_attention
from mt.text.alignment import piece_offsets
from mt.tokenizer import SPACE_MARK

LEAST_LETTERS = 4  # shorter words are neither guesses nor copied
MOST_SHARED = 0.15  # of the attention of a target word: a second source word with more is a part of it
GUESS_PROBABILITY, STRICT_PROBABILITY = 0.5, 0.25
"""Words of at least this probability are no guess: the geometric mean over their tokens. The strict limit is that of
known words for a word with one new pair: a model translates most compounds of two known words correctly."""

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


class _Word(NamedTuple):
    begin: int
    end: int
    text: str
    first: int  # number of its first token
    last: int  # number after its last token
    new: int  # number of its pairs of neighbouring tokens that never occurred in the training text
    log_probability: float  # of its tokens together; 0 in a source


async def copy_unknown_words(
    decoded: DecodedVariant, alternatives: tuple[Alternative, ...], context: SentenceContext
) -> tuple[Alternative, ...]:
    """Replace the guesses for unknown words in the best of `alternatives` by these words.

    A guess is a target word of low probability that the model has never read, or that attends to a source word that it
    has never read. `Alternative.copied` lists the source words. `alternatives` are the restored ones of `decoded`.
    """
    if context.bigrams is None or decoded.variant.terms or decoded.variant.stand_ins:
        return alternatives
    variant, best = decoded.variant, decoded.best
    if math.exp(min(best.piece_log_probabilities, default=0.0)) >= GUESS_PROBABILITY:
        return alternatives  # no token is a guess, and no word
    tokens, ids = decoded.request.source[len(context.tag) : -1], decoded.hypotheses[0].tokens[len(context.prefix) :]
    new_source = context.bigrams.new_pairs(context.source, tokens)
    new_target = context.bigrams.new_pairs(context.target, ids) if context.reads_target else [False] * (len(ids) + 1)
    source_pieces = context.tokenizer.pieces(tokens)
    if not _has_new_word(source_pieces, new_source) and not _has_new_word(best.pieces, new_target):
        return alternatives
    source = _words(variant.stripped.text, piece_offsets(source_pieces, SPACE_MARK), new_source)
    written = "".join(best.pieces).replace(SPACE_MARK, " ").lstrip()
    target = _words(written, piece_offsets(best.pieces, SPACE_MARK), new_target, best.piece_log_probabilities)
    known = {word.text.casefold() for word in source}
    target = [word._replace(new=0) if word.text.casefold() in known else word for word in target]
    if not _may_be_guessed(source, target):
        return alternatives
    attention = await piece_attention(decoded, 0, context)
    origins = _origins(source, target, np.asarray(attention.weights))
    text, copied = alternatives[0].text, []
    for guess, word in _guesses(written, target, origins):
        places = re.compile(rf"\b{re.escape(guess)}\b")
        if len(places.findall(text)) == 1:
            copy = word if guess.islower() else word[:1].upper() + word[1:]
            text = places.sub(copy, text)  # letters and hyphens only
            copied.append(word)
    return (replace(alternatives[0], text=text, copied=tuple(copied)), *alternatives[1:]) if copied else alternatives


def _has_new_word(pieces: Sequence[str], new_pairs: Sequence[bool]) -> bool:
    """Return whether a new pair may be inside a word: its second piece continues with a letter or a byte of one."""
    return any(new and (piece[0].isalpha() or piece[0] == "<") for piece, new in zip(pieces, new_pairs, strict=False))


def _may_be_guessed(source: Sequence[_Word], target: Sequence[_Word]) -> bool:
    """Return whether `_guesses` can find a guess at all. Most translations have none, and need no attention."""
    new = max((word.new for word in source if len(word.text) >= LEAST_LETTERS), default=0)
    return any(
        _is_improbable([word], strict=not word.new and new == 1)
        for word in target
        if (word.new or new) and len(word.text) >= LEAST_LETTERS
    )


def _is_improbable(words: Sequence[_Word], *, strict: bool) -> bool:
    """Compare the geometric mean of the probabilities of the tokens with the limit for guesses, or a stricter one."""
    mean = sum(word.log_probability for word in words) / sum(word.last - word.first for word in words)
    return math.exp(mean) < (STRICT_PROBABILITY if strict else GUESS_PROBABILITY)


def _origins(source: Sequence[_Word], target: Sequence[_Word], attention: NDArray[np.float32]) -> list[_Word | None]:
    """Return the source word to which each target word attends most. `attention` [T, S] is that between the tokens.

    A compound of known words has none, as `Preisbedingungen` for "pricing terms": a copy of one word loses the other.
    """
    if not source:
        return [None] * len(target)
    sums = np.pad(attention, ((1, 0), (1, 0))).cumsum(0, float).cumsum(1)  # of all rows and columns before
    rows = sums[[word.last for word in target]] - sums[[word.first for word in target]]
    weights = rows[:, [word.last for word in source]] - rows[:, [word.first for word in source]]
    long = np.pad(weights * [len(word.text) >= LEAST_LETTERS for word in source], ((0, 0), (1, 0)))
    shared = np.sort(long, 1)[:, -2] > MOST_SHARED * weights.sum(1)
    best = zip([source[number] for number in weights.argmax(1)], target, shared, strict=True)
    return [None if both and not one.new and len(one.text) < len(word.text) else one for one, word, both in best]


def _guesses(text: str, words: Sequence[_Word], origins: Sequence[_Word | None]) -> Iterator[tuple[str, str]]:
    """Yield (guess, source word). Neighbours of a guess that attend to the same source word belong to it."""
    for origin, group in groupby(zip(words, origins, strict=True), key=lambda pair: pair[1]):
        members = [word for word, _ in group if len(word.text) >= LEAST_LETTERS]
        if origin is None or len(origin.text) < LEAST_LETTERS or not members:
            continue
        invented = any(word.new and _is_improbable([word], strict=False) for word in members)
        if (invented or origin.new) and _is_improbable(members, strict=not invented and origin.new == 1):
            guess = text[members[0].begin : members[-1].end]
            if guess.casefold() != origin.text.casefold():
                yield guess, origin.text


def _words(
    text: str, offsets: Sequence[int], new_pairs: Sequence[bool], log_probabilities: Sequence[float] | None = None
) -> list[_Word]:
    """Return the words of a text. `offsets` are those of its tokens, `new_pairs` those of SourceBigrams."""
    words = []
    for match in _WORD.finditer(text):
        first = max(0, bisect_right(offsets, match.start()) - 1)
        last = bisect_left(offsets, match.end())
        score = sum(log_probabilities[first:last]) if log_probabilities else 0.0
        words.append(_Word(*match.span(), match[0], first, last, sum(new_pairs[first + 1 : last]), score))
    return words
