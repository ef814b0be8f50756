"""Spans that a translation must preserve: addresses, placeholders, code, file names, emoji and numbers.

Numbers stay in the sentence, because other words agree with them. If the model changes a number in all its hypotheses,
the original number replaces the target word that is aligned to it. Other spans stay in the sentence only if the model
copies them. Otherwise other words stand for them (mt.text.stand_ins). If the model does not copy these words either,
the spans are removed before the translation, and inserted between the translations of the neighbouring words. Models
need no training for this; docs/experiments/text-integrity.md has measurements.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from html.entities import html5
from itertools import chain, pairwise

from mt.languages import primary_language
from mt.text.alignment import WIDE, Range, is_in_word
from mt.text.markup.elements import HTML_NAMES
from mt.text.normalise import GROUP_SPACES
from mt.text.span_patterns import (
    CODE,
    EXACT,
    FORMAT,
    HINTS,
    MONEY,
    NUMBERS,
    PERIOD,
    PLACEHOLDER,
    PROSE,
    SPAN,
    UNIT,
    VERSION,
)
from mt.text.word_tables import read_tables

_SEPARATOR = re.compile(rf"(?<=\d)[.,’'{GROUP_SPACES}](?=\d)")
_RANGE, _ORDINAL, _FRENCH_TIME, _AMOUNT, _ARROW, _ARGUMENT, _END_TAG, _NAME_IN_BRACKETS = (
    re.compile(pattern) for pattern in read_tables("patterns.toml")["protection"].values()
)
_HOURS = "eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf".split()
HALF_HOUR = re.compile(rf"\bhalb ({'|'.join(_HOURS)})\b")
_SIGN_OF = {"do": "$", "eu": "€", "pf": "£", "po": "£", "li": "£"}  # by the first letters of the word for a currency
_SIMPLE, _SPEECH, _BEFORE_CAPITAL = (
    "|".join(patterns) for patterns in read_tables("patterns.toml")["markers"].values()
)
_LIST_MARKER = re.compile(
    rf"(?!\([Cc]\) \d{{4}})(?:(?:{_SIMPLE}|(?:{_BEFORE_CAPITAL})(?=\s+[A-ZÀ-ÖØ-Þ]))\s+){{1,4}}|{_SPEECH}"
)
# Languages that write ordinal numbers with a dot, such as "3. Mai"
_ORDINAL_DOT = frozenset("bg bs cs da de et fi hr hu is lb lt lv mk nb nn no pl sk sl sr tr".split())
_NUMBERED_LINE = re.compile(r"^[ \t>]*(\d{1,3})\.[ \t]", re.MULTILINE)
_MONTH = r"(?:J[aä]n|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez)(?:n?uar|ner|ruar|z|il|i|ust|t?(?:em|o)?(?:ber)?)"
_ORDINAL_LINE = re.compile(rf"^[ \t>]*\d+\.[ \t]+(?:{_MONTH}|Jahrhundert|Tag)\b", re.IGNORECASE | re.MULTILINE)
_BRACKETS = {"(": ")", "[": "]", "{": "}", "<": ">"}
_LONGEST_CACHED = 2000  # maximum number of characters of a sentence whose spans are cached
_LONG = 64  # maximum number of characters of a span that may be cut when a long sentence is split
_TRAILING = ".,;:!?'\"…*_~”’»"
_SENTENCE_END, _WORD_END = ".!?", ".:;!?'’~"
_BEFORE_WORD = re.compile("['‘’¿¡]*(?:(?:[cdjlmnst]|qu)['’](?=\\w))?", re.IGNORECASE)  # also l'UTF-8 of French
_OPENING = re.compile("[„“«]")
# Words that a placeholder touches, as in {1}Save{2}; not those of a name, such as img{0}.png
_WORD_BEFORE, _WORD_AFTER, _PART = map(
    re.compile, (r"(?<![^\s(>}„“«])[^\W\d_]{3,}\Z", r"[^\W\d_]{3,}(?![\w.]\w)", r"[\w./:@-]*\w")
)
_LONGEST_WORD = 40
_GLUED_WORD, _JOINT = re.compile(rf"(?:[^\W_{WIDE}]|[§{MONEY}])+"), re.compile("[./:@+=×–-]?")
_NUMBER_SIGN = re.compile(r"#(?=\d)")
# A mark without a partner that is not of direct speech, as in `Next »`
_WORD = re.compile(rf"[^\W_{WIDE}]+")
_COMPOUND = re.compile(r"(?:[^\W\d_]{2,}+-)++")  # end of a reversed compound: forward search is quadratic


class SpanKind(Enum):
    """Kind of a protected span, which determines how the span is preserved."""

    NUMBER = "number"  # stays in the sentence
    OPAQUE = "opaque"  # replaced or removed if the model does not copy it
    TAG = "tag"  # removed if the model does not copy it; adjacent letters are not removed with it
    EMOJI = "emoji"  # always removed: it has no grammatical function, as in {1}Save{2}
    KEPT = "kept"  # like OPAQUE, for a range that the caller protects


_MORE = frozenset({SpanKind.NUMBER, SpanKind.KEPT})  # may be more frequent in a translation than in its source
_DIVIDED = frozenset({SpanKind.OPAQUE, SpanKind.EMOJI})  # of a translation, may consist of a placeholder and others
_ORDERED = frozenset({SpanKind.OPAQUE, SpanKind.TAG})
_KINDS = {"number": SpanKind.NUMBER, "tag": SpanKind.TAG, "emoji": SpanKind.EMOJI}
_KINDS |= dict.fromkeys(("glued", "memoq"), SpanKind.EMOJI)


@dataclass(frozen=True, slots=True)
class ProtectedSpan:
    """A span of a sentence that must be preserved: `text` is `sentence[begin:end]`."""

    begin: int
    end: int
    text: str
    kind: SpanKind


def find_spans(sentence: str, kept: Sequence[Range] = ()) -> tuple[ProtectedSpan, ...]:
    """Return the spans of a sentence that must be preserved, in order and without overlaps.

    Each range of `kept` is extended to whole words and also becomes a span.
    """
    spans = _cached_spans(sentence) if len(sentence) <= _LONGEST_CACHED else _spans(sentence)
    if not kept:
        return spans
    merged: list[Range] = []
    words = set(_extend_to_words(sentence, kept))
    for begin, end in sorted([*words, *((span.begin, span.end) for span in spans)]):
        if merged and begin < merged[-1][1]:
            begin, end = merged[-1][0], max(end, merged.pop()[1])
        merged.append((begin, end))
    known = {place: span for span in spans if (place := (span.begin, span.end)) not in words}
    return tuple(known.get((b, e)) or ProtectedSpan(b, e, sentence[b:e], SpanKind.KEPT) for b, e in merged)


def list_marker_length(sentence: str, language: str) -> int:
    """Return the length of the list marker (bullet or number, with white space) that begins a sentence, or 0.

    `3.` is not a marker in languages that write ordinal numbers with a dot.
    """
    match = _LIST_MARKER.match(sentence)
    if not match or (match["ordinal"] and primary_language(language) in _ORDINAL_DOT):
        return 0
    return match.end() if any(map(str.isalnum, sentence[match.end() :])) else 0


def has_numbered_lines(text: str) -> bool:
    """Return whether the lines of a text are numbered from 1 on, by numbers that are no ordinal numbers of dates."""
    numbers = [int(number) for number in _NUMBERED_LINE.findall(text)] if "\n" in text else []
    return numbers[:2] == [1, 2] and not _ORDINAL_LINE.search(text)


def split_at_long_spans(sentence: str, kept: Sequence[Range] = ()) -> list[str]:
    """Split a sentence into the spans that must not be cut, and the texts between these spans.

    Long spans and the ranges `kept` must not be cut.
    """
    long = [span for span in find_spans(sentence, kept) if len(span.text) > _LONG or span.kind is SpanKind.KEPT]
    places = [place for span in long for place in (span.begin, span.end)]
    return [sentence[begin:end] for begin, end in pairwise([0, *places, len(sentence)]) if begin < end]


def lost_spans(spans: Sequence[ProtectedSpan], translation: str) -> list[ProtectedSpan]:
    """Return the spans that do not occur in a translation as often as in the source.

    A number may occur more often, because a model may write a number word in digits, and have the separators of the
    target language, as in 1.200,50 for 1,200.50. A KEPT span may occur more often, because it may be an ordinary word.
    """
    if not spans:
        return []
    counts, wanted = _count(translation, spans), Counter(map(span_key, spans))
    return [
        span
        for span in spans
        if (counts[key := span_key(span)] < wanted[key] and 0 in map(counts.__getitem__, _ends(span) or [""]))
        or (span.kind not in _MORE and counts[key] > wanted[key])
    ]


def has_doubled_numbers(spans: Sequence[ProtectedSpan], translation: str) -> bool:
    """Return whether a number of two digits or more occurs more often in a translation than in `spans`, all numbers."""
    counts = Counter(key for key in map(span_key, spans) if len(key) > 1 and key.isdecimal())
    found = Counter(span_key(one) for one in find_spans(translation)) if counts else counts
    return any(found[key] > count for key, count in counts.items())


def are_in_order(spans: Sequence[ProtectedSpan], translation: str) -> bool:
    """Return whether the placeholders, code and tags of a translation are in the order of `spans`.

    The translation must contain all `spans`.
    """
    order = [span.text for span in spans if span.kind in _ORDERED]
    if len(order) < 2:
        return True
    return order == [span.text for span in find_translated_spans(translation, spans) if span.text in set(order)]


def find_translated_spans(translation: str, spans: Sequence[ProtectedSpan]) -> tuple[ProtectedSpan, ...]:
    """Return all spans of a translation. `spans` are the spans of its source.

    The text of a KEPT span counts as a span at most as often as it occurs in `spans`, and not inside a word or another
    span. A placeholder of the source is a span without the letters beside it, such as `%s` in `%ss` and `l'%s`, and its
    marks of emphasis are spans beside any sign. Other spans of the source are so in compounds, as in `x.org-Portal`.
    """
    translated = find_spans(translation, list(_find_kept(translation, spans)))
    texts = {span.text for span in spans}
    placeholders = sorted(filter(PLACEHOLDER.fullmatch, texts), key=len, reverse=True)
    endings = [re.escape(text) + ("" if can_have_ending(text) else r"(?!\w)") for text in placeholders]
    marks = [re.escape(text) for text in texts if not text.strip("*")]
    emphasis = [rf"(?<!\*)(?:(?<=\S){mark}|{mark}(?=\S|\Z))(?!\*)" for mark in marks]
    compounds = [rf"{re.escape(text)}(?=-[^\W\d_]{{2}})" for text in texts if f"{text}-" in translation]
    if not (endings or emphasis or compounds):
        return translated
    pattern = re.compile("|".join(endings + emphasis + compounds))
    unchanged = [span for span in translated if span.text in texts or span.kind not in _DIVIDED]
    parts = _without_overlap(
        (ProtectedSpan(*match.span(), match[0], SpanKind.OPAQUE) for match in pattern.finditer(translation)), unchanged
    )
    return tuple(sorted([*parts, *_without_overlap(translated, parts)], key=lambda span: span.begin))


def can_have_ending(placeholder: str) -> bool:
    """Return whether a placeholder remains itself with a letter after it: `%s` and `{name}` do, `$name` does not."""
    return not placeholder[-1].isalnum() or FORMAT.fullmatch(placeholder) is not None


def _without_overlap(spans: Iterable[ProtectedSpan], others: Sequence[ProtectedSpan]) -> list[ProtectedSpan]:
    """Return the spans that do not overlap `others`, which are in order and do not overlap each other."""
    ends = [other.end for other in others]
    return [
        span
        for span in spans
        if (number := bisect_right(ends, span.begin)) == len(others) or others[number].begin >= span.end
    ]


def _find_kept(translation: str, spans: Sequence[ProtectedSpan]) -> Iterator[Range]:
    left, place = Counter(span.text for span in spans if span.kind is SpanKind.KEPT), 0
    lengths = Counter(map(len, left.elements()))
    if not left:
        return
    undivided = {*words_at(translation, _WORD), *((one.begin, one.end) for one in find_spans(translation))}
    inside = {at for begin, end in undivided for at in range(begin + 1, end)}
    while place < len(translation) and lengths:
        for length in sorted(lengths, reverse=True):
            text = translation[place : place + length]
            if left[text] and len(text) == length and inside.isdisjoint((place, place + length)):
                yield place, place + length
                place += length - 1
                left[text] -= 1
                lengths -= Counter([length])
                break
        place += 1


def _spans(sentence: str) -> tuple[ProtectedSpan, ...]:
    spans = tuple(_search(sentence)) if any(hint.search(sentence) for hint in HINTS) else ()
    spans = _whole_words(sentence, spans) if "{" in sentence and spans else spans
    if (sentence[:1] in ("«", "‹") or sentence[-1:] in ("»", "›")) and _ARROW.fullmatch(sentence):
        begin = 0 if sentence[0] in "«‹" else len(sentence) - 1
        arrow = ProtectedSpan(begin, begin + 1, sentence[begin], SpanKind.EMOJI)
        return (*spans, arrow) if begin else (arrow, *spans)
    return spans


_cached_spans = lru_cache(maxsize=16)(_spans)  # each step from a text to a request asks for the spans of the sentence


def _search(sentence: str) -> Iterator[ProtectedSpan]:
    closed = _closing_braces(sentence) if "{" in sentence else {}
    end_tags = set(_END_TAG.findall(sentence)) if "</" in sentence else set[str]()
    opening = first.start() if (first := _OPENING.search(sentence)) else len(sentence)
    quotes = counted = 0  # quotation marks before the offset `counted`, without the signs of inches
    arguments = sorted(set(_ARGUMENT.findall(sentence))) if "$1" in sentence else []
    place = 0
    while match := SPAN.search(sentence, place):
        begin, end = match.span()
        place, group = end, match.lastgroup or ""
        if group == "prose":
            continue
        if group == "brace":
            end = closed.get(end - 1, end if match[0] == "%%" else begin)
            if end == begin or PROSE.match(sentence, begin):
                continue
            place = end
            if _WORD_AFTER.match(sentence, end) or (
                _WORD_BEFORE.search(sentence, max(0, begin - _LONGEST_WORD), begin) and not _PART.match(sentence, end)
            ):
                group = "glued"
        elif group == "address":
            end = begin + len(_trim_address(match[0]) or match[0])  # [a](...) has no other address
        elif group == "number" and sentence[end : end + 1] == '"' and begin < opening:
            quotes += sentence.count('"', counted, end)
            counted = end
            if quotes % 2 == 0:  # the mark opens and closes nothing: inches
                group, end = "exact", end + 1
                counted = place = end
        elif group == "number" and match[0] in arguments and int(arguments[-1][1:]) == len(arguments):
            group = "argument"
        elif group == "number" and (VERSION.search(match[0]) or EXACT.search(match[0])):
            group = "exact"
        elif group == "word":
            begin, end = _trim_word(match[0], begin)
            if not CODE.search(sentence[begin:end]) or PERIOD.match(sentence, begin):
                while number := NUMBERS.search(sentence, begin, place):
                    number = (
                        NUMBERS.match(sentence, number.start()) or number
                    )  # its unit may follow the word: 20 °C–25 °C
                    yield ProtectedSpan(*number.span(), number[0], SpanKind.NUMBER)
                    begin = number.end()
                place = max(begin, place)
                continue
        elif group == "tag" and _is_named(match[0], end_tags):
            group = "name"
        yield ProtectedSpan(begin, end, sentence[begin:end], _KINDS.get(group, SpanKind.OPAQUE))


def _whole_words(sentence: str, spans: Sequence[ProtectedSpan]) -> tuple[ProtectedSpan, ...]:
    """Return the spans, each placeholder in braces as one with the letters, signs of money and code that touch it.

    A mark such as the dot of `{first}.{last}` joins two placeholders, or one and code.
    """
    words, whole = words_at(sentence, _GLUED_WORD), list[tuple[int, int, SpanKind, bool]]()
    for span in spans:
        begin, end, kind, is_held = span.begin, span.end, span.kind, _has_braces(span)
        if is_held:
            begin, end = words[begin][0], words[end][1]
        while whole:
            first, last, kind_before, holds = whole[-1]
            are_joined = (is_held or holds) and kind is kind_before is SpanKind.OPAQUE
            if begin >= last and not (are_joined and _JOINT.fullmatch(sentence, last, begin)):
                break
            begin, end, kind, is_held = min(begin, first), max(end, last), SpanKind.OPAQUE, True
            whole.pop()
        whole.append((begin, end, kind, is_held))
    return tuple(ProtectedSpan(begin, end, sentence[begin:end], kind) for begin, end, kind, _ in whole)


def _has_braces(span: ProtectedSpan) -> bool:
    is_one = span.kind is SpanKind.OPAQUE and "{" in span.text and "{%" not in span.text
    return is_one and PLACEHOLDER.fullmatch(span.text) is not None


def _is_named(tag: str, end_tags: Container[str]) -> bool:
    """Return whether a tag is not of HTML and has no end tag: a placeholder, such as `<name>` and `&name;`."""
    if tag.startswith("&"):
        return tag[1] != "#" and tag[1:] not in html5
    name = _NAME_IN_BRACKETS.fullmatch(tag)
    return name is not None and name[1].lower() not in HTML_NAMES and name[1] not in end_tags


def _closing_braces(sentence: str) -> dict[int, int]:
    """Map the offset of each opening brace to the offset after its closing brace. Omit unmatched braces."""
    opened: list[int] = []
    ends: dict[int, int] = {}
    for match in re.finditer("[{}]", sentence):
        if match[0] == "{":
            opened.append(match.start())
        elif opened:
            ends[opened.pop()] = match.end()
    return ends


def _trim_word(word: str, begin: int) -> Range:
    """Return the range of the word at offset `begin`, without the quotation marks and punctuation around it.

    Words appended to code, as in `foo_bar-based`, are excluded too, because they are translated.
    """
    if not any(map(str.isalnum, word)):
        return begin, begin + len(word.rstrip(_SENTENCE_END))
    core = _BEFORE_WORD.sub("", word, count=1)
    begin += len(word) - len(core)
    trimmed = core.rstrip(_WORD_END if "#" in core else f"{_WORD_END}-")  # ADO.NET- und XML-Klassen, not an anchor
    if core[0] == ":" == core[len(trimmed) : len(trimmed) + 1]:  # :name:
        return begin, begin + len(trimmed) + 1
    trimmed = trimmed[:-2] if trimmed.endswith(("'s", "’s")) else trimmed
    compound = None if trimmed.startswith("-") else _COMPOUND.match(trimmed[::-1])
    if compound and CODE.search(first := trimmed[: -compound.end()]):
        trimmed = first
    return begin, begin + len(trimmed)


def _trim_address(address: str) -> str:
    """Return an address without trailing punctuation and without unmatched closing brackets at the end."""
    surplus = {closes: address.count(closes) - address.count(opens) for opens, closes in _BRACKETS.items()}
    end = len(address)
    while end and (address[end - 1] in _TRAILING or surplus.get(address[end - 1], 0) > 0):
        end -= 1
        if address[end] in surplus:
            surplus[address[end]] -= 1
    return address[:end]


def _count(translation: str, spans: Sequence[ProtectedSpan]) -> Counter[str]:
    """Count the spans of a translation by `span_key`. `5 %`, `$5`, `#5` and `5th` also count as 5, `5h30` as 5:30.

    `5 Dollar` also counts as `$5`, and `halb drei` as 2:30.
    """
    counts = Counter[str]()
    translated = find_translated_spans(translation, spans)
    signed = (find_spans(span.text[1:]) for span in translated if _NUMBER_SIGN.match(span.text))
    for span in chain(translated, *signed):
        key = span_key(span)
        counts[key] += 1
        counts.update(_ends(span))
        if span.kind is SpanKind.NUMBER and (bare := UNIT.sub("", key)) != key:
            counts[bare] += 1
    for number, word in _AMOUNT.findall(translation):
        counts[_SEPARATOR.sub(".", number) + _SIGN_OF[word[:2].casefold()]] += 1
    counts.update(f"{_HOURS.index(hour) or 12}:30" for hour in HALF_HOUR.findall(translation))
    counts.update(number[0] for number in _ORDINAL.finditer(translation))
    counts.update(f"{time[1]}:{time[2] or '00'}" for time in _FRENCH_TIME.finditer(translation))
    return counts


def _ends(span: ProtectedSpan) -> list[str]:
    """Return the two numbers of a range or time, which other languages write as 5–10 and 14 h 30; else []."""
    return re.split("[-:]", span_key(span)) if span.kind is SpanKind.NUMBER and _RANGE.fullmatch(span_key(span)) else []


def span_key(span: ProtectedSpan) -> str:
    """Return a key for comparing spans: the text or, for a number, the groups of digits and the unit.

    Two numbers thus have equal keys if they differ only in separators, or in whether the unit precedes the digits.
    """
    if span.kind is not SpanKind.NUMBER:
        return span.text
    number = _SEPARATOR.sub(".", span.text)
    if VERSION.search(number):  # 4,6.2 is not 4.6.2
        return span.text
    return UNIT.sub("", number).strip() + "".join(UNIT.findall(number))


def _extend_to_words(sentence: str, ranges: Sequence[Range]) -> Iterator[Range]:
    """Remove white space at the ends of each range, and then extend the range to whole words."""
    words = words_at(sentence, _WORD)
    for begin, end in ranges:
        begin += len(sentence[begin:end]) - len(sentence[begin:end].lstrip())
        end -= len(sentence[begin:end]) - len(sentence[begin:end].rstrip())
        if begin < end:
            first, last = is_in_word(sentence[begin]), is_in_word(sentence[end - 1])
            yield words[begin][0] if first else begin, words[end][1] if last else end


def words_at(sentence: str, words: re.Pattern[str]) -> list[Range]:
    """Return, for each offset 0, ..., len(sentence), the range of the word that contains or touches it, in linear time.

    The range for an offset without a word is empty.
    """
    ranges = [(place, place) for place in range(len(sentence) + 1)]
    for word in words.finditer(sentence):
        ranges[word.start() : word.end() + 1] = [word.span()] * (len(word[0]) + 1)
    return ranges
