"""Stand-ins: ordinary words that a model reads in place of placeholders, empty elements and other protected spans.

A placeholder stands for a word. If it is removed from a sentence, the model loses the words beside it: "He lives in ."
has no place for "in". A model reads the sentence with a name or a number in place of the placeholder, and the
translation is used only if it contains this stand-in exactly once, in an acceptable place (`put_back`).
"""

import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from mt.languages import likely_script, primary_language
from mt.text.alignment import WIDE, Range
from mt.text.protect import ProtectedSpan, can_have_ending, words_at
from mt.text.span_patterns import FORMAT, PLACEHOLDER, SIGNS_WITH_WORDS, UNIT
from mt.text.word_tables import read_tables

_VOWELS = "AEIOU"
_WITHOUT_NAME, _NUMERIC_FORMAT, _MEASURE, _IDENTIFIER, _AMOUNT, _TITLE, _GREETING, _COMPOUND, _IN, _AT = (
    re.compile(pattern) for pattern in read_tables("stand_ins.toml")["patterns"].values()
)
_TABLES = read_tables("stand_ins.toml")
_PLACES, _NUMBERS, _DATES, _TIMES, _PEOPLE = (frozenset(words.split()) for words in _TABLES["placeholders"].values())
_BESIDE = 30  # number of characters beside a stand-in that are examined
_MOST_DIGITS = 6
_NEAR = 14  # number of characters before a span that choose its stand-in
_JOINT = re.compile(r"[.,:/]\d")
_DIGITS_BESIDE = re.compile(r"(\d+)\W{0,2}$"), re.compile(r"\W{0,2}(\d+)")
_CLITIC = frozenset({"da", "de", "lb", "nb", "nl", "nn", "no", "sv"})  # languages with genitives such as "Toms"
_AROUND = {"(": ")", "[": "]", '"': '"', "“": "”", "„": "“", "«": "»", "« ": "»", "‘": "’", "'": "'", "「": "」"}
_OPENING, _CLOSING = "([{\"“„”«»‘‚’'「『（", ")]}\"“”«»’‘'」』）"
_SPACED_QUOTES = "«»‹›"
_GENITIVE = r"\b(?i:by|des?|d|of|par|v[ao]n)[ '’](?:[^\W\d]+ )?{0}|{0}['’]?s(?!\w)"  # of a source; not `order Tom`
_WORDS_READ = re.compile(r"[^\W_]+")
_WORD = re.compile(f"[^\\W{WIDE}]+")


class StandInKind(Enum):
    """Kind of a word that stands for a span."""

    NAME = "name"
    PLACE = "place"
    NUMBER = "number"
    LETTER = "letter"
    DATE = "date"
    TIME = "time"
    MEASURE = "measure"


_WORDS = {StandInKind(kind): words.split() for kind, words in _TABLES["words"].items()}
_WORDS[StandInKind.MEASURE] = [f"{number} kg" for number in _WORDS[StandInKind.NUMBER]]
_NOT_LATIN = {StandInKind.NAME: StandInKind.LETTER, StandInKind.PLACE: StandInKind.LETTER}
"""Kinds of words in place of names if the target language has another script: models transliterate names."""


@dataclass(frozen=True, slots=True)
class StandIn:
    """A word that stands for `text` in the sentence that a model reads. The sentence contains it only once."""

    word: str
    text: str
    enclosed: bool = False  # whether brackets or quotation marks surround the word
    ordered: bool = False  # whether `text` is a placeholder without name or number, such as %s: its order has a meaning


@dataclass(frozen=True, slots=True)
class ReplacedText:
    """A sentence in which `stand_ins` replace some spans. `others` are other spans at their places in `text`."""

    text: str
    stand_ins: tuple[StandIn, ...]
    others: tuple[ProtectedSpan, ...]


def is_placeholder(text: str) -> bool:
    """Return whether a protected span is a placeholder: it never stands for itself, so no model needs to read it."""
    return PLACEHOLDER.fullmatch(text) is not None


