"""Inline items of a paragraph that consists of runs: its text, and the elements between the pieces of its text.

A run is a piece of text with one format. A wrapper is an element around runs whose text belongs to the sentence, such
as a link, a content control or a tracked insertion.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import count, groupby
from typing import Any

from lxml import etree

from mt.text.markup.inline import InlineItem, InlineKind, StandsForWord, partners, split_whitespace, symbol_before
from mt.text.markup.notes import is_note_mark
from mt.text.markup.rendering import NOT_XML
from mt.text.word_tables import read_words

Element = Any  # of lxml, which has no types
_FORMULAS = frozenset({"m", "oMath"})  # local names of formulas, which stand for a word of their sentence
_NOTE_STYLE = re.compile(r"(?i)(?:foot|end)note|superscript")
XML_SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_MAX_FIELD = 40  # maximum number of characters of a field that is read as a part of its sentence


@dataclass(frozen=True)
class RunSchema:
    """Names of the XML elements of paragraphs in one file format.

    - An element in `paragraphs` contains `run` elements. A run contains `properties`, which are its format, and `text`
      elements. Elements in `characters` stand for the character to which they are mapped. A `text` that is a child of
      a paragraph is not read.
    - The content of `wrappers` is part of the text of a paragraph. It is in their child `content`, if they have one.
      The content of `transparent` elements is read as if they were not there. A child `link` of `properties` makes a
      link of a run.
    - Elements in `first` and `last` stay at the beginning and the end of a paragraph or wrapper. Elements in `dropped`
      are left out of translated paragraphs. Elements in `breaks` separate words.
    - The text of a paragraph is split at elements in `tabs` and, if `splits_lines` is true, at line breaks.
    - Elements in `fields` are fields; their attribute `instruction_attribute` says what they show. A field may also be
      a sequence: the attribute `field_type` of a `field_mark` says which part of a field begins or ends there, and an
      element `instruction` says what the field shows.
    - `invisible` contains the names of children and attributes of `properties` that do not change how a run looks.
    - If `preserve_space` is true, new text elements get the attribute `xml:space="preserve"`.
    """

    paragraphs: frozenset[str]
    run: str
    properties: str
    text: str
    characters: dict[str, str] = field(default_factory=dict)
    wrappers: frozenset[str] = frozenset()
    content: str = ""
    transparent: frozenset[str] = frozenset()
    link: str = "link"
    field_mark: str = ""
    field_type: str = ""
    instruction: str = ""
    instruction_attribute: str = "instr"
    fields: frozenset[str] = frozenset()
    first: frozenset[str] = frozenset()
    last: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()
    breaks: frozenset[str] = frozenset()
    tabs: frozenset[str] = frozenset()
    invisible: frozenset[str] = frozenset()
    splits_lines: bool = False
    preserve_space: bool = True


@dataclass(frozen=True)
class Wrapper:
    """Part of the OPEN and CLOSE items of a wrapper."""

    element: Element


@dataclass(frozen=True)
class FieldCode:
    """Part of the items of a field with a text: the elements before or after its result."""

    elements: tuple[Element, ...]


@dataclass(frozen=True)
class RunFormat:
    """Part of the OPEN and CLOSE items of text in another format than most of its paragraph."""

    properties: Element | None


Part = Any  # Element, Wrapper, FieldCode or RunFormat
Item = InlineItem[Part]
_Key = tuple[str, ...]  # the visible properties of a format


@dataclass
class _Field:
    """A field that is a sequence of items: the indices of its marks, or -1, and the text of its instruction."""

    begin: int
    separate: int = -1
    end: int = -1
    instruction: str = ""


class RunReader:
    """Reader of the inline items of paragraphs."""

    def __init__(self, schema: RunSchema) -> None:
        self._schema = schema
        self._skipped = schema.first | schema.last | schema.dropped | {schema.properties}
        self._transparent = schema.transparent | {schema.run}
        self._keys = count()

    def read(self, paragraph: Element) -> tuple[Element | None, list[Item]]:
        """Return the base format and the inline items of a paragraph.

        The base format consists of the run properties of most of the text, without links and wrappers if there is
        other text, or of some of these if at least as many texts have only those. OPEN and CLOSE items enclose the
        content of each wrapper, the result of each field with a text, and each text in another format.
        """
        items = list(self._walk(paragraph))
        if self._schema.field_mark:
            items = _FieldReader(self._schema, items, self._keys).items()
        items = _without_wordless_pairs(list(self._with_notes(self._with_symbols(items))), self._schema.content)
        formats = [self._properties(item) if item.kind is InlineKind.TEXT else None for item in items]
        keys = list(map(self._format_key, formats))
        base = self._base_format(items, keys, formats)
        return base, list(self._formatted(items, keys, self._format_key(base)))

    def _walk(self, parent: Element) -> Iterator[Item]:
        """Yield the inline items of a paragraph or an element in it, without regard to fields of several elements."""
        schema = self._schema
        for child in parent:
            if child.tag in self._skipped:
                continue
            if child.tag == schema.text and parent.tag not in schema.paragraphs:
                text = child.text or ""
                for line in text.splitlines(keepends=True) if schema.splits_lines else [text]:
                    yield from (InlineItem(InlineKind.TEXT, (child,), part) for part in split_whitespace(line) if part)
            elif child.tag in schema.characters:
                yield InlineItem(InlineKind.TEXT, (child,), schema.characters[child.tag])
            elif child.tag in self._transparent:
                yield from self._walk(child)
            elif child.tag in schema.fields and not _has_text(child.get(schema.instruction_attribute, "")):
                yield _value((child,), self._walk(child))
            elif is_prompt(schema, child):
                yield InlineItem(InlineKind.EMPTY, (child,), stands=StandsForWord.WITHIN)
            elif child.tag in schema.wrappers or child.tag in schema.fields:
                key = next(self._keys)
                yield InlineItem(InlineKind.OPEN, (Wrapper(child),), key=key, divides="run")
                yield from self._walk(wrapper_content(schema, child))
                yield InlineItem(InlineKind.CLOSE, (Wrapper(child),), key=key, divides="run")
            else:
                yield InlineItem(InlineKind.EMPTY, (child,), breaks=child.tag in schema.breaks, stands=_stands(child))

    def _properties(self, item: Item) -> Element | None:
        return run_properties(self._schema, item.parts[0].getparent())

    def _with_symbols(self, items: Sequence[Item]) -> list[Item]:
        """Return the items, with a KEPT item in place of each symbol with an index of letters below the line."""
        found: list[Item] = []
        for item in items:
            is_low = found and item.kind is InlineKind.TEXT and self._level(item) < 0
            if is_low and (symbol := symbol_before(found[-1], item.text)):
                base = found.pop()
                found += (replace(base, text=part) for part in split_whitespace(base.text[: symbol.start()]) if part)
                pieces = (base, symbol[0]), (item, item.text)
                parts = tuple(new_run(self._schema, self._properties(one), text) for one, text in pieces)
                item = InlineItem(InlineKind.KEPT, parts, symbol[0] + item.text)
            found.append(item)
        return found

    def _with_notes(self, items: Sequence[Item]) -> Iterator[Item]:
        """Yield the items, with an EMPTY item in place of each text that is a footnote mark."""
        before: list[Item] = []  # the texts before the item
        done = 0
        for raised, group in groupby(items, lambda item: item.kind is InlineKind.TEXT and self._level(item)):
            texts = list(group)
            done += len(texts)
            mark = "".join(item.text for item in texts)
            if raised == 1 and is_note_mark(mark, (item.text for item in reversed(before)), raised=True):
                properties = self._properties(texts[0])
                for text in filter(None, split_whitespace(mark)):
                    if text.isspace():  # of the format of the text around the mark
                        yield replace(before[-1], text=text)
                    else:
                        glued = done < len(items) and mark[-1:] == text[-1:] and items[done].text[:1].isalnum()
                        yield InlineItem(InlineKind.EMPTY, (new_run(self._schema, properties, text),), breaks=glued)
            else:
                yield from texts
                before += (item for item in texts if item.kind is InlineKind.TEXT)

    def _level(self, item: Item) -> int:
        """Return 1 for a text above the line, -1 for one below it, and 0 for other texts."""
        properties = self._properties(item)
        if properties is None:
            return 0
        style = properties.find("{*}rStyle")
        if style is not None and _NOTE_STYLE.search(next(iter(style.values()), "")):
            return 1
        position = next(properties.iterchildren("{*}vertAlign", "{*}position"), None)
        value = properties.get("baseline", "0") if position is None else next(iter(position.values()), "")
        return -1 if value.startswith(("-", "sub")) else int(value not in ("0", "0%", "baseline"))

    def _base_format(self, items: Sequence[Item], keys: Sequence[_Key], formats: Sequence[Element]) -> Element | None:
        """Return the run properties of most of the text. Return None if that text has no properties."""
        depth = 0
        counts: tuple[Counter[_Key], Counter[_Key]] = (Counter(), Counter())  # of text outside and inside of marks
        by_key: dict[_Key, Element | None] = {}
        for item, key, properties in zip(items, keys, formats, strict=True):
            depth += {InlineKind.OPEN: 1, InlineKind.CLOSE: -1}.get(item.kind, 0)
            if item.kind is InlineKind.TEXT:
                by_key.setdefault(key, properties)
                is_link = properties is not None and properties.find(self._schema.link) is not None
                counts[depth > 0 or is_link][key] += len(item.text.strip())
        chosen = counts[0] if counts[0].total() else counts[1]
        if not chosen:
            return None
        usual = chosen.most_common(1)[0][0]
        texts = [key for item, key in zip(items, keys, strict=True) if any(map(str.isalnum, item.text))]
        groups = Counter(key for key, _ in groupby(texts))
        most = {key: count + (count > 1) for key, count in groups.items()}  # a sentence may begin and end with emphasis
        plainer = (key for key in chosen if most.get(key, 0) >= groups[usual] and set(key) < set(usual))
        return by_key[min(plainer, key=len, default=usual)]

    def _format_key(self, properties: Element | None) -> _Key:
        """Return the visible run properties. They are the same for all formats with the same appearance."""
        if properties is None:
            return ()
        invisible = self._schema.invisible
        attributes = sorted((name, value) for name, value in properties.attrib.items() if name not in invisible)
        children = (
            [(inner.tag, sorted(inner.items()), inner.text) for inner in child.iter(etree.Element)]
            for child in properties
            if child.tag not in invisible
        )
        return *map(repr, attributes), *map(repr, children)

    def _formatted(self, items: Sequence[Item], keys: Sequence[_Key], base_key: _Key) -> Iterator[Item]:
        """Yield the items, with OPEN and CLOSE items around successive texts in another format than the base format."""
        pairs = zip(items, keys, strict=True)
        for key, group in groupby(pairs, lambda pair: pair[1] if pair[0].kind is InlineKind.TEXT else base_key):
            inside = [item for item, _ in group]
            if key == base_key:
                yield from inside
                continue
            part, divides = RunFormat(self._properties(inside[0])), "" if self._level(inside[0]) else "run"
            opened = InlineItem(InlineKind.OPEN, (part,), key=next(self._keys), divides=divides)
            yield from (opened, *inside, replace(opened, kind=InlineKind.CLOSE))


def run_properties(schema: RunSchema, run: Element) -> Element | None:
    """Return the properties of a run: its first element, if it has any. A search would read all texts of the run."""
    first = next(run.iterchildren("*"), None)
    return first if first is not None and first.tag == schema.properties else None


def new_run(schema: RunSchema, properties: Element | None, text: str) -> Element:
    """Return a run with a text and a copy of its properties."""
    run = etree.Element(schema.run)
    if properties is not None and (len(properties) or properties.attrib):
        run.append(deepcopy(properties))
    written = etree.SubElement(run, schema.text)
    written.text = NOT_XML.sub("", text)
    if schema.preserve_space:
        written.set(XML_SPACE, "preserve")
    return run


def wrapper_content(schema: RunSchema, wrapper: Element) -> Element:
    """Return the element that contains the runs of a wrapper: its child, or the wrapper itself."""
    content = wrapper.find(schema.content) if schema.content else None
    return wrapper if content is None else content


def is_prompt(schema: RunSchema, element: Element) -> bool:
    """Return whether an element is a content control of runs with a prompt, such as "Click here to enter text."."""
    content = element.find(schema.content) if schema.content and element.tag in schema.wrappers else None
    if content is None or content.find(schema.run) is None:
        return False
    return element.find("{*}sdtPr/{*}showingPlcHdr") is not None


class _FieldReader:
    """Finder of the fields among the items of a paragraph that consist of several elements.

    Such a field begins with a mark and its instruction. Then follow a mark, its result, and the last mark. Any of these
    may be in a wrapper of its own, such as a tracked insertion.
    """

    def __init__(self, schema: RunSchema, items: Sequence[Item], keys: Iterator[int]) -> None:
        self._schema, self._items, self._keys = schema, items, keys
        self._partner = partners(items)
        self._replaced: dict[int, tuple[int, Item]] = {}  # by the first index of a range: its end, and its new item

    def items(self) -> list[Item]:
        """Return the items, with an item in place of each field with a value.

        OPEN and CLOSE items stand in place of the marks of fields with a text. If a field ends in another paragraph,
        its result is text.
        """
        done = 0
        for sequence in self._fields():
            if sequence.begin >= done:
                done = self._replace(sequence)
        items: list[Item] = []
        number = 0
        while number < len(self._items):
            number, item = self._replaced.get(number, (number + 1, self._items[number]))
            items.append(item)
        return items

    def _fields(self) -> list[_Field]:
        """Return the fields in the order of their beginnings."""
        schema = self._schema
        fields: list[_Field] = []
        opened: list[_Field] = []
        for number, item in enumerate(self._items):
            if item.kind is not InlineKind.EMPTY:
                continue
            element = item.parts[0]
            kind = element.get(schema.field_type) if element.tag == schema.field_mark else ""
            if kind == "begin":
                opened.append(_Field(number))
                fields.append(opened[-1])
            elif not opened:
                continue
            elif kind == "separate" and opened[-1].separate < 0:
                opened[-1].separate = number
            elif kind == "end":
                opened.pop().end = number
            elif element.tag == schema.instruction and opened[-1].separate < 0:
                opened[-1].instruction = (opened[-1].instruction + (element.text or ""))[:100]
        return fields

    def _replace(self, sequence: _Field) -> int:
        """Note the new items of a field. Return the index of the first item that may belong to another field."""
        begin, separate, end = sequence.begin, sequence.separate, sequence.end
        if separate >= 0 and end < 0:
            return self._put(self._balanced(begin, separate + 1), InlineKind.EMPTY)
        if separate >= 0 and _has_text(sequence.instruction):
            code, last = self._balanced(begin, separate + 1), self._balanced(end, end + 1)
            text = code[1], last[0]
            if text[0] <= text[1] and self._enclosing(*text) == text:
                key = next(self._keys)
                self._put(last, InlineKind.CLOSE, key)
                return self._put(code, InlineKind.OPEN, key)
        around = self._balanced(begin, end + 1 if end >= 0 else len(self._items))
        result = self._items[separate + 1 : end] if 0 <= separate < end else ()
        self._replaced[around[0]] = around[1], _value(_elements(self._items[slice(*around)]), result)
        return around[1]

    def _put(self, place: tuple[int, int], kind: InlineKind, key: int = -1) -> int:
        code = FieldCode(_elements(self._items[slice(*place)]))
        self._replaced[place[0]] = place[1], InlineItem(kind, (code,), key=key)
        return place[1]

    def _balanced(self, begin: int, end: int) -> tuple[int, int]:
        """Return the range of items around items[begin:end] that has both tags of each wrapper.

        Wrappers around nothing else are part of it.
        """
        begin, end = self._enclosing(begin, end)
        while begin > 0 and end < len(self._items) and self._partner[begin - 1] == end:
            begin, end = begin - 1, end + 1
        return begin, end

    def _enclosing(self, begin: int, end: int) -> tuple[int, int]:
        """Return the smallest range of items around items[begin:end] that has both tags of each wrapper."""
        others = [other for other in self._partner[begin:end] if other >= 0]
        around = min(begin, *others, begin), max(end, *(other + 1 for other in others), end)
        return around if around == (begin, end) else self._enclosing(*around)


def _stands(element: Element) -> StandsForWord:
    """Return where an element without text stands for a word: a formula, or a picture in a line of text."""
    if isinstance(element.tag, str) and element.tag.rpartition("}")[2] in _FORMULAS:
        return StandsForWord.ALWAYS
    in_line = next(element.iterchildren("{*}inline"), None) is not None or "as-char" in element.attrib.values()
    return StandsForWord.WITHIN if in_line else StandsForWord.NEVER


def _has_text(instruction: str) -> bool:
    """Return whether the result of a field with this instruction is text to translate."""
    names = read_words("documents/names.toml")["text_fields"]
    return not names.isdisjoint(instruction.upper().split(maxsplit=1)[:1])


def _value(elements: tuple[Element, ...], result: Iterable[Item]) -> Item:
    """Return the item of a field with a value, such as the number of a page, which is part of the sentence around it.

    `elements` is the whole field, and `result` the items of its value.
    """
    value = "".join(item.text for item in result).strip()
    kind = InlineKind.KEPT if 0 < len(value) <= _MAX_FIELD else InlineKind.EMPTY
    return InlineItem(kind, elements, value if kind is InlineKind.KEPT else "")


def _elements(items: Sequence[Item]) -> tuple[Element, ...]:
    """Return the outermost elements of items that have both tags of each wrapper."""
    elements: list[Element] = []
    depth = 0
    for item in items:
        part = item.parts[0]
        if isinstance(part, Wrapper):
            depth -= item.kind is InlineKind.CLOSE
            if depth == 0 and item.kind is InlineKind.OPEN:
                elements.append(part.element)
            depth += item.kind is InlineKind.OPEN
        elif depth == 0:
            elements += part.elements if isinstance(part, FieldCode) else item.parts
    return tuple(elements)


def _without_wordless_pairs(items: Sequence[Item], content: str) -> list[Item]:
    """Return the items, with one EMPTY item in place of each pair of OPEN and CLOSE items without words between them.

    For example, a link around a picture becomes one item. A wrapper with a child `content` whose text has no letters
    and digits, such as a check box, becomes a KEPT item with this text if a space follows.
    """
    merged: list[Item] = []
    words = letters = 0
    opened: list[tuple[int, int, int]] = []  # of each open pair: index in `merged`, and number of words before it
    for number, item in enumerate(items):
        if item.kind is InlineKind.OPEN:
            opened.append((len(merged), words, letters))
        words += item.has_words
        letters += item.has_words and any(map(str.isalnum, item.text))
        merged.append(item)
        if item.kind is InlineKind.CLOSE and opened and merged[opened[-1][0]].key == item.key:
            begin, words_before, letters_before = opened.pop()
            part = item.parts[0]
            is_control = content and isinstance(part, Wrapper) and part.element.find(content) is not None
            if words == words_before or (is_control and letters == letters_before):
                inside = merged[begin:]
                is_apart = all(after.text[:1].isspace() for after in items[number + 1 : number + 2])
                sign = "".join(part.text for part in inside).strip() if is_apart else ""
                breaks = not sign and any(part.breaks or part.kind is InlineKind.TEXT for part in inside)
                kind = InlineKind.KEPT if sign else InlineKind.EMPTY
                merged[begin:] = [InlineItem(kind, _elements(inside), sign, breaks=breaks)]
                words, letters = words_before, letters_before
    return merged
