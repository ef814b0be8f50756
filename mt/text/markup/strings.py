"""Tags in plain strings, such as those of program resources, which often contain `<b>` and `<br/>`.

A tag is recognised if it has a partner, is empty (`<br/>`), or is a block or an empty element of HTML. Texts that only
contain `<`, such as `a < b`, `List<String>` and `<name@example.org>`, have no tags. References such as `&amp;` are not
decoded: they are protected in the text, and stay as they are. A tag may be written with references: `&lt;b&gt;`.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise

from mt.languages import primary_language
from mt.text.alignment import Range
from mt.text.clauses import divides_lines
from mt.text.markup.copies import is_misread
from mt.text.markup.elements import BLOCKS, VOID, Dialect, OpenElements
from mt.text.markup.inline import InlineItem, InlineKind, InlineText, decode_nothing, read_inline, text_items
from mt.text.markup.notes import is_note_mark
from mt.text.messages import message_parts, whole_sentences
from mt.text.normalise import remove_invisible
from mt.text.segment import BBCODE, LONGEST_SENTENCE, PAUSE, TextPart, split_text
from mt.text.templates import TemplateCode, find_templates
from mt.text.word_tables import read_tables

_TAG, _MARK, _FIRST_MARK, _BRACKETS, _ANGLE, MESSAGE, _NO_TRANSLATION, _NO_BREAK_SPACE = (
    re.compile(pattern) for pattern in read_tables("patterns.toml")["strings"].values()
)
_MARKS = re.compile(
    "|".join(
        rf"(?P<{name}>{before}){words}(?P<{name}_end>{after})"
        for name, (before, words, after) in read_tables("patterns.toml")["marks"].items()
    ).replace("{bbcode}", BBCODE)
)
_NO_NAMES, _NAMED, _KIND = read_tables("patterns.toml")["underscored"].values()
_UNDERSCORED = rf"_(?!(?:{_NO_NAMES})_)[^\W\d_]{{3,30}}_"
_UNDERSCORED += rf"(?:(?:, (?:and |et |und )?| (?:and|et|or|ou|oder|und) ){_UNDERSCORED}){{0,9}}"
_NAMES = re.compile(rf"{_NAMED}{_UNDERSCORED}|{_UNDERSCORED}(?={_KIND})")  # of code, as in "the _data_ folder"
_IS_CODE = re.compile(rf"(?!(?:{_NO_NAMES})\W)\w++\*{{1,3}}(?:{_KIND})")
_LAST_MARK = re.compile(
    rf"(?<=[^\s*_~'\\])(?:\*{{1,3}}|'{{2,3}}|~~|_{{1,2}}|\[/(?:{BBCODE})\]|\s+[-–—*=~#<>★☆]{{1,20}})\Z"
)
_LAST_SIGNS = frozenset("*'~_]-–—=#<>★☆")
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})([^`\n]*)$", re.MULTILINE)
_METADATA, _VALUE = (re.compile(pattern, re.MULTILINE) for pattern in read_tables("patterns.toml")["metadata"].values())
_NATIVE_CODE = frozenset({"bpt", "ept", "ref", "script", "style"})  # the first are of XLIFF and TMX
_UNTRANSLATED = frozenset({"code", "kbd", "notranslate", "samp", "tt", "var"}) | (_NATIVE_CODE - {"ref"})
_NEAR = 20  # pieces of text before a line break that are examined
_BEFORE_NOTE = 100  # number of characters before the mark of a note that are examined
_OBJECT = "\ufffc"
_EMPHASISED = re.compile("_[a-zß-ÿ]")
_GOES_ON = re.compile(r" ?[\w({%:]")
_ARTICLE = re.compile(r"\b(?:d(?:as|e[mnrs]|ie)|(?:euer|eure|ihr|k?ein|[dms]ein|unser)e?[mnrs]?) \Z", re.IGNORECASE)
_EMPTY_END = re.compile(r"""["'\s]/(?:>|&gt;)\Z""")
_MAY_BE_CODE = re.compile(r"[<{\[*@#&`~]|\A---")  # a fast test: without it, a text has no tags and no code
EMPHASIS = "**"  # the mark that models know best
STATEMENT = "{%"  # the name of a statement of a template or message
_DIALECT = Dialect(xml=False, words=True)