def likely_kinds(text: str, before: str = "", after: str = "") -> tuple[StandInKind, ...]:
    """Return the kinds of words that a span can stand for, the more likely one first.

    `before` and `after` are the texts beside it. Models drop the preposition `in` before the name of a person. They
    know letters such as X from documentation, where these stand for names of things.
    """
    form = FORMAT.fullmatch(text)
    if _NUMERIC_FORMAT.search(text) or (form and form[1] in "diuxXoeEfFgGn"):
        return (StandInKind.NUMBER,)
    if _MEASURE.fullmatch(text):
        return (StandInKind.MEASURE,)
    is_amount = any(map(str.isnumeric, text)) and UNIT.search(text) and not is_placeholder(text)  # €5 and 1½
    if is_amount or text[-1] in SIGNS_WITH_WORDS or text[0] in "€£§":  # also {a}€
        return (StandInKind.NUMBER,)
    if "@" in text[1:-1]:  # user{id}@example.com
        return (StandInKind.NAME,)
    words = [word.lower() for word in _IDENTIFIER.findall(text.rpartition(")")[0] if form else text)]
    last = words[-1] if words else ""
    if last in _PLACES:
        return (StandInKind.PLACE,)
    if last in _DATES:
        return (StandInKind.DATE,)
    if last in _TIMES:
        return (StandInKind.TIME if _AT.search(before) else StandInKind.NAME,)
    if last in _NUMBERS or (words and words[0] in ("n", "num", "number", "count", "total")):
        return (StandInKind.NUMBER,)
    if _IN.search(before) and is_placeholder(text) and not after.strip()[:1].islower():
        return (StandInKind.NAME, StandInKind.PLACE)
    if (last in _PEOPLE and _PEOPLE.issuperset(words)) or (any(map(str.isalpha, text)) and not is_placeholder(text)):
        return (StandInKind.NAME,)
    return (StandInKind.NAME, StandInKind.NUMBER, StandInKind.LETTER)


class StandInWords:
    """The words that a tokenizer knows well enough to stand for spans: those with the fewest pieces come first."""

    def __init__(self, count_pieces: Callable[[str], int], target: str) -> None:
        """Rank the words. `count_pieces` returns the number of pieces of a word, or 0 if a character is unknown.

        Models write names in the script of their target language `target`. They copy letters.
        """
        latin = likely_script(target) in ("Latn", "")
        self._words = {
            kind: sorted(filter(count_pieces, words if latin else _WORDS[_NOT_LATIN.get(kind, kind)]), key=count_pieces)
            for kind, words in _WORDS.items()
        }

    def choose(
        self, texts: Sequence[str], kinds: Sequence[StandInKind], sentence: str, befores: Sequence[str], skip: int
    ) -> list[str] | None:
        """Return a word of each kind, all different and none of them in the sentence. Return None if there are too few.

        An amount of money stands for itself, without its sign and its decimals. `texts` are the spans, and `befores`
        the characters before each of them. `skip` is the number of words of each kind that are passed over.
        """
        read = f" {' '.join(_WORDS_READ.findall(sentence.lower()))} "
        free = {kind: [one for one in words if f" {one.lower()} " not in read] for kind, words in self._words.items()}
        chosen: list[str] = []
        for text, kind, before in zip(texts, kinds, befores, strict=True):
            amount = _AMOUNT.match(text) if kind is StandInKind.NUMBER and not skip else None
            whole = re.sub(r"\D", "", amount[1]) if amount else ""
            if 0 < len(whole) <= _MOST_DIGITS and whole not in sentence.replace(text, "", 1) and whole not in chosen:
                chosen.append(whole)
                continue
            elided = before[-1:] in ("'", "’") and before[-2:-1].isalpha()
            left = [word for word in free[kind][skip:] if word not in chosen]
            fitting = [word for word in left if (word[0] in _VOWELS) == elided] or left
            if not fitting:
                return None
            chosen.append(fitting[0])
        return chosen


def replace_spans(
    sentence: str,
    spans: Sequence[ProtectedSpan],
    others: Sequence[ProtectedSpan],
    choose: Callable[[Sequence[str], Sequence[str]], Sequence[str] | None],
) -> ReplacedText:
    """Replace spans by the words that `choose` returns for their texts and for the characters before each.

    Adjacent spans, and the letters and digits that touch them, get one word. `others` are spans that stay. If `choose`
    returns None, all spans stay.
    """
    ranges = _ranges(sentence, spans)
    texts, befores = [sentence[b:e] for b, e in ranges], [sentence[max(0, b - _NEAR) : b] for b, _ in ranges]
    if not spans or (words := choose(texts, befores)) is None:
        return ReplacedText(sentence, (), tuple(sorted([*others, *spans], key=lambda span: span.begin)))
    text, end = "", 0
    stand_ins, moved = [], []
    for (begin, stop), word in zip([*ranges, (len(sentence), len(sentence))], [*words, ""], strict=True):
        shift = len(text) - end
        moved += [
            replace(span, begin=span.begin + shift, end=span.end + shift)
            for span in others
            if end <= span.begin and span.end <= begin
        ]
        text += sentence[end:begin]
        if word:
            span = sentence[begin:stop]
            before, after = text[-2:] if text[-1:] == " " else text[-1:], sentence[stop : stop + 2].lstrip()[:1]
            stand_ins.append(StandIn(word, span, _AROUND.get(before) == after, _WITHOUT_NAME.search(span) is not None))
        text, end = text + word, stop
    return ReplacedText(text, tuple(stand_ins), tuple(moved))


