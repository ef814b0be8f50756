"""Tags in plain strings, such as those of program resources, which often contain `<b>` and `<br/>`.

A tag is recognised if it has a partner, is empty (`<br/>`), or is a block or an empty element of HTML. Texts that only
contain `<`, such as `a < b`, `List<String>` and `<name@example.org>`, have no tags. References such as `&amp;` are not
decoded: they are protected in the text, and stay as they are. A tag may be written with references: `&lt;b&gt;`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mt.text.alignment import Range
from mt.text.markup.elements import BLOCKS, VOID, Dialect, ElementIndex
from mt.text.markup.inline import InlineItem, InlineKind, InlineText, decode_nothing, read_inline, text_items
from mt.text.markup.reading import BULLET, SENTENCE_END
from mt.text.markup.tokens import Token, TokenKind
from mt.text.messages import split_message
from mt.text.segment import TextPart, split_text
from mt.text.templates import TemplateCode, find_templates

_TAG = re.compile(
    r"(?:<|(?P<escaped>&lt;))(?P<end>/?)(?P<name>[A-Za-z][\w:-]{0,40}|\d{1,3})"
    r"(?:\s(?(escaped)(?:(?!&[lg]t;)[^<>]){0,1000}|[^<>]{0,1000}))?(?P<empty>/?)(?(escaped)&gt;|>)"
    r"|<!--(?:[^-<]|<(?!!--)|-(?!->)){0,1000}-->"
)
_MARKS = re.compile(  # of Markdown, BBCode, wikis and LaTeX
    r"(?<![*\w\\'])(?P<open>\*{1,3}|'{3}|_{1,2}(?=[^_\n]{0,500} ))(?=[^\s*_,.;:!?)\]}])[^*\n]{0,1000}?"
    r"(?<=[^\s*\\])(?P<close>(?P=open))(?![*\w'])"
    r"|(?<!\w)(?P<tag>\[(?P<name>b|center|color|font|i|quote|size|u|url)(?:=[^\[\]\n]{1,500})?\])[^\n]{1,1000}?(?P<end>\[/(?P=name)\])"
    r"|(?P<macro>\\(?:emph|text(?:bf|it|sc|sf)|underline)\{)[^{}\n]{1,1000}(?P<brace>\})"
    r"|(?<![\w\\])(?P<bracket>!?\[)(?=[^\W_])[^\[\]\n]{1,1000}(?P<target>\]\([^\s()]{1,1000}(?: \"[^\"\n]{0,500}\")?\))"
)
_MARK = re.compile(r"[*_]|'''|\]\(|\[/|\\[etu]")  # a fast test
_PAIRS = ("open", "close"), ("tag", "end"), ("macro", "brace"), ("bracket", "target")
_ANGLE = re.compile(r"<|&lt;")
MESSAGE = re.compile(r"\{\s*+[\w.-]++\s*+,\s*+(?:choice|plural|select)")  # a fast test
_UNTRANSLATED = frozenset({"code", "kbd", "notranslate", "samp", "script", "style", "tt", "var"})
_NO_TRANSLATION = re.compile(r"""\stranslate=["']?no\b|\sclass=["'][^"']*\bnotranslate\b""")
_NO_BREAK_SPACE = re.compile(r"(&nbsp;|&#160;|&#[xX][aA]0;)")
_OBJECT = "\ufffc"
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
    """Return whether a translation has as much emphasis and as many links as its text, if this has any."""
    count = len(_MARKS.findall(text)) if _MARK.search(text) else 0
    return not count or count == len(_MARKS.findall(translation))


def has_unusual_marks(text: str) -> bool:
    """Return whether a text has links or emphasis that models may not know from documentation.

    They know labels such as `**File**`. Emphasised words with a capital may also be names.
    """
    found = _MARKS.finditer(text) if _MARK.search(text) else ()
    return any(not mark["open"] or text[mark.end("open")].islower() for mark in found)


def copies_marked_words(text: str, translation: str) -> bool:
    """Return whether a translation has emphasised words of its text, or marks of other kinds than emphasis."""
    written = {mark[0].casefold() for mark in _MARKS.finditer(translation)}
    return any(not mark["open"] or mark[0].casefold() in written for mark in _MARKS.finditer(text))


def move_marks(translation: str, marked: str) -> str:
    """Return a translation with its marks around the words that are marked in another one; "" if it lacks some."""
    for mark in reversed([*_MARKS.finditer(translation)]):
        begin, inner, stop, end = _bounds(mark)
        translation = translation[:begin] + translation[inner:stop] + translation[end:]
    for mark in _MARKS.finditer(marked):
        _, inner, stop, _ = _bounds(mark)
        places = [*re.finditer(rf"(?<!\w){re.escape(marked[inner:stop])}(?!\w)", translation)]
        if len(places) != 1:
            return ""
        translation = translation[: places[0].start()] + mark[0] + translation[places[0].end() :]
    return translation


def _bounds(mark: re.Match[str]) -> tuple[int, int, int, int]:
    """Return the offsets at which the mark before the words begins and ends, then those of the mark after them."""
    first, last = next(pair for pair in _PAIRS if mark[pair[0]])
    return *mark.span(first), *mark.span(last)


def find_tags(text: str, markdown: bool = False) -> list[StringTag]:
    """Return the tags, the comments and the statements of templates and ICU messages of a text, in order.

    A statement is a tag with the name STATEMENT. Tags in the code of templates are left out. With `markdown`, the marks
    of emphasis and links (of Markdown, BBCode, wikis and LaTeX) are tags, too.
    """
    templates = [*find_templates(text), *_message_syntax(text)]
    if not (templates or markdown or _ANGLE.search(text)):
        return []
    code = bytearray(len(text) if templates else 0)
    for template in templates:
        code[template.begin : template.end] = b"\1" * (template.end - template.begin)
    matches = [match for match in _TAG.finditer(text) if not (code and code[match.start()])]
    partners = ElementIndex(list(map(_token, matches)), Dialect(xml=True)).partner
    tags = [StringTag(template.begin, template.end, STATEMENT) for template in templates if template.statement]
    for match, partner in zip(matches, partners, strict=True):
        begin, end = match.span()
        name = (match["name"] or "").lower()
        attached = begin > 0 and text[begin - 1].isalnum()  # as in vector<p>
        alone = not match["name"] or match["empty"] or name in VOID or (name in BLOCKS and not attached)
        if partner >= 0 or alone:
            tags.append(StringTag(begin, end, name, matches[partner].start() if partner >= 0 else -1))
    for match in _MARKS.finditer(text) if markdown else ():
        begin, inner, stop, end = _bounds(match)
        if not any(tag.begin < end and begin < tag.end for tag in tags):
            tags += StringTag(begin, inner, "strong", stop), StringTag(stop, end, "strong", begin)
    return sorted(tags, key=lambda tag: tag.begin)


def _message_syntax(text: str) -> Iterator[TemplateCode]:
    """Yield the syntax between the branches of ICU messages as statements."""
    end = 0
    for part, translated in split_message(text) if MESSAGE.search(text) else ():
        begin, end = end, end + len(part)
        if not translated:
            yield TemplateCode(begin, end, statement=True)


def _token(match: re.Match[str]) -> Token:
    kind = TokenKind.END if match["end"] else TokenKind.START
    return Token(
        kind if match["name"] and not match["empty"] else TokenKind.OTHER, match[0], (match["name"] or "").lower()
    )


def split_marked_text(text: str, language: str) -> Iterator[TextPart]:
    """Yield the sentences and kept parts of a text that may contain tags, as `split_text` does.

    Tags of blocks, statements of templates, and line breaks after a sentence, before a bullet or, in a table, before a
    capital, are kept parts. Other tags do not affect the ends of sentences. An end tag belongs to the part before it, a
    start tag to that after it.
    """
    tags = find_tags(text)
    if not tags:
        yield from split_text(text, language)
        return
    bare: list[str] = []
    ends: list[int] = []  # offsets in `text` of the ends of the characters of `bare`
    end = 0
    for tag in [*tags, StringTag(len(text), len(text), "")]:
        bare.append(text[end : tag.begin])
        ends += range(end + 1, tag.begin + 1)
        end = tag.end
        if sign := _sign(tag, text):
            bare.append(sign)
            ends.append(tag.end)
    following = {tag.begin: tag.end for tag in tags if tag.closes and tag.name not in BLOCKS}
    begin = count = 0
    for part in split_text("".join(bare), language):
        count += len(part.text)
        stop = ends[count - 1] if count < len(ends) else len(text)
        while stop in following:
            stop = following[stop]
        yield replace(part, text=text[begin:stop])
        begin = stop


def _sign(tag: StringTag, text: str) -> str:
    """Return the character that stands for a tag when sentences are divided, or "" if it does not matter to them."""
    if tag.name == STATEMENT:
        return "\n"
    if tag.begin == len(text) or tag.closes:
        return "\n" if tag.name in BLOCKS else ""
    if tag.name in BLOCKS:
        return "\n"
    if tag.name == "br":
        before, after = text[max(0, tag.begin - 20) : tag.begin], text[tag.end : tag.end + 20]
        divides = not before.strip() or before.endswith(">") or SENTENCE_END.search(before) or BULLET.match(after)
        is_in_table = text.startswith("|", text.rfind("\n", 0, tag.begin) + 1)
        return "\n" if divides or (is_in_table and after.lstrip()[:1].isupper()) else " "
    return _OBJECT if tag.partner in (-1, tag.end) else ""


def read_marked_sentence(sentence: str, kept: Sequence[Range], markdown: bool = False) -> InlineText[str] | None:
    """Return the inline items of a sentence with tags. Return None if it has no tag, or a tag in a `kept` range.

    `markdown` tells whether the marks of emphasis and links in Markdown are tags.
    """
    tags = find_tags(sentence, markdown)
    if not tags or any(begin < tag.end and end > tag.begin for begin, end in kept for tag in tags):
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
        done = tag.end
        if tag.partner < 0:
            item = InlineItem(InlineKind.EMPTY, (source,), breaks=tag.name == "br", stands=stands)
        elif not tag.closes and (tag.name in _UNTRANSLATED or _NO_TRANSLATION.search(source)):
            done = ends[tag.partner]
            text = "" if tag.name in ("script", "style") else _TAG.sub("", sentence[tag.begin : done])
            kind = InlineKind.KEPT if text.strip() else InlineKind.EMPTY
            item = InlineItem(kind, (sentence[tag.begin : done],), text)
        else:
            kind, key = (InlineKind.CLOSE, tag.partner) if tag.closes else (InlineKind.OPEN, tag.begin)
            item = InlineItem(
                kind, (source,), key=key, stands=stands, divides="" if tag.name in ("sub", "sup") else tag.name
            )
        yield tag.begin, done, item


def _divided_texts(text: str) -> Iterator[InlineItem[str]]:
    """Yield the items of a text. A reference to a no-break space is an empty item that separates words."""
    for number, part in enumerate(_NO_BREAK_SPACE.split(text)):
        if number % 2:
            yield InlineItem(InlineKind.EMPTY, (part,), breaks=True)
        else:
            yield from text_items(part)