@dataclass(frozen=True, slots=True)
class StringTag:
    """The tag at `text[begin:end]` of a text. `partner` is the offset of the other tag of its element, or -1."""

    begin: int
    end: int
    name: str
    partner: int = -1

    @property
    def closes(self) -> bool:
        return 0 <= self.partner < self.begin


def keeps_marks(text: str, translation: str) -> bool:
    """Return whether a translation has the emphasis and the links of its text, if this has any.

    No emphasis of it crosses a quotation, as in `**tab „File**“`.
    """
    if not (marks := _find_marks(text)):
        return True
    found = _find_marks(translation)
    return (
        sorted(map(_notation, marks)) == sorted(map(_notation, found))
        and text.count("*") == translation.count("*")
        and all(one[0].count("„") == one[0].count("“") and one[0].count('"') % 2 == 0 for one in found)
    )


def is_label(text: str, place: Range, language: str) -> bool:
    """Return whether a marked range may be a label: models read other emphasised words as labels, too.

    A label has a capital that is not that of its sentence or, as far as articles show, of a German noun.
    """
    before, word, after = text[: place[0]], text[slice(*place)], text[place[1] :]
    if not word[0].isupper() or word[-1] in ".:!?" or (word.isupper() and len(word) > 2):
        return False
    if primary_language(language) == "de" and after[:1] != "-" and _ARTICLE.search(before[-9:]):
        return False
    return any(map(str.isalnum, before)) or not _GOES_ON.match(after)


def write_marks(text: str, ranges: Sequence[Range]) -> str:
    """Return a text with marks of emphasis around ranges, which are sorted."""
    cuts = [0, *chain.from_iterable(ranges), len(text)]
    return EMPHASIS.join(text[begin:end] for begin, end in pairwise(cuts))


def write_known(text: str, known: Mapping[str, str]) -> str:
    """Return a translation with the known translations of words that stand unchanged between marks of emphasis."""
    for word, new in known.items():
        text = text.replace(f"{EMPHASIS}{word}{EMPHASIS}", f"{EMPHASIS}{new}{EMPHASIS}")
    return text


def read_marks(text: str) -> tuple[str, tuple[Range, ...]]:
    """Return a text without its marks of emphasis, and the ranges of the words that these enclose."""
    bare, end, ranges = "", 0, list[Range]()
    for begin, inner, stop, after in map(_bounds, _find_marks(text)):
        if text[begin:inner] == EMPHASIS:
            bare += text[end:begin]
            ranges.append((len(bare), len(bare) + stop - inner))
            bare, end = bare + text[inner:stop], after
    return bare + text[end:], tuple(ranges)


def _notation(mark: re.Match[str]) -> tuple[str, str]:
    begin, inner, stop, end = _bounds(mark)
    return mark.string[begin:inner], mark.string[stop:end]


def has_unusual_marks(text: str, knows: Callable[[str], int] = lambda word: 1) -> bool:
    """Return whether a text has links or emphasis that models may not know, unlike `**File**` or the name `**Tom**`.

    A name is also a word that the model does not know, such as `**numpy**`, and one of code, as in `the *data* folder`.
    """
    marks = (
        mark for mark in _find_marks(text) if not (mark["emphasis"] and _IS_CODE.match(text, mark.end("emphasis")))
    )
    words = ((mark, text[mark.end("emphasis") : mark.start("emphasis_end")]) for mark in marks)
    return any(
        not mark["emphasis"] or is_misread(word) or (word[0].islower() and (not word.isalpha() or knows(word)))
        for mark, word in words
    )


def has_foreign_marks(text: str) -> bool:
    """Return whether a text has marks that models do not know from documentation, which has `*a*` and `[a](b)`.

    Nor do they know dates, times and negations within marks: they wrote `**Titag**` for `**Tuesday**`.
    """
    return any(
        not (mark["emphasis"] or mark["link"])
        or mark[0][0] == "'"
        or _EMPHASISED.match(mark[0])
        or (mark["emphasis"] and is_misread(text[mark.end("emphasis") : mark.start("emphasis_end")]))
        for mark in _find_marks(text)
    )


def _find_marks(text: str) -> list[re.Match[str]]:
    """Return the marks of emphasis and links, but not underscores around names of code."""
    if not _MARK.search(text):
        return []
    names = [name.span() for name in _NAMES.finditer(text)] if "_" in text else []
    return [one for one in _MARKS.finditer(text) if not any(a <= one.start() < b for a, b in names)]


