"""Parsing of HTML and XML into segments, and rendering of their translations.

Everything that is not translated is preserved byte for byte: markup, comments, scripts, styles, code, declarations,
white space between blocks, and segments whose translation equals their text. In a translated segment, the module
`placement` places the tags, the white space is that of the translation, and `&`, `<` and all characters that the source
escapes are escaped.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from xml.parsers import expat

from mt.text.markup.elements import BLOCKS, CODE, HTML, Dialect
from mt.text.markup.marks import Segment, TranslatedSegment, render_parts
from mt.text.markup.reading import TokenReader
from mt.text.markup.tokens import Token, html_tokens, xml_tokens

_NOTES = frozenset({"del", "endnote", "fn", "footnote", "indexterm", "note"})
"""Names of elements in XML for publishing (DocBook, DITA, JATS, TEI) that are apart from the text around them."""

_WRAPPED = "<x>{}</x>"  # makes a document of a fragment, which may have several elements or text outside of elements


@dataclass(frozen=True)
class MarkupOptions:
    """Options for markup, as in DeepL's API. Names of HTML elements are in lower case.

    Elements in `ignore_tags` are not translated. The tags of elements in `splitting_tags` end a text, those of elements
    in `non_splitting_tags` do not. For all other elements of XML, `outline_detection` decides: if it is true, their
    tags end a text unless they are surrounded by text; if it is false, they do not.

    `languages` is the source language, or "" for that of the element around all text, and the target language. They
    change attributes that name the source language, and keep elements in another one (mt.text.markup.attributes). In a
    `fragment` of a larger text, the element around all text says nothing about the source language.
    """

    ignore_tags: frozenset[str] = frozenset()
    non_splitting_tags: frozenset[str] = frozenset()
    splitting_tags: frozenset[str] = frozenset()
    outline_detection: bool = True
    languages: tuple[str, str] | None = None
    fragment: bool = False


def parse_html(text: str, options: MarkupOptions | None = None, segments: list[Segment] | None = None) -> "Markup":
    """Parse an HTML document or fragment.

    If a start or end tag is missing in a text, all tags of the text keep their order. The segments are appended to the
    list `segments`. Raises: DocumentLimitExceeded if there are more than MAX_TOKENS tokens.
    """
    options = options or MarkupOptions()
    dialect = replace(
        HTML,
        splitting=(BLOCKS | options.splitting_tags) - options.non_splitting_tags,
        kept=HTML.kept | options.ignore_tags,
        languages=options.languages,
        fragment=options.fragment,
    )
    return parse_dialect(text, dialect, segments)


def parse_xml(text: str, options: MarkupOptions | None = None, segments: list[Segment] | None = None) -> "Markup":
    """Parse XML, whether it is well-formed or not.

    By default, a tag ends a text unless the parent of its element also contains text directly. A CDATA section is read
    as HTML if it contains a tag or a reference of HTML, and belongs to the text beside it unless it contains a block.
    The segments are appended to the list `segments`.

    Raises: DocumentLimitExceeded if there are more than MAX_TOKENS tokens.
    """
    options = options or MarkupOptions()
    dialect = Dialect(
        xml=True,
        splitting=options.splitting_tags,
        non_splitting=options.non_splitting_tags,
        outline=options.outline_detection,
        kept=options.ignore_tags,
        code=CODE,
        notes=_NOTES - options.ignore_tags,
        breaks=frozenset({"br"}),
        words=True,
        languages=options.languages,
        fragment=options.fragment,
    )
    return parse_dialect(text, dialect, segments)


def parse_dialect(text: str, dialect: Dialect, segments: list[Segment] | None = None) -> "Markup":
    """Parse markup by the rules of `dialect`. The segments are appended to the list `segments`."""
    tokens = list(xml_tokens(text) if dialect.xml else html_tokens(text))
    return Markup(tokens, dialect, [] if segments is None else segments)


class Markup:
    """A parsed HTML or XML text. `segments` are the texts to translate, in order.

    `tags` contains (kind and name, number) of its tags that a translation keeps. `has_text` is whether it has text,
    translated or not.
    """

    def __init__(self, tokens: Sequence[Token], dialect: Dialect, segments: list[Segment]) -> None:
        self.segments = segments
        tags = Counter((token.kind.value, token.name) for token in tokens if token.name)
        self.tags = sorted(tags.items())
        reader = TokenReader(tokens, dialect, segments)
        self._parts = reader.read()
        self.has_text = bool(self.segments) or reader.has_text()

    def render(self, translations: Sequence[TranslatedSegment]) -> str:
        assert len(translations) == len(self.segments)
        return render_parts(self._parts, translations)


def xml_problem(text: str) -> str:
    """Return a message with the first error of an XML document or fragment, or "" if it is well-formed.

    The message includes line and column. Entities are not checked, because the texts of clients contain entities of
    HTML and single ampersands.
    """
    document = text.lstrip().startswith(("<?xml", "<!DOCTYPE"))
    parser = expat.ParserCreate()
    try:
        parser.Parse((text.lstrip() if document else _WRAPPED.format(text)).replace("&", "x"), True)
    except expat.ExpatError as error:
        column = error.offset - (0 if document or error.lineno > 1 else _WRAPPED.index("{"))
        return f"{expat.ErrorString(error.code)} in line {error.lineno}, column {column + 1}"
    return ""
