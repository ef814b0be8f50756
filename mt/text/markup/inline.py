"""Conversion of the inline items of a text, such as pieces of text and tags, into a segment with marks."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import accumulate, pairwise
from typing import Generic, TypeVar

from mt.text.alignment import OBJECTS, is_in_word
from mt.text.markup.marks import Mark, MarkedPiece, Segment, TranslatedSegment
from mt.text.markup.placement import place_marks

PartType = TypeVar("PartType")
Decode = Callable[[str], Iterator[tuple[str, str | None]]]
"""Function that splits a source text into pairs (source, decoded text). An unknown escape has the decoded text None."""

VALUES = frozenset({"true", "false", "null"})  # texts that programs read, which are not translated if they stand alone
_OBJECT = re.compile(f"[{OBJECTS}]")
_SPACES = re.compile(r"[ \t\n\f\r]+")
_GLUED = re.compile(r"\A([,;:!?)])(?=[^\W\d_]{2})")  # after a tag, as in `<b>Size</b>:big`
_BRACKET = re.compile(r"(?<=[^\W\d_]{3})(?=[\[(]\Z)")  # before a tag, as in `dog(<i>old</i>)`
_NO_WORD_AFTER = re.compile(r"""[.,;!?)\]}’”»…]["'”’»)\]]*$""")  # an empty element directly after it is not a word
_SYMBOL, _INDEX = re.compile(r"(?<![^\W_])[^\W\d_]{1,2}\Z"), re.compile(r"[^\W\d_][\w,]{0,11}")
_REVISED = frozenset({"del", "ins", "s", "strike", "u"})  # elements around deleted and inserted words
END_MARK = re.compile(r"""[.!?…。！？]["'”’»)\]]*\s*$""")
_NO_WORD_BEFORE = re.compile(r"""[\w(\[{¿¡«„“‘]|"\w|'(?!s\b)\w""", re.IGNORECASE)  # nor one directly before it


class InlineKind(Enum):
    """Kind of an inline item."""

    TEXT = "text"  # text to translate
    OPEN = "open"  # start tag
    CLOSE = "close"  # end tag
    EMPTY = "empty"  # element without text
    KEPT = "kept"  # text that is not translated


_TAGS = (InlineKind.OPEN, InlineKind.CLOSE)


class StandsForWord(Enum):
    """Places in which an empty element can stand for a word."""

    NEVER = "never"
    WITHIN = "within"  # between words of a sentence, not at its beginning or end, as a picture
    ALWAYS = "always"  # also at the beginning and at the end, as a placeholder


@dataclass(frozen=True, slots=True)
class InlineItem(Generic[PartType]):
    """An item within a text: a piece of text, a tag, an empty element, or an element that is not translated.

    `parts` are the source of the item. `text` is the source of a TEXT item, or the visible text of a KEPT item. The
    OPEN and CLOSE items of one element have the same `key`; -1 means that the element lacks a tag. An EMPTY item with
    `breaks` separates words. An EMPTY item, or an OPEN item of an element without text, can stand for a word. An OPEN
    or CLOSE item with `divides`, the name of its element, separates words that look like code in `<b>Name:</b>the`.
    """

    kind: InlineKind
    parts: tuple[PartType, ...]
    text: str = ""
    key: int = -1
    breaks: bool = False
    stands: StandsForWord = StandsForWord.NEVER
    divides: str = ""

    @property
    def has_words(self) -> bool:
        return self.kind is InlineKind.KEPT or (self.kind is InlineKind.TEXT and not self.text.isspace())


