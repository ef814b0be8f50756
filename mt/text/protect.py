"""Spans that a translation must preserve: addresses, placeholders, code, file names, emoji and numbers.

Numbers stay in the sentence, because other words agree with them. If the model changes a number, the original number
replaces the target word that is aligned to it. Other spans stay only if the model copies them. Otherwise, they are
removed before the translation and inserted between the translations of the neighbouring words. Models need no training
for this. Both methods were the best of those measured.

Measured on captions of Multi30k with a model of 3+3 layers that had seen no spans (beam 5, BLEU). A span inserted in
each of 100 captions: unprotected 27.5, and no span preserved; sentence cut in two at the span 29.1; placeholders that
the model copies, at best in half of the sentences, 38.9; removed 39.0, as without spans. With the place of the span
against the reference with its span placed by the same alignment: 41.4; by the fewest crossing links alone 39.5; after
the word before it 39.6. A number word written in digits in each of 100: unprotected 35.4; removed and put back 38.9;
replaced 41.3; as a word 41.4.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise

from mt.languages import primary_language
from mt.text.alignment import CLOSING, WIDE, PieceAttention, Range, UnitLinks, insertion, is_wide

# The search takes linear time: every quantifier is bounded or possessive, and every pattern begins at a word.
_EMOJI_BASE = "[\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\u303d\u3297\u3299\U0001f000-\U0001faff]"
_EMOJI_ONE = rf"{_EMOJI_BASE}[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]?[\U000e0020-\U000e007f]{{0,10}}"
_EMOJI = (
    r"[\U0001f1e6-\U0001f1ff]{2}"
    r"|[0-9#*]\ufe0f?\u20e3"
    rf"|{_EMOJI_ONE}(?:\u200d{_EMOJI_ONE}){{0,9}}"
    r"|[\u00a9\u00ae\u203c\u2049\u2122\u2139]\ufe0f"
    r"|(?<!\S)(?:<3|[:;=]['-]?[()\[\]DPp])(?!\w)"
)
_DOMAIN = r"(?:[A-Za-z0-9-]{1,63}\.){1,8}"
_CODE = r"(?P<tick>`{1,3})[^`\n]{1,500}(?P=tick)"
_ADDRESS = (
    rf"(?i:https?|ftp)://[^\s<>\"`{WIDE}]+"
    rf"|(?<![\w.@])(?i:www)\.[^\s<>\"`{WIDE}]+"
    rf"|(?<![\w.+-])[A-Za-z0-9_.+-]{{1,64}}@{_DOMAIN}[A-Za-z0-9-]{{1,63}}"
    rf"|(?<![\w.@/-]){_DOMAIN}(?i:com|org|net|edu|gov|info|io|dev|eu|uk|de|fr|cz)\b(?!\.\w)(?:/[^\s<>\"`{WIDE}]*)?"
)
_PLACEHOLDER = (
    r"\{\{[^{}\n]{1,100}\}\}|\{%[^{}\n]{1,100}%\}|[$%#]?\{[^{}\s,]{0,60}\}"
    r"|%\([A-Za-z_]\w{0,40}\)[sdfr]|%[A-Za-z_]\w{1,40}%"
    r"|(?<![\d%])%(?:\d{1,3}\$)?[-+#0]{0,3}\d{0,3}(?:\.\d{1,3})?(?:hh?|ll?|[Lzjt])?[sdiufFeEgGxXcp@](?![^\W\d_])"
    r"|(?<![\w$])\$[A-Za-z_]\w{0,40}"
)
_TAG = r"</?(?:\d{1,4}|[A-Za-z](?:[^<>\n]{0,300}[^<>\n/\s])?)\s?/?>|&(?:[A-Za-z]{2,31}|\#\d{1,7}|\#x[0-9A-Fa-f]{1,6});"
_EXTENSION = (
    r"(?i:txt|pdf|docx?|xlsx?|pptx?|csv|tsv|json|xml|ya?ml|toml|ini|html?|css|jsx?|tsx?|py|rs|cpp|hpp|java|sh|exe|zip|gz"
    r"|png|jpe?g|gif|svg|mp[34]|md|po|log|sql)"
)
_PATH = (
    r"(?<![\w/.:~<])(?:~|\.{1,2})?(?:/[\w.@+-]{1,255}){2,64}/?"
    r"|(?<!\w)[A-Za-z]:\\[^\s<>\"|?*]{1,255}"
    rf"|(?<![\w/.-])(?:[\w.-]{{1,255}}/){{0,32}}[\w-]{{1,255}}\.{_EXTENSION}\b"
)
_HANDLE = rf"(?<![\w@.])@[A-Za-z0-9_](?:[A-Za-z0-9_.-]{{0,62}}[A-Za-z0-9_])?(?:@{_DOMAIN}[A-Za-z0-9-]{{1,63}})?"
_HASHTAG = r"(?<![\w#&])#\w{1,100}"
_IDENTIFIER = (
    r"(?<![A-Za-z0-9_])(?:(?:[A-Z]{1,10}-)?[A-Za-z]{1,12}\d|[A-Z]{1,10}-\d|\d{1,40}(?!AM\b|PM\b)[A-Z]|\d{1,40}[a-z]{1,8}\d)"
    r"[A-Za-z0-9]{0,64}(?:[-_./:,][A-Za-z]{0,8}\d[A-Za-z0-9]{0,64}|[-_/][A-Za-z](?![A-Za-z])){0,16}"
)
_NUMBER = (
    r"(?<![A-Za-z0-9_])(?:(?<![\w)\]])[-+\u2212](?=\d))?\d{1,300}+(?:[.,:/’'\u00a0\u202f-]\d{1,300}+){0,31}+"
    r"(?!(?:st|nd|rd|th)\b)"
    r"(?:[ \u00a0\u202f]?[%‰](?![\w(]))?"
)
_SEPARATOR = re.compile(r"(?<=\d)[.,’'\u00a0\u202f](?=\d)")
_SPAN = re.compile(
    rf"(?P<code>{_CODE})|(?P<address>{_ADDRESS})|(?P<emoji>{_EMOJI})|(?P<tag>{_TAG})"
    rf"|(?P<opaque>{_PLACEHOLDER}|{_PATH}|{_HANDLE}|{_HASHTAG}|{_IDENTIFIER})|(?P<number>{_NUMBER})"
)
_HINT = re.compile(
    r"[\d@#`{<&%$\\\u2122\u2139\u203c\u2049\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\u303d\u3297\u3299"
    r"\U0001f000-\U0001faff\u00a9\u00ae]|\.[A-Za-z]|/\w|[:;=]['-]?[()\[\]DPp]"
)
_LIST_MARKER = re.compile(
    r"(?:(?:[-–—*•·‣▪◦●■□✓✔➢>+=~]+|#{1,6}|\(?\d{1,3}\)|[A-Za-z]\)|(?P<ordinal>\d{1,3}\.))[ \t\u00a0]+){1,4}"
)
_ORDINAL_DOT = frozenset(  # languages that write an ordinal number with a dot
    [
        *("bg", "bs", "cs", "da", "de", "et", "fi", "hr", "hu", "is", "lb"),
        *("lt", "lv", "mk", "nb", "nn", "no", "pl", "sk", "sl", "sr", "tr"),
    ]
)
_BRACKETS = {"(": ")", "[": "]", "{": "}", "<": ">"}
_AROUND = _BRACKETS | {'"': '"', "'": "'", "„": "“", "“": "”", "«": "»", "‹": "›", "‘": "’"}
_ORDINAL = re.compile(r"(?<![A-Za-z0-9_])\d{1,300}+(?=(?:st|nd|rd|th)\b)")
_LONG = 64  # a span with more characters might be cut when a long sentence is split
_LEAST_WEIGHT = 0.1  # least alignment weight of a word that a number replaces
_TRAILING = ".,;:!?'\"…*_~”’»"


class SpanKind(Enum):
    """How a span is preserved."""

    NUMBER = "number"  # stays in its sentence
    OPAQUE = "opaque"  # removed if the model does not copy it
    TAG = "tag"  # like OPAQUE, but letters next to it are not part of its word
    EMOJI = "emoji"  # always removed: the grammar has no place for it
    KEPT = "kept"  # like OPAQUE, for a range that the caller protects


_MORE = frozenset({SpanKind.NUMBER, SpanKind.KEPT})  # may occur more often than in the source
_KINDS = {"number": SpanKind.NUMBER, "tag": SpanKind.TAG, "emoji": SpanKind.EMOJI}


@dataclass(frozen=True, slots=True)
class ProtectedSpan:
    """A span of a sentence that must be preserved: `text` is `sentence[begin:end]`."""

    begin: int
    end: int
    text: str
    kind: SpanKind


@dataclass(frozen=True, slots=True)
class RemovedSpan:
    """A span that was removed before the character `at` of the stripped text."""

    at: int
    text: str
    spaced_before: bool  # whether white space preceded it
    spaced_after: bool
    tight: bool  # whether it may touch a letter


@dataclass(frozen=True, slots=True)
class StrippedText:
    """A sentence without some of its spans."""

    text: str
    removed: tuple[RemovedSpan, ...] = ()


def find_spans(sentence: str, kept: Sequence[Range] = ()) -> tuple[ProtectedSpan, ...]:
    """Return the disjoint spans of a sentence, in order.

    Each range of `kept` is extended to whole words and becomes a span too.
    """
    spans = list(_search(sentence)) if _HINT.search(sentence) else []
    if not kept:
        return tuple(spans)
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


def split_at_long_spans(sentence: str, kept: Sequence[Range] = ()) -> list[str]:
    """Split a sentence into its long spans, which must not be cut, and the text between these spans."""
    long = [span for span in find_spans(sentence, kept) if len(span.text) > _LONG or span.kind is SpanKind.KEPT]
    places = [place for span in long for place in (span.begin, span.end)]
    return [sentence[begin:end] for begin, end in pairwise([0, *places, len(sentence)]) if begin < end]


def lost_spans(spans: Sequence[ProtectedSpan], translation: str) -> list[ProtectedSpan]:
    """Return the spans that do not occur in a translation as often as in the source.

    A number may occur more often than in the source, because a model may write a number word in digits. Its separators
    may follow the target language, as in 1.200,50 for 1,200.50. Kept text may occur more often, because it may be an
    ordinary word.
    """
    if not spans:
        return []
    counts, wanted = _count(translation, spans), Counter(map(_key, spans))
    return [
        span
        for span in spans
        if counts[_key(span)] < wanted[_key(span)]
        or (span.kind not in _MORE and counts[_key(span)] > wanted[_key(span)])
    ]


def remove_spans(sentence: str, spans: Sequence[ProtectedSpan]) -> StrippedText:
    """Remove spans from a sentence, together with the brackets around them and the words that contain them."""
    text: list[str] = []  # characters
    end = 0
    removed: list[RemovedSpan] = []
    for begin, stop, tight in _removal_ranges(sentence, spans):
        text += sentence[end:begin]
        before = not text or text[-1].isspace()
        after = stop == len(sentence) or sentence[stop].isspace()
        if stop < len(sentence) and sentence[stop] in CLOSING:
            while text and text[-1].isspace():
                text.pop()
        removed.append(RemovedSpan(len(text), sentence[begin:stop], before, after, tight))
        end = stop
        while before and end < len(sentence) and sentence[end].isspace():  # keep one white space of the two sides
            end += 1
    stripped = ("".join(text) + sentence[end:]).rstrip()
    return StrippedText(stripped, tuple(replace(span, at=min(span.at, len(stripped))) for span in removed))


def restore_spans(
    stripped: StrippedText, spans: Sequence[ProtectedSpan], translation: str, attention: PieceAttention | None
) -> str:
    """Insert the removed spans and the missing numbers into the translation of `stripped.text`.

    The result holds each span as often as the source sentence, and numbers and kept text at least as often. Without
    attention, the relative place of a span in the source determines its place in the translation.

    Args:
        stripped: source sentence without the removed spans.
        spans: all spans of the source sentence.
        translation: translation of `stripped.text`.
        attention: attention between the pieces of `stripped.text` and of the translation.
    """
    links = UnitLinks(stripped.text, translation, attention)
    edits = list(_number_edits(links, stripped.text))
    for span in stripped.removed:
        gap = links.gap(span.at)
        edits.append(insertion(links, gap, span.text, _spaces(links, gap, span)))
    parts, place = [], len(translation)
    for (begin, end), text in sorted(edits, key=lambda edit: edit[0], reverse=True):
        parts += [translation[end:place], text]
        place = begin
    return add_missing_spans("".join([translation[:place], *parts[::-1]]), spans)


def add_missing_spans(translation: str, spans: Sequence[ProtectedSpan]) -> str:
    """Return the translation, changed to hold each span as often as the source; the end gets missing spans."""
    lost = lost_spans(spans, translation)
    if not lost:
        return translation
    wanted, keys = Counter(map(_key, spans)), set(map(_key, lost))
    present, surplus = Counter[str](), list[Range]()
    for span in find_translated_spans(translation, spans):
        present[_key(span)] += 1
        if _key(span) in keys and present[_key(span)] > wanted[_key(span)]:
            surplus.append((span.begin, span.end))
    added = []
    for span in lost:
        if present[_key(span)] < wanted[_key(span)]:
            present[_key(span)] += 1
            added.append(span.text)
    kept = [translation[begin:end].strip() for begin, end in _ranges_between(surplus, len(translation))]
    completed = " ".join([*filter(None, kept), *added]) if surplus else " ".join([translation, *added])
    if not lost_spans(spans, completed):
        return completed
    found = find_translated_spans(completed, spans)
    removed = [(span.begin, span.end) for span in found if span.kind is SpanKind.KEPT]
    rest = " ".join(completed[begin:end] for begin, end in _ranges_between(removed, len(completed)))
    plain = re.sub(r"\s+", " ", _SPAN.sub(" ", rest)).strip()
    return " ".join([plain, *(span.text for span in spans)]).strip()


def _ranges_between(ranges: Sequence[Range], length: int) -> Iterator[Range]:
    places = [0, *(place for begin_and_end in ranges for place in begin_and_end), length]
    return zip(places[::2], places[1::2], strict=True)


def find_translated_spans(translation: str, spans: Sequence[ProtectedSpan]) -> tuple[ProtectedSpan, ...]:
    """Return the spans of a translation. Kept text counts as a span at most as often as it occurs in the source."""
    return find_spans(translation, list(_find_kept(translation, spans)))


def _find_kept(translation: str, spans: Sequence[ProtectedSpan]) -> Iterator[Range]:
    left, place = Counter(span.text for span in spans if span.kind is SpanKind.KEPT), 0
    lengths = Counter(map(len, left.elements()))
    while place < len(translation) and lengths:
        for length in sorted(lengths, reverse=True):
            text = translation[place : place + length]
            if left[text] and len(text) == length:
                yield place, place + length
                place += length - 1
                left[text] -= 1
                lengths -= Counter([length])
                break
        place += 1


def _search(sentence: str) -> Iterator[ProtectedSpan]:
    for match in _SPAN.finditer(sentence):
        group = match.lastgroup or ""
        text = _trim_address(match[0]) if group == "address" else match[0]
        yield ProtectedSpan(match.start(), match.start() + len(text), text, _KINDS.get(group, SpanKind.OPAQUE))


def _trim_address(address: str) -> str:
    """Remove trailing punctuation of the sentence, and a closing bracket that was opened before the address."""
    surplus = {closes: address.count(closes) - address.count(opens) for opens, closes in _BRACKETS.items()}
    end = len(address)
    while end and (address[end - 1] in _TRAILING or surplus.get(address[end - 1], 0) > 0):
        end -= 1
        if address[end] in surplus:
            surplus[address[end]] -= 1
    return address[:end]


def _count(translation: str, spans: Sequence[ProtectedSpan]) -> Counter[str]:
    """Count the spans of a translation by their key. `5 %` and `5th` also count as the number 5."""
    counts = Counter[str]()
    for span in find_translated_spans(translation, spans):
        key = _key(span)
        counts[key] += 1
        if key[-1] in "%‰":
            counts[key[:-1].rstrip()] += 1
    counts.update(number[0] for number in _ORDINAL.finditer(translation))
    return counts


def _key(span: ProtectedSpan) -> str:
    """Return the key of a span, equal for equal spans. Numbers are equal if their digits form the same groups."""
    return _SEPARATOR.sub(".", span.text) if span.kind is SpanKind.NUMBER else span.text


def _removal_ranges(sentence: str, spans: Sequence[ProtectedSpan]) -> list[tuple[int, int, bool]]:
    """Return (begin, end, tight) of each text to remove with the spans; `tight` text may touch a letter."""
    ranges: list[tuple[int, int, bool]] = []
    words = _word_ranges(sentence, _is_word_character) if spans else ()
    word = -1, -1
    for span in spans:
        begin, end = span.begin, span.end
        tight = span.kind in (SpanKind.EMOJI, SpanKind.TAG)
        if not tight:
            begin, end = words[begin][0], words[end][1]
            if (begin, end) == word:
                continue
            word = begin, end
        while not tight and begin and end < len(sentence) and _AROUND.get(sentence[begin - 1]) == sentence[end]:
            begin, end = begin - 1, end + 1
        if ranges and (begin <= ranges[-1][1] or not sentence[ranges[-1][1] : begin].strip()):
            first, last, touches = ranges[-1]
            ranges[-1] = (min(first, begin), max(last, end), touches and tight)
        else:
            ranges.append((begin, end, tight))
    return ranges


def _extend_to_words(sentence: str, ranges: Sequence[Range]) -> Iterator[Range]:
    """Yield the ranges without white space at their ends, extended to whole words."""
    words = _word_ranges(sentence, _is_letter)
    for begin, end in ranges:
        begin += len(sentence[begin:end]) - len(sentence[begin:end].lstrip())
        end -= len(sentence[begin:end]) - len(sentence[begin:end].rstrip())
        if begin < end:
            first, last = _is_letter(sentence[begin]), _is_letter(sentence[end - 1])
            yield words[begin][0] if first else begin, words[end][1] if last else end


def _word_ranges(sentence: str, is_inside: Callable[[str], bool]) -> list[Range]:
    """Return begin and end of the word around each place from 0 to the length, in linear time."""
    inside = list(map(is_inside, sentence))
    begins, ends = [0], [len(sentence)]
    for place, in_word in enumerate(inside, start=1):
        begins.append(begins[-1] if in_word else place)
    for place in reversed(range(len(sentence))):
        ends.append(ends[-1] if inside[place] else place)
    return list(zip(begins, reversed(ends), strict=True))


def _is_letter(character: str) -> bool:
    return character.isalnum() and not is_wide(character)


def _is_word_character(character: str) -> bool:
    return character in "'’-_" or _is_letter(character)


def _spaces(links: UnitLinks, gap: int, span: RemovedSpan) -> tuple[bool, bool]:
    """Return whether white space is needed before and after a span: as in the source, and next to a letter."""
    before = links.target[links.right[gap - 1][1] - 1] if gap else " "
    after = links.target[links.right[gap][0]] if gap < len(links.right) else " "
    beside = [not span.tight and side.isalnum() and not is_wide(side) for side in (before, after)]
    return span.spaced_before or beside[0], span.spaced_after or beside[1]


def _number_edits(links: UnitLinks, source: str) -> Iterator[tuple[Range, str]]:
    """Yield an edit for each number that a translation lacks; the number replaces the unit with the largest weight."""
    spans = [span for span in find_spans(source) if span.kind is SpanKind.NUMBER]
    missing = lost_spans(spans, links.target)
    if not missing:
        return
    good = {_key(span) for span in spans} - {_key(span) for span in missing}
    others = [span for span in find_spans(links.target) if span.kind is SpanKind.NUMBER]
    copied = [span for span in others if _key(span) in good]
    begins = [begin for begin, _ in links.right]
    taken = {
        number
        for span in copied
        for number in range(max(0, bisect_right(begins, span.begin) - 1), bisect_left(begins, span.end))
        if links.right[number][1] > span.begin
    }
    digits = [any(map(str.isdigit, links.target[begin:end])) for begin, end in links.right]
    for span in missing:
        weights = links.weights_from((span.begin, span.end))
        ranked = [
            (weight * (2 if digit else 1), -number)
            for number, (weight, digit) in enumerate(zip(weights, digits, strict=True))
            if number not in taken and links.target[links.right[number][0]].isalnum()
        ]
        weight, place = max(ranked, default=(0.0, 0))
        if weight < _LEAST_WEIGHT:
            gap = links.gap(span.begin)
            yield insertion(links, gap, span.text, (True, True))
            continue
        taken.add(-place)
        begin, end = links.right[-place]
        inside = [other for other in others if begin <= other.begin and other.end <= end]
        yield ((inside[0].begin, inside[0].end) if inside else (begin, end)), span.text