def inner_range(sentence: str) -> Range:
    """Return the range of a sentence without brackets or marks of emphasis around it or several."""
    if quoted := _BRACKETS.fullmatch(sentence):
        return quoted.span(quoted.lastindex or 0)
    first = _FIRST_MARK.match(sentence)
    last = _LAST_MARK.search(sentence) if sentence[-1:] in _LAST_SIGNS else None
    opening, closing = first[0] if first else "", last[0] if last else ""
    begin, end = len(opening), len(sentence) - len(closing)
    if opening == closing:  # a label such as **File** stays: models know these from documentation
        ends = opening[:1] in ("_", "~") or sentence[end - 1 : end] in tuple(".!?…")
        is_sentence = ends or (" " in sentence and not remove_invisible(sentence).text.istitle())
        return (begin, end) if is_sentence and opening not in sentence[begin:end] else (0, len(sentence))
    opens = "_" not in opening and opening not in sentence[begin:] and sentence[begin].isupper()
    closes = "_" not in closing and closing.replace("/", "").rstrip("]") not in sentence[:end]
    return begin if opens else 0, end if closes else len(sentence)


def _bounds(mark: re.Match[str]) -> tuple[int, int, int, int]:
    """Return the offsets at which the mark before the words begins and ends, then those of the mark after them."""
    last = str(mark.lastgroup)
    return *mark.span(last.removesuffix("_end")), *mark.span(last)


def find_tags(text: str, marks: bool = False) -> list[StringTag]:
    """Return the tags, the comments and the statements of templates and ICU messages of a text, in order.

    A statement is a tag named STATEMENT. Tags in code of templates are left out. `marks` adds those of `_MARKS`.
    """
    tags: list[StringTag] = []
    for _ in _find_tags(text, tags):
        pass
    found = _find_marks(text) if marks else []
    taken = {place for tag in tags for place in range(tag.begin, tag.end)} if found else set[int]()
    for match in found:  # including those found within others
        begin, inner, stop, end = _bounds(match)
        found += _MARKS.finditer(text, inner, stop) if match["bbcode"] else ()
        if taken.isdisjoint(range(begin, end)):
            tags += StringTag(begin, inner, "strong", stop), StringTag(stop, end, "strong", begin)
    return sorted(tags, key=lambda tag: tag.begin) if found else tags


def _find_tags(text: str, tags: list[StringTag]) -> Iterator[None]:
    """Append the tags that `find_tags` returns without `marks`. Each step between two values takes a bounded time."""
    if not _MAY_BE_CODE.search(text):
        return
    templates = list[TemplateCode]()
    for block in _code_blocks(text):
        yield
        templates += [block] if block else []
    fenced = _bytes_within(text, templates)
    for code in chain(find_templates(text), _message_syntax(text), _metadata_syntax(text)):
        yield
        if code and not (fenced and fenced[code.begin]):
            templates.append(code)
    if not (templates or _ANGLE.search(text)):
        return
    within = _bytes_within(text, templates)
    matches, partners, opened = list[re.Match[str]](), dict[int, int](), OpenElements()
    for match in _TAG.finditer(text):
        yield
        if within and within[match.start()]:
            continue
        name = "" if _is_empty(match) else (match["name"] or "").lower()
        if not match["end"] and name:
            opened.open(len(matches), name)
        elif name and (depths := opened.depths.get(name)):
            begin = opened.close(depths[-1])[0]
            partners[begin], partners[len(matches)] = match.start(), matches[begin].start()
        matches.append(match)
    tags += (StringTag(template.begin, template.end, STATEMENT) for template in templates if template.statement)
    for number, match in enumerate(matches):
        yield
        begin, end = match.span()
        name = (match["name"] or "").lower()
        attached = begin > 0 and text[begin - 1].isalnum()  # as in vector<p>
        alone = not match["name"] or _is_empty(match) or name in VOID or (name in BLOCKS and not attached)
        if number in partners or alone:
            tags.append(StringTag(begin, end, name, partners.get(number, -1)))
    tags.sort(key=lambda tag: tag.begin)


def _is_empty(tag: re.Match[str]) -> bool:
    """Return whether a tag ends with a slash that is no part of an attribute, as in `<a href=x/>`."""
    return bool(tag["empty"]) or _EMPTY_END.search(tag[0]) is not None