@dataclass(frozen=True, slots=True)
class BuiltSegment(Generic[PartType]):
    """A segment, and the source of each of its marks.

    `openings[i]` and `closings[i]` are the sources of the tags of mark i. An empty or kept mark has only an opening.
    `forms` maps characters to their escaped form in the source. The source has no space before the start tags of the
    marks in `divisions`, and after the end tags of the marks whose complement (`~`) is in it, but the segment has one.
    """

    segment: Segment
    openings: tuple[tuple[PartType, ...], ...]
    closings: tuple[PartType | None, ...]
    forms: dict[str, str]
    divisions: frozenset[int] = frozenset()

    def render(self, translated: TranslatedSegment, write: Callable[[str], PartType]) -> list[PartType]:
        """Return the parts of the translation: pieces of text, converted by `write`, and the sources of the marks."""
        parts: list[PartType] = []
        for piece in self.pieces(translated):
            if piece.opens >= 0:
                parts += self.openings[piece.opens]
            elif piece.closes < 0:
                parts.append(write(piece.text))
            elif (closing := self.closings[piece.closes]) is not None:
                parts.append(closing)
        return parts

    def pieces(self, translated: TranslatedSegment) -> list[MarkedPiece]:
        """Return the pieces of the translation, without the spaces at the tags of `divisions`.

        Characters that stand for an empty element are left out, too.
        """
        pieces = place_marks(self.segment, translated)
        if any(mark.kept and _OBJECT.match(self.segment.text, mark.begin) for mark in self.segment.marks):
            pieces = [replace(piece, text=_OBJECT.sub("", piece.text)) for piece in pieces]
        if not self.divisions:
            return pieces
        texts = [number for number, piece in enumerate(pieces) if piece.text.strip()]
        for left, right in pairwise(texts):
            between = pieces[left : right + 1]
            opened = any(piece.opens >= 0 and piece.opens in self.divisions for piece in between)
            closes = [~piece.closes for piece in between if piece.closes >= 0]
            divides = opened or not self.divisions.isdisjoint(closes)
            before, after = pieces[left].text.rstrip(), pieces[right].text.lstrip()
            if divides and ((opened and closes) or _look_like_code(before, after)):
                pieces[left], pieces[right] = MarkedPiece(before), MarkedPiece(after)
                pieces[left + 1 : right] = [replace(piece, text="") for piece in pieces[left + 1 : right]]
        return pieces


@dataclass(frozen=True, slots=True)
class InlineText(Generic[PartType]):
    """The inline items of a text: the `items` of its segment, and the items `before` and `after` the segment.

    `built` is the segment, or None if the text contains nothing to translate.
    """

    before: Sequence[InlineItem[PartType]]
    items: Sequence[InlineItem[PartType]]
    after: Sequence[InlineItem[PartType]]
    built: BuiltSegment[PartType] | None

    def sources(self) -> Iterator[list[PartType]]:
        """Yield three lists with the sources of `before`, of `items`, and of `after`."""
        return ([part for item in items for part in item.parts] for items in (self.before, self.items, self.after))


def read_inline(items: Sequence[InlineItem[PartType]], decode: Decode, collapse: bool) -> InlineText[PartType]:
    """Build the segment of a text from the inline items of the text.

    The segment begins with the first word and ends with the last word. Tags around all words are not part of it. A text
    without letters and digits to translate, or of VALUES, has no segment. If a start or end tag is missing, all tags
    become empty marks whose order is preserved. If `collapse` is true, runs of white space become single spaces. An
    empty element that stands for a word becomes a kept mark around a character of OBJECTS.
    """
    if any(item.stands is not StandsForWord.NEVER for item in items):
        items = _with_words(_merge_empty_pairs(items), decode)
    begin, end = trim_items(items)
    inner = items[begin:end]
    texts = (item.text for item in inner if item.kind is InlineKind.TEXT)
    built = None
    if any(any(map(str.isalnum, meaning or "")) for text in texts for _, meaning in decode(text)):
        merged = _merge_empty_pairs(inner)
        pairs = zip(merged, partners(merged), strict=True)
        ordered = any(other < 0 and item.kind in _TAGS for item, other in pairs)
        built = _Builder[PartType](decode, collapse, ordered).build(merged)
        built = None if built.segment.text in VALUES else built
    return InlineText(items[:begin], inner, items[end:], built)


def symbol_before(item: InlineItem[PartType], index: str) -> re.Match[str] | None:
    """Return the symbol at the end of a text before an index of letters, which a model would read as one word."""
    return _SYMBOL.search(item.text) if item.kind is InlineKind.TEXT and _INDEX.fullmatch(index) else None


