"""Words that a model does not know: looked up in its phrases, or copied from the source instead of invented.

A tokenizer divides a rare word into tokens. If two neighbouring tokens of a word never occurred together in the
training text, the model has never read the word. Its translation is a guess, often a word of no language. As in Luong
et al. 2015, "Addressing the Rare Word Problem in Neural Machine Translation", a dictionary translates such a word.
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

from mt.languages import primary_language
from mt.pipeline.driver import DecodeCall
from mt.pipeline.results import Alternative, with_text
from mt.pipeline.variants import DecodedVariant, SentenceContext, piece_attention
from mt.text import casing, names, negation, protect, quotations
from mt.text.alignment import piece_offsets
from mt.text.phrases import Phrases
from mt.tokenizer import SPACE_MARK

LEAST_LETTERS = 4  # shorter words are neither guesses nor copied
MOST_SHARED = 0.15  # of the attention of a target word: a second source word with more is a part of it
GUESS_PROBABILITY, STRICT_PROBABILITY = 0.5, 0.25
"""Words of at least this probability are no guess: the geometric mean over their tokens. The strict limit is that of
known words for a word with one new pair: a model translates most compounds of two known words correctly."""
NOUN_PROBABILITY, KNOWN_PROBABILITY = 0.7, 0.8  # a guess for a noun has less; a word of it that has more stays

_WORD = re.compile(r"(?<![^\W\d_])(?<!\d-)[^\W\d_]+(?:-[^\W\d_]+)*")  # not year-old of 2,000-year-old
_MOST_WORDS = 3  # of a phrase
_MOST_TOKENS = 2  # of a word in place of which the model may invent a form, but no other word
_LONGEST_ENDING = 2  # number of letters by which two forms of a word differ
_ELIDED = re.compile(r"\b([dl])(?:['’]|([ae]) )\Z", re.IGNORECASE)  # French l', le, la, d' and de
# German words that begin a sentence with a noun; other words with a capital before a noun are titles and first names
_DETERMINER = re.compile(
    r"d(?:er|ie|as|e[smn])|(?!eins)(?:[kmds]?ein|ihr|unser|dies|jed|welch|all|viel)\w*|[bv]eim|[ia][mn]|zu[mr]|mit|für",
    re.I,
)
_VOWELS = frozenset("aeiouyâàéèêëîïôœ")


class _Word(NamedTuple):
    begin: int
    end: int
    text: str
    first: int  # number of its first token
    last: int  # number after its last token
    new: int  # number of its pairs of neighbouring tokens that never occurred in the training text
    log_probability: float  # of its tokens together; 0 in a source
    phrase: str | None = None  # translation of a source word, or of up to three together, that is a phrase
    is_noun: bool = False  # a phrase that is a noun in German, and has more tokens than words
    is_typed: bool = False  # a source word that stands for itself
    is_compound: bool = False  # perhaps: a German noun without a neighbour that makes it a name, or with a hyphen


async def replace_guesses(
    decoded: DecodedVariant, alternatives: tuple[Alternative, ...], context: SentenceContext
) -> tuple[Alternative, ...]:
    """Replace the guesses in the best of `alternatives` by phrases of the model, or by words of the source.

    A guess is a target word of low probability that the model has never read, or that attends to a source word that it
    has never read, or to a noun among the phrases. `Alternative.copied` lists the source words that replace a guess.
    `alternatives` are the restored ones of `decoded`.
    """
    if context.bigrams is None or decoded.variant.terms or decoded.variant.stand_ins:
        return alternatives
    variant, best = decoded.variant, decoded.best
    if math.exp(min(best.piece_log_probabilities, default=0.0)) >= NOUN_PROBABILITY:
        return alternatives  # no token is a guess, and no word
    tokens, ids = decoded.request.source[len(context.tag) : -1], decoded.hypotheses[0].tokens[len(context.prefix) :]
    new_source = context.bigrams.new_pairs(context.source, tokens)
    new_target = context.bigrams.new_pairs(context.target, ids) if context.reads_target else [False] * (len(ids) + 1)
    offsets = piece_offsets(context.tokenizer.pieces(tokens), SPACE_MARK)
    source = _with_phrases(_words(variant.stripped.text, offsets, new_source), variant.stripped.text, context)
    written = "".join(best.pieces).replace(SPACE_MARK, " ").lstrip()
    target = _words(written, piece_offsets(best.pieces, SPACE_MARK), new_target, best.piece_log_probabilities)
    known = {word.text.casefold() for word in source}
    target = [word._replace(new=0) if word.text.casefold() in known else word for word in target]
    if not any(word.new or word.is_noun for word in (*source, *target) if len(word.text) >= LEAST_LETTERS):
        return alternatives  # most translations need no attention
    attention = await piece_attention(decoded, 0, context)
    text, copied = alternatives[0].text, []
    for guess, word in _guesses(written, target, *_origins(source, target, np.asarray(attention.weights))):
        places = [*re.finditer(rf"(?<![\w`@/.]){re.escape(guess)}(?![\w`@/])", text)]
        code = protect.find_translated_spans(text, variant.spans)
        is_needed = not all(negation.may_be_guess(one, context.target) for one in guess.split())
        is_banned = (word.phrase or word.text) in context.banned
        if is_needed or is_banned or len(places) != 1 or await _is_stable(guess, word, context):
            continue
        begin, end = places[0].span()
        is_elided = text[begin - 1 : begin] in ("'", "’") and not _ELIDED.search(text[:begin])  # as s' and qu'
        if not is_elided and not any(one.begin < end and begin < one.end for one in code):
            has_capital = begin == 0 if word.phrase else not guess.islower()
            instead = word.phrase or word.text
            instead = casing.raise_first(instead, context.target) if has_capital else instead
            text = _elide(text[:begin], instead, context.target) + instead + text[end:]
            copied += [] if word.phrase else [word.text]
    return (with_text(replace(alternatives[0], copied=tuple(copied)), text), *alternatives[1:])


async def _is_stable(guess: str, word: _Word, context: SentenceContext) -> bool:
    """Return whether the model also writes a guess, perhaps another form of it, for the word alone, which it knows."""
    if word.new or word.phrase:
        return False
    (result,) = await DecodeCall([context.request(word.text, context.options)])
    alone = context.alternative(result.hypotheses[0]).text if result.hypotheses else ""
    length = max(LEAST_LETTERS, len(guess) - _LONGEST_ENDING)
    return alone.casefold()[:length] == guess.casefold()[:length] != word.text.casefold()[:length]


def _with_phrases(words: Sequence[_Word], text: str, context: SentenceContext) -> list[_Word]:
    """Return the words of a source with their phrases. Neighbours that are a phrase together become one word.

    A noun has a capital in German. Only rare words have several tokens. Names have no phrases: words with a capital in
    English and French, except plurals that begin the sentence, and nouns after a word with a capital in German.
    """
    joined: list[_Word] = []
    phrases, is_german = context.phrases or Phrases(()), primary_language(context.source) == "de"
    typed = quotations.literal_words(text)  # in lower case
    while words:
        for count in range(min(_MOST_WORDS, len(words)), 0, -1):
            begin, end, last = words[0].begin, words[count - 1].end, words[count - 1].last
            if phrase := phrases.translate_words(text[begin:end].lower(), context.source, context.target):
                break
        word = words[0]._replace(end=end, text=text[begin:end], last=last, new=max(one.new for one in words[:count]))
        before = joined[-1].text if joined and text[joined[-1].end : begin] in (" ", ". ") else ""  # Dr. Koch
        is_name = before[:1].isupper() and not _DETERMINER.fullmatch(before)
        if not is_german:
            is_name = text[begin].isupper() and (begin > 0 or not word.text.endswith("s"))
            is_name = is_name and not names.is_term(text, begin, end)
        if phrase and not is_name and text[begin:end] not in typed:
            german = phrases.translate(word.text.lower(), context.source, "de") or ""
            is_noun = german[:1].isupper() and text[begin].isupper() >= is_german and last - word.first > count
            word = word._replace(phrase=phrase, is_noun=is_noun)
        after = words[count].text if count < len(words) and text[end : words[count].begin] == " " else ""
        is_noun = text[begin].isupper() and not (is_name or after[:1].isupper())
        is_compound = is_german and (is_noun or "-" in word.text)
        joined.append(word._replace(is_typed=word.text in typed, is_compound=is_compound))
        words = words[count:]
    return joined


def _elide(before: str, word: str, language: str) -> str:
    """Return the text before a French word with the form of `le`, `la` or `de` that this word needs."""
    article = _ELIDED.search(before) if primary_language(language) == "fr" and word[0] not in "hH" else None
    if not article:
        return before
    ending = "'" if word[0].lower() in _VOWELS else f"{article[2] or 'e'} "
    return re.sub(r"\bà le \Z", "au ", before[: article.end(1)] + ending)


def _probability(words: Sequence[_Word]) -> float:
    """Return the geometric mean of the probabilities of the tokens of words."""
    return math.exp(sum(word.log_probability for word in words) / sum(word.last - word.first for word in words))


def _origins(
    source: Sequence[_Word], target: Sequence[_Word], attention: NDArray[np.float32]
) -> tuple[list[_Word | None], list[float]]:
    """Return the source word to which each target word attends most, and its sum of attention.

    `attention` [T, S] is that between the tokens. A compound of known words has none, as `Preisbedingungen` for
    "pricing terms": a copy of one word loses the other.
    """
    if not source:
        return [None] * len(target), [0.0] * len(target)
    sums = np.zeros((attention.shape[0] + 1, attention.shape[1] + 1))  # of all rows and columns before
    sums[1:, 1:] = attention.cumsum(0, float).cumsum(1)
    rows = sums[[word.last for word in target]] - sums[[word.first for word in target]]
    weights = rows[:, [word.last for word in source]] - rows[:, [word.first for word in source]]
    long = np.zeros((len(target), len(source) + 1))
    long[:, 1:] = weights * [len(word.text) >= LEAST_LETTERS for word in source]
    shared = np.sort(long, 1)[:, -2] > MOST_SHARED * weights.sum(1)
    best = zip([source[number] for number in weights.argmax(1)], target, shared, strict=True)
    origins = [None if both and not one.new and len(one.text) < len(word.text) else one for one, word, both in best]
    return origins, weights.max(1).tolist()


def _guesses(
    text: str, words: Sequence[_Word], origins: Sequence[_Word | None], weights: Sequence[float]
) -> Iterator[tuple[str, _Word]]:
    """Yield (guess, source word). Neighbours of a guess that attend to the same source word belong to it.

    Of several groups of neighbours that attend to a source word, only the one with the most attention translates it.
    """
    strongest: dict[_Word, tuple[float, list[_Word]]] = {}
    for origin, group in groupby(zip(words, origins, weights, strict=True), key=lambda one: one[1]):
        together = list(group)
        weight = sum(one[2] for one in together)
        if origin and len(origin.text) >= LEAST_LETTERS and weight > strongest.get(origin, (0.0, []))[0]:
            strongest[origin] = weight, [word for word, _, _ in together]
    for origin, (_, neighbours) in strongest.items():
        members = [one for one in neighbours if len(one.text) >= LEAST_LETTERS or (one.begin and one.text.istitle())]
        if members and (guess := (_guess_for_noun if origin.is_noun else _guess_for_word)(text, members, origin)):
            yield guess, origin


def _guess_for_noun(text: str, members: Sequence[_Word], noun: _Word) -> str:
    """Return the guess for a noun among the phrases: all of its words that the model is not sure of, or ""."""
    phrase = noun.phrase or ""
    if copies := [word.text for word in members if word.text.casefold() == noun.text.casefold() != phrase.casefold()]:
        return copies[0]
    unsure = [word for word in members if word.new or _probability([word]) < KNOWN_PROBABILITY] or members
    is_translated = len(unsure) < len(members) and " " not in noun.text  # by a word that the model is sure of
    is_guess = _probability(unsure) < NOUN_PROBABILITY and not is_translated
    if phrase[:1].isupper():  # in German; not the verb beside it
        unsure = [word for word in unsure if word.text[0].isupper()] or unsure
    guess = text[unsure[0].begin : unsure[-1].end]
    is_guess = is_guess and not (guess.islower() and phrase[:1].isupper())
    return guess if is_guess and phrase.casefold() not in text.casefold() else ""


def _guess_for_word(text: str, members: Sequence[_Word], word: _Word) -> str:
    """Return the guess for another word, or "": words that the model invented, or all if it has never read the word.

    The model translates most German compounds of known words correctly, or in part.
    """
    invented = [one for one in members if one.new and _probability([one]) < _limit(one)]
    is_unread = word.new > 0 if word.phrase else word.new > 1 and not word.is_compound
    is_known = not (word.new or word.phrase or word.is_typed) and word.text.islower()  # only an ending may be invented
    is_translated = any(not one.new and _probability([one]) >= KNOWN_PROBABILITY for one in members)
    if is_translated or not (invented or is_unread):
        return ""
    is_part = invented and not word.is_compound  # the other words may be those of its neighbours
    unsure = members[members.index(invented[0]) : members.index(invented[-1]) + 1] if is_part else members
    guess, instead = text[unsure[0].begin : unsure[-1].end], (word.phrase or word.text).casefold()
    begins_alike = guess.casefold()[:LEAST_LETTERS] == instead[:LEAST_LETTERS]
    is_form = is_known and (begins_alike or word.last - word.first <= _MOST_TOKENS)
    limit = GUESS_PROBABILITY if invented or word.new != 1 else STRICT_PROBABILITY
    is_there = re.search(rf"(?<!\w){re.escape(instead)}(?!\w)", text.casefold())
    return guess if _probability(unsure) < limit and not (is_form or is_there) else ""


def _limit(word: _Word) -> float:
    """Return the least probability of a word that is not invented; a word of two tokens is often an inflected form."""
    return STRICT_PROBABILITY if word.last - word.first <= _MOST_TOKENS else GUESS_PROBABILITY


def _words(
    text: str, offsets: Sequence[int], new_pairs: Sequence[bool], log_probabilities: Sequence[float] | None = None
) -> list[_Word]:
    """Return the words of a text. `offsets` are those of its tokens, `new_pairs` those of SourceBigrams."""
    words = []
    for match in _WORD.finditer(text):
        first = max(0, bisect_right(offsets, match.start()) - 1)
        last = bisect_left(offsets, match.end())
        score = sum(log_probabilities[first:last]) if log_probabilities else 0.0
        hyphens = {bisect_right(offsets, match.start() + at) - 1 for at, sign in enumerate(match[0]) if sign == "-"}
        new = sum(new_pairs[at] for at in range(first + 1, last) if hyphens.isdisjoint((at - 1, at)))
        words.append(_Word(*match.span(), match[0], first, last, new, score))
    return words
