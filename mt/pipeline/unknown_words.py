"""Words that a model cannot know: found by their tokens, and copied from the source instead of invented.

A tokenizer divides a rare word into tokens. If two neighbouring tokens of a word never occurred together in the
training text, the model has never read the word. Its translation is a guess, often a word of no language.
"""

import math
import re
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
LEAST_PROBABILITY = {True: 0.5, False: 0.25}
"""Words of at least this probability are no guess: the geometric mean over their tokens. The second limit is that of
known words for a word with one new pair: a model translates most compounds of two known words correctly."""

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")


class _Word(NamedTuple):
    begin: int
    end: int
    text: str
    first: int  # number of its first token
    last: int  # number after its last token
    new: int  # number of its pairs of neighbouring tokens that never occurred in the training text


class _Guess(NamedTuple):
    """Consecutive words of a translation that stand for one source word which the model cannot know."""

    written: str
    source: str


async def copy_unknown_words(
    decoded: DecodedVariant, alternatives: tuple[Alternative, ...], context: SentenceContext
) -> tuple[Alternative, ...]:
    """Replace the guesses for unknown words in the best of `alternatives` by these words.

    A guess is a target word of low probability that the model has never read, or that attends to a source word that it
    has never read. `Alternative.copied` lists the source words. `alternatives` are the restored ones of `decoded`.
    """
    if context.bigrams is None or context.terms.glossary or decoded.variant.stand_ins:
        return alternatives
    variant, best = decoded.variant, decoded.best
    tokens = decoded.request.source[len(context.tag) : -1]
    offsets = piece_offsets(context.tokenizer.pieces(tokens), SPACE_MARK)
    source = _words(variant.stripped.text, offsets, context.bigrams.new_pairs(context.source, tokens))
    written = "".join(best.pieces).replace(SPACE_MARK, " ").lstrip()
    ids = decoded.tokens[0][len(context.prefix) :]
    new = context.bigrams.new_pairs(context.target, ids) if context.reads_target else [False] * (len(ids) + 1)
    target = _words(written, piece_offsets(best.pieces, SPACE_MARK), new)
    if not any(word.new for word in (*source, *target)):
        return alternatives
    attention = await piece_attention(decoded, 0, context)
    origins = _origins(source, target, np.asarray(attention.weights))
    text, copied = alternatives[0].text, []
    for guess in _guesses(written, target, origins, best.piece_log_probabilities):
        places = re.compile(rf"\b{re.escape(guess.written)}\b")
        if len(places.findall(text)) == 1:
            word = guess.source if guess.written.islower() else guess.source[:1].upper() + guess.source[1:]
            text = places.sub(word, text)  # letters and hyphens only
            copied.append(guess.source)
    return (replace(alternatives[0], text=text, copied=tuple(copied)), *alternatives[1:]) if copied else alternatives


def _origins(source: Sequence[_Word], target: Sequence[_Word], attention: NDArray[np.float32]) -> list[_Word | None]:
    """Return the source word to which each target word attends most. `attention` [T, S] is that between the tokens."""
    origins: list[_Word | None] = []
    for word in target:
        weights = attention[word.first : word.last].sum(0)
        origins.append(max(source, key=lambda one: weights[one.first : one.last].sum(), default=None))
    return origins


def _guesses(
    text: str, words: Sequence[_Word], origins: Sequence[_Word | None], log_probabilities: Sequence[float]
) -> Iterator[_Guess]:
    """Yield the guesses in a translation. Neighbours of a guess that attend to the same source word belong to it."""
    known = {origin.text.casefold() for origin in origins if origin}
    for origin, group in groupby(zip(words, origins, strict=True), key=lambda pair: pair[1]):
        members = [word for word, _ in group if len(word.text) >= LEAST_LETTERS]
        if origin is None or len(origin.text) < LEAST_LETTERS or not members:
            continue
        invented = any(word.new and word.text.casefold() not in known for word in members)
        scores = [score for word in members for score in log_probabilities[word.first : word.last]]
        limit = LEAST_PROBABILITY[invented or origin.new > 1]
        if (invented or origin.new) and math.exp(sum(scores) / len(scores)) < limit:
            guess = text[members[0].begin : members[-1].end]
            if guess.casefold() != origin.text.casefold():
                yield _Guess(guess, origin.text)


def _words(text: str, offsets: Sequence[int], new_pairs: Sequence[bool]) -> list[_Word]:
    """Return the words of a text. `offsets` are those of its tokens, `new_pairs` those of SourceBigrams."""
    places = np.asarray(offsets)
    words = []
    for match in _WORD.finditer(text):
        first = max(0, int(np.searchsorted(places, match.start(), "right")) - 1)
        last = int(np.searchsorted(places, match.end(), "left"))
        words.append(_Word(*match.span(), match[0], first, last, sum(new_pairs[first + 1 : last])))
    return words