def _ranges(sentence: str, spans: Sequence[ProtectedSpan]) -> list[Range]:
    ranges: list[Range] = []
    words = words_at(sentence, _WORD) if spans else ()
    for span in spans:
        begin, end = words[span.begin][0], words[span.end][1]
        if ranges and not sentence[ranges[-1][1] : begin].strip():
            begin = ranges.pop()[0]
        ranges.append((begin, end))
    return ranges


def put_back(translation: str, source: str, stand_ins: Sequence[StandIn], language: str) -> str | None:
    """Return the translation with the text of each stand-in in place of the stand-in.

    A title before a stand-in is removed if the source has a greeting without a title, as in "Dear Anna". Return None if
    the translation does not contain each stand-in exactly once, if one has become a part of a number, is beside another
    one or has lost its brackets or quotation marks, or if placeholders without names have changed their order.
    """
    if not stand_ins:
        return translation
    places = list(_occurrences(translation, source, stand_ins, language))
    if sorted(number for number, _ in places) != list(range(len(stand_ins))):
        return None
    ordered = [number for number, _ in places if stand_ins[number].ordered]
    digits = set(re.findall(r"\d+", source))
    if ordered != sorted(ordered) or not all(
        _is_acceptable(translation, place, digits, stand_ins[number].enclosed)
        and not _is_part_of_number(translation, place, source)
        for number, place in places
    ):
        return None
    text, end = "", 0
    for number, (begin, stop) in places:
        before, after = translation[end:begin], stand_ins[number]
        if _GREETING.search(source[: source.find(after.word)]):
            before = _TITLE.sub("", before)
        text += (
            before.rstrip() if after.enclosed and before.rstrip()[-1:] not in _SPACED_QUOTES else before
        ) + after.text
        end = stop
        if _joins_number(translation, stop, source, after):
            text, end = f"{text} ", stop + 1
        elif translation[stop : stop + 2] in ("'s", "’s") and can_have_ending(after.text):
            end = stop + (primary_language(language) in _CLITIC)  # Peter's becomes Peters
    return text + translation[end:]


def _joins_number(translation: str, stop: int, source: str, stand_in: StandIn) -> bool:
    """Return whether a hyphen joins a placeholder that may be a number to a word, as in `37-Dateien` for "37 files"."""
    may_be_number = stand_in.word.isdecimal() or StandInKind.NUMBER in likely_kinds(stand_in.text)
    is_joined = _COMPOUND.match(translation, stop) is not None and f"{stand_in.word}-" not in source
    return is_joined and may_be_number and is_placeholder(stand_in.text)


def _occurrences(text: str, source: str, stand_ins: Sequence[StandIn], language: str) -> Iterator[tuple[int, Range]]:
    """Yield (index of a stand-in, range) for each occurrence of a stand-in as a word, in the order of the text."""
    clitic = primary_language(language) in _CLITIC
    numbers = {stand_in.word: number for number, stand_in in enumerate(stand_ins)}
    names = "|".join(map(re.escape, sorted(numbers, key=len, reverse=True)))
    for match in re.finditer(rf"({names})(s?)", text):
        beside = text[max(0, match.start() - 1) : match.start()], text[match.end() : match.end() + 1]
        if any(map(_WORD.match, beside)):
            continue
        genitive = clitic and re.search(_GENITIVE.format(re.escape(match[1])), source)
        if not match[2] or (genitive and can_have_ending(stand_ins[numbers[match[1]]].text)):
            yield numbers[match[1]], match.span(1)


def _is_part_of_number(translation: str, place: Range, source: str) -> bool:
    """Return whether a mark joins a stand-in to digits, as in `37:31`, but not in the source."""
    begin, stop = place
    word, before, after = translation[begin:stop], translation[max(0, begin - 2) : begin], translation[stop : stop + 2]
    return word.isdecimal() and (
        (_JOINT.fullmatch(before[::-1]) is not None and before + word not in source)
        or (_JOINT.fullmatch(after) is not None and word + after not in source)
    )


def _is_acceptable(translation: str, place: Range, digits: Container[str], enclosed: bool) -> bool:
    """Return whether the text around a stand-in is possible. `digits` are the groups of digits of the source."""
    before, after = translation[max(0, place[0] - _BESIDE) : place[0]], translation[place[1] : place[1] + _BESIDE]
    if enclosed and not (before.strip() and before.rstrip()[-1] in _OPENING and after.lstrip()[:1] in _CLOSING):
        return False
    beside = (_DIGITS_BESIDE[0].search(before), _DIGITS_BESIDE[1].match(after))
    return all(match is None or match[1] in digits for match in beside)