def _bytes_within(text: str, templates: Sequence[TemplateCode]) -> bytearray:
    """Return a byte for each character of a text, 1 in templates and 0 elsewhere; none if there are no templates."""
    within = bytearray(len(text) if templates else 0)
    for template in templates:
        within[template.begin : template.end] = b"\1" * (template.end - template.begin)
    return within


def _code_blocks(text: str) -> Iterator[TemplateCode | None]:
    """Yield the blocks of code between fences as statements. None is yielded before each step."""
    begin, fence = 0, ""
    for line in _FENCE.finditer(text) if "```" in text or "~~~" in text else ():
        yield None
        if not fence:
            begin, fence = line.start(), line[1]
        elif line[1].startswith(fence) and not line[2].strip():
            yield TemplateCode(begin, line.end(), statement=True)
            fence = ""


def _message_syntax(text: str) -> Iterator[TemplateCode | None]:
    """Yield the syntax between the branches of ICU messages as statements. None is yielded after other steps."""
    end, parts = 0, list[tuple[str, bool]]()
    for part in message_parts(text) if MESSAGE.search(text) else ():
        yield None
        parts.append(part)
    for piece, translated in parts if "".join(piece for piece, _ in parts) == text else ():
        begin, end = end, end + len(piece)
        if not translated:
            yield TemplateCode(begin, end, statement=True)


def _metadata_syntax(text: str) -> Iterator[TemplateCode]:
    """Yield what is around the values of the metadata before Markdown as statements."""
    if block := _METADATA.match(text) if text.startswith("---") else None:
        end = 0
        for value in _VALUE.finditer(text, 0, block.end()):
            begin, after = value.span(1)
            yield TemplateCode(end, begin, statement=True)
            end = begin + len(text[begin:after].rstrip(" \t\"'"))
        yield TemplateCode(end, block.end(), statement=True)


def split_marked_text(text: str, language: str) -> Iterator[TextPart]:
    """Yield the sentences and kept parts of a text that may contain tags, as `split_text` does.

    Tags of blocks, statements of templates, and line breaks after a sentence, before a bullet or, in a table, before a
    capital, are kept parts. Other tags do not affect the ends of sentences: an end tag belongs to the part before it.
    PAUSE comes after a step that gave no part, so that the time between two parts is bounded. A part of more than
    LONGEST_SENTENCE characters with its tags is cut behind tags.
    """
    if "{" in text and MESSAGE.search(text) and len(text) < LONGEST_SENTENCE and (message := whole_sentences(text)):
        yield from _split_around_branches(message[0], language)
        return
    tags: list[StringTag] = []
    for _ in _find_tags(text, tags):
        yield PAUSE
    if not tags:
        yield from split_text(text, language)
        return
    bare, following = list[str](), dict[int, int]()  # `following`: end tags by their offsets
    ends: list[int] = []  # offsets in `text` of the ends of the characters of `bare`
    end = 0
    for tag in [*tags, StringTag(len(text), len(text), "")]:
        yield PAUSE
        bare.append(text[end : tag.begin])
        ends += range(end + 1, tag.begin + 1)
        end = tag.end
        if sign := _sign(tag, text, "".join(bare[-_NEAR:]).rpartition("\n")[2], language):
            bare.append(sign)
            ends.append(tag.end)
        if tag.closes and tag.name not in BLOCKS:
            following[tag.begin] = tag.end
    begin = count = 0
    cuts = [0, *(tag.end for tag in tags), len(text)]
    for part in split_text("".join(bare), language):
        count += len(part.text)
        stop = ends[count - 1] if count < len(ends) else len(text)
        while stop in following:
            stop = following[stop]
        while stop - begin > LONGEST_SENTENCE:
            cut = cuts[max(bisect_right(cuts, begin), bisect_right(cuts, begin + LONGEST_SENTENCE) - 1)]
            if cut >= stop:
                break
            yield replace(part, text=text[begin:cut])
            begin = cut
        yield replace(part, text=text[begin:stop])
        begin = stop