def decode_nothing(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield the pair (`text`, `text`). This is the `Decode` function of formats without escapes."""
    yield text, text


def split_whitespace(text: str, space: str | None = None) -> tuple[str, str, str]:
    """Return (leading white space, text, trailing white space). `space` is the argument of `str.strip`."""
    left = text.lstrip(space)
    body = left.rstrip(space)
    return text[: len(text) - len(left)], body, left[len(body) :]


def text_items(text: str) -> list[InlineItem[str]]:
    """Return the TEXT items of a text: leading white space, the rest, and trailing white space, if not empty."""
    return [InlineItem(InlineKind.TEXT, (part,), part) for part in split_whitespace(text) if part]


def trim_items(items: Sequence[InlineItem[PartType]]) -> tuple[int, int]:
    """Return (begin, end) such that items[begin:end] are the items from the first to the last word.

    Pairs of tags around all words are left out.
    """
    partner = partners(items)
    words = [0, *accumulate(item.has_words for item in items)]
    begin, end = 0, len(items)

    def is_loose(at: int) -> bool:  # a tag whose partner has been left out, or an item without words
        return not begin <= partner[at] < end if items[at].kind in _TAGS else not items[at].has_words

    while begin < end:
        first, last = partner[begin], partner[end - 1]
        if first == end - 1:
            begin, end = begin + 1, end - 1
        elif is_loose(begin):
            begin += 1
        elif begin < first and words[first] == words[begin]:
            begin = first + 1
        elif is_loose(end - 1):
            end -= 1
        elif begin <= last and words[end] == words[last]:
            end = last
        else:
            break
    return begin, end


def partners(items: Sequence[InlineItem[PartType]]) -> list[int]:
    """Return, for each item, the index of the other tag of its pair, or -1 if the item is not a tag of a pair."""
    partner = [-1] * len(items)
    opened: dict[int, int] = {}
    for number, item in enumerate(items):
        if item.kind is InlineKind.OPEN and item.key >= 0:
            opened[item.key] = number
        elif item.kind is InlineKind.CLOSE and item.key in opened:
            partner[number] = opened.pop(item.key)
            partner[partner[number]] = number
    return partner


def _merge_empty_pairs(items: Sequence[InlineItem[PartType]]) -> list[InlineItem[PartType]]:
    partner = partners(items)
    words = [0, *accumulate(item.has_words for item in items)]
    merged: list[InlineItem[PartType]] = []
    end = 0
    for number, (item, other) in enumerate(zip(items, partner, strict=True)):
        if number < end:
            continue
        if item.kind is InlineKind.OPEN and other > 0 and words[number] == words[other]:
            end = other + 1
            parts = tuple(part for inner in items[number:end] for part in inner.parts)
            breaks = any(inner.breaks or inner.kind is InlineKind.TEXT for inner in items[number:end])
            item = InlineItem(InlineKind.EMPTY, parts, breaks=breaks, stands=item.stands)
        merged.append(item)
    return merged


def _with_words(items: Sequence[InlineItem[PartType]], decode: Decode) -> list[InlineItem[PartType]]:
    """Return the items, with a KEPT item for each empty element that stands for a word.

    An empty element stands for a word if spaces, or punctuation that can be beside a word, set it off.
    """
    texts = [" " if item.breaks else item.text for item in items]
    for number, item in enumerate(items):
        if item.kind is InlineKind.TEXT:
            texts[number] = "".join(meaning or source for source, meaning in decode(item.text))
    whole, ends = "".join(texts), [*accumulate(map(len, texts))]
    objects = map(chr, range(ord(OBJECTS[0]), ord(OBJECTS[-1]) + 1))
    marked = list(items)
    for number, item in enumerate(items):
        begin, end = ends[number] - len(texts[number]), ends[number]
        before, after = whole[max(0, begin - 4) : begin], whole[end : end + 4]
        is_word = item.kind is InlineKind.EMPTY and not item.breaks and _can_stand(item.stands, before, after)
        if is_word and (word := next(objects, "")):
            marked[number] = replace(item, kind=InlineKind.KEPT, text=word)
    return marked


def _can_stand(stands: StandsForWord, before: str, after: str) -> bool:
    if stands is StandsForWord.NEVER:
        return False
    if before[-1:].isalnum() or _NO_WORD_AFTER.search(before) or _NO_WORD_BEFORE.match(after):
        return False
    return stands is StandsForWord.ALWAYS or bool(before.strip() and after.strip() and not END_MARK.search(before))


def _divisions(items: Sequence[InlineItem[PartType]], decode: Decode) -> Iterator[int]:
    """Yield the number of each item before which a space must divide two texts: behind the end tags between them.

    The texts look like code if they are joined, or belong to elements that touch, as in `<i>one</i><b>two</b>`, or a
    link begins between them, and so where it ends, too: `Click<a>here</a>to`, but not `<a>dog</a>s`. So does another
    element if letters touch both its tags: `Click<b>here</b>to`.
    """
    begin, glued = 0, set[object]()  # `begin` of the tags before the item
    for number, item in enumerate(items):
        if item.kind in _TAGS and item.divides:
            continue
        if 0 < begin < number:
            before, after = ("".join(text or "" for _, text in decode(one.text)) for one in (items[begin - 1], item))
            first = items[begin]
            may_divide = first.divides == "a" or first.key in glued or _encloses_word(items[begin : begin + 4])
            link = first if may_divide and before[-2:].isalpha() and after[:2].isalpha() else None
            if link and link.kind is InlineKind.OPEN:
                glued.add(link.key)
            divides = link is not None and link.key in glued
            if divides or _look_like_code(before, after) or _touch(items[begin:number], before[-3:], after[:3]):
                yield next((at for at in range(begin, number) if items[at].kind is InlineKind.OPEN), number)
        begin = number + 1


def _encloses_word(items: Sequence[InlineItem[PartType]]) -> bool:
    """Return whether items begin with an element around a word of three letters or more, and letters touch its end."""
    kinds = [item.kind for item in items]
    is_element = kinds == [InlineKind.OPEN, InlineKind.TEXT, InlineKind.CLOSE, InlineKind.TEXT]
    return is_element and len(items[1].text) > 2 and items[1].text.isalpha() and items[3].text[:2].isalpha()


def _touch(tags: Sequence[InlineItem[PartType]], before: str, after: str) -> bool:
    """Return whether an end tag and the start tag after it divide two words, which are not parts of one word.

    Programs divide words by elements, but not by links, nor by the deleted word and the inserted one. `before` and
    `after` are the three characters before and after the tags.
    """
    if not is_in_word(before[-1:]) or not is_in_word(after[:1]):
        return False
    whole = len(before) == len(after) == 3 and (before + after).isalpha()
    return any(
        (one.kind, other.kind) == (InlineKind.CLOSE, InlineKind.OPEN)
        and (one.divides == "a" if one.divides == other.divides else whole and {one.divides, other.divides} <= _REVISED)
        for one, other in pairwise(tags)
    )


def _look_like_code(before: str, after: str) -> bool:
    """Return whether two texts would look like code if they were joined, as in `Name:the`, `dog1` and `dog[a]`."""
    last, first = before[-1:], after[:1]
    if first and first in "[(" and last.islower():
        return len(before) > 2 and before[-3:].isalpha()
    if not first.isalnum() or not last or (first.isdigit() and before[-2:-1].isdigit()):
        return False
    if last == ".":
        return first.isupper()
    if last in ":;!?,)":
        return True
    is_word = len(before) > 2 and before[-3:].isalpha() and last.islower()
    return is_word and (first.isdigit() or (first.isupper() and after[1:3].islower() and len(after) > 2))


class _Builder(Generic[PartType]):
    """Builder of one segment from inline items."""

    def __init__(self, decode: Decode, collapse: bool, ordered: bool) -> None:
        self.decode, self.collapse, self.ordered = decode, collapse, ordered
        self.texts: list[str] = []
        self.length = 0
        self.marks: list[Mark] = []
        self.openings: list[tuple[PartType, ...]] = []
        self.closings: list[PartType | None] = []
        self.forms: dict[str, str] = {}
        self.open: list[int] = []  # indices of the marks that are open
        self.divisions: set[int] = set()

    def build(self, items: Sequence[InlineItem[PartType]]) -> BuiltSegment[PartType]:
        divisions = set() if self.ordered else set(_divisions(items, self.decode))
        closed = -1
        for number, item in enumerate(items):
            if number in divisions:
                self._append(" ")
                self.divisions.add(len(self.marks) if item.kind is InlineKind.OPEN else ~closed)
            if item.kind is InlineKind.TEXT:
                before = items[number - 1] if number else item
                text = _GLUED.sub(r"\1 ", item.text) if before.divides else item.text
                text = _BRACKET.sub(" ", text) if number + 1 < len(items) and items[number + 1].divides else text
                self._text(item, text, follows_empty=before.kind is InlineKind.EMPTY)
            elif item.kind is InlineKind.CLOSE and not self.ordered:
                closed = mark = self.open.pop()
                self.marks[mark] = replace(self.marks[mark], end=self.length)
                self.closings[mark] = item.parts[0]
            elif item.kind is InlineKind.OPEN and not self.ordered:
                self._mark(item, Mark(self.length, self.length))
                self.open.append(len(self.marks) - 1)
            elif item.kind is InlineKind.KEPT:
                self._mark(item, Mark(self.length, self.length + len(item.text), kept=True))
                self._append(item.text)
            else:
                after = items[number + 1].text if number + 1 < len(items) else ""
                breaks = item.breaks or (item.kind is InlineKind.EMPTY and _look_like_code(self._last_text, after))
                spaced = breaks and bool(self.texts) and not self.texts[-1][-1].isspace()
                self._append(" " if spaced else "")
                glued = item.kind is InlineKind.CLOSE
                self._mark(item, Mark(self.length, self.length, glued=glued, spaced=spaced))
        text = "".join(self.texts)
        marks = tuple(self._glued(mark, text) for mark in self.marks)
        segment = Segment(text, marks, self.ordered)
        tags = tuple(self.openings), tuple(self.closings)
        return BuiltSegment(segment, *tags, self.forms, frozenset(self.divisions))

    def _mark(self, item: InlineItem[PartType], mark: Mark) -> None:
        self.marks.append(replace(mark, parent=self.open[-1] if self.open else -1))
        self.openings.append(item.parts)
        self.closings.append(None)

    @property
    def _last_text(self) -> str:
        return self.texts[-1] if self.texts else ""

    def _append(self, text: str) -> None:
        if text:
            self.texts.append(text)
            self.length += len(text)

    def _text(self, item: InlineItem[PartType], source_text: str, follows_empty: bool) -> None:
        for source, meaning in self.decode(source_text):
            text = meaning or ""
            whole = source.endswith((";", "''")) or source.startswith("\\")  # "&lt" without ";" could absorb letters
            if (
                source != text
                and len(text) == 1
                and whole
                and not ((text.isascii() and text.isalnum()) or text in " %")
            ):
                self.forms[text] = source
            if self.collapse:
                text = _SPACES.sub(" ", text)
                if text.startswith(" ") and (not self.texts or self.texts[-1].endswith(" ")):
                    text = text[1:]
                    if follows_empty and item.text.isspace():
                        self.openings[-1] = (*self.openings[-1], *item.parts)
                    elif follows_empty and not self.marks[-1].spaced:
                        self.marks[-1] = replace(self.marks[-1], apart=True)
            self._append(text)

    def _glued(self, mark: Mark, text: str) -> Mark:
        """Return `mark`, as a glued mark if it is empty, directly after a word, and not directly before a word.

        An empty mark between two spaces is apart.
        """
        if not mark.empty or mark.glued or mark.begin == 0:
            return mark
        before, after = text[mark.begin - 1], text[mark.begin : mark.begin + 1]
        if before.isspace():
            return replace(mark, apart=mark.apart or after.isspace())
        return replace(mark, glued=not after.isalnum())