def _split_around_branches(parts: Sequence[tuple[str, bool]], language: str) -> Iterator[TextPart]:
    """Yield the sentences of a message, of which one contains its branches. `parts` are those of `split_message`."""
    argument = "".join(text for text, _ in parts[1:-1])
    place = len(parts[0][0])  # in the rest of the text; the text may have such a character elsewhere
    for part in split_marked_text(parts[0][0] + _OBJECT + parts[-1][0], language):
        has_branches = 0 <= place < len(part.text)
        text = part.text[:place] + argument + part.text[place + 1 :] if has_branches else part.text
        yield replace(part, text=text, kept=part.kept and not has_branches)
        place -= len(part.text)


def _sign(tag: StringTag, text: str, before: str, language: str) -> str:
    """Return the character that stands for a tag behind the text `before` when sentences are divided, or ""."""
    if tag.name == STATEMENT or tag.name in BLOCKS:
        return "\n"
    if tag.begin == len(text) or tag.closes:
        return ""
    if tag.name == "br":
        after = text[tag.end : tag.end + 20]
        is_in_table = text.startswith("|", text.rfind("\n", 0, tag.begin) + 1)
        divides = text[tag.begin - 1 : tag.begin] == ">" or (is_in_table and after.lstrip()[:1].isupper())
        return "\n" if divides or divides_lines(before, after, language) else " "
    return _OBJECT if tag.partner in (-1, tag.end) else ""


def read_marked_sentence(sentence: str, kept: Sequence[Range], marks: bool = False) -> InlineText[str] | None:
    """Return the inline items of a sentence with tags (`find_tags`). None: it has none, or one in `kept`."""
    tags = find_tags(sentence, marks)
    has_tags = tags or ("&" in sentence and _NO_BREAK_SPACE.search(sentence))
    if not has_tags or any(begin < tag.end and end > tag.begin for begin, end in kept for tag in tags):
        return None
    items: list[InlineItem[str]] = []
    end = 0
    kept_items = ((a, b, InlineItem(InlineKind.KEPT, (sentence[a:b],), sentence[a:b])) for a, b in kept)
    for begin, stop, item in sorted([*_tag_items(sentence, tags), *kept_items], key=lambda one: one[0]):
        items += [*_divided_texts(sentence[end:begin]), item]
        end = stop
    items += _divided_texts(sentence[end:])
    return read_inline(items, decode_nothing, collapse=False)


def _tag_items(sentence: str, tags: Sequence[StringTag]) -> Iterator[tuple[int, int, InlineItem[str]]]:
    """Yield (begin, end, item) of each tag, and of each element whose content is not translated, as a whole."""
    ends = {tag.begin: tag.end for tag in tags}
    done = 0
    for tag in tags:
        if tag.begin < done:
            continue
        source = sentence[tag.begin : tag.end]
        stands = _DIALECT.stands_for_word(tag.name)
        is_note = tag.name == "ref" and not sentence[max(0, tag.begin - 1) : tag.begin].isspace() and tag.begin > 0
        if tag.name == "sup" and tag.partner > tag.begin:
            before = _TAG.sub("", sentence[max(0, tag.begin - _BEFORE_NOTE) : tag.begin])
            is_note = is_note_mark(sentence[tag.end : tag.partner], [before], raised=True)
        done = tag.end
        if tag.partner < 0:
            item = InlineItem(InlineKind.EMPTY, (source,), breaks=tag.name == "br", stands=stands)
        elif not tag.closes and (tag.name in _UNTRANSLATED or is_note or _NO_TRANSLATION.search(source)):
            done = ends[tag.partner]
            text = "" if is_note or tag.name in _NATIVE_CODE else _TAG.sub("", sentence[tag.begin : done])
            kind = InlineKind.KEPT if text.strip() else InlineKind.EMPTY
            item = InlineItem(kind, (sentence[tag.begin : done],), text)
        else:
            kind, key = (InlineKind.CLOSE, tag.partner) if tag.closes else (InlineKind.OPEN, tag.begin)
            name = "" if tag.name in ("sub", "sup") else tag.name
            item = InlineItem(kind, (source,), key=key, stands=stands, divides=name)
        yield tag.begin, done, item


def _divided_texts(text: str) -> Iterator[InlineItem[str]]:
    """Yield the items of a text. A reference to a no-break space is an empty item that separates words."""
    for number, part in enumerate(_NO_BREAK_SPACE.split(text)):
        if number % 2:
            yield InlineItem(InlineKind.EMPTY, (part,), breaks=True)
        else:
            yield from text_items(part)
