"""HTML and XML files, and the part that the readers of other formats in XML have in common."""

import re
from dataclasses import replace
from functools import partial
from io import BytesIO

from mt.languages import full_tag
from mt.text.documents.base import DocumentOptions, SegmentList, TextDocument, read_text, with_locale
from mt.text.documents.packages import root_name
from mt.text.encoding import TextEncoding, decode_text
from mt.text.markup import Markup, MarkupOptions, parse_html, parse_xml
from mt.text.markup.elements import Dialect, ElementIndex
from mt.text.markup.tokens import Token, TokenKind, xml_tokens
from mt.text.word_tables import read_words

_DECLARED = re.compile(
    rb"""<\?xml[^>]*?\sencoding=["']([\w.:-]+)|<meta[^>]*?\scharset=["']?\s*([\w.:-]+)""", re.IGNORECASE
)
_META = re.compile(rb"""<meta[^>]*?\scontent=["'][^"'>]*?charset=([\w.:-]+)""", re.IGNORECASE)
_FEED_LANGUAGE = re.compile(r"<(?:dc:)?language>\s{0,100}([\w-]+)\s{0,100}</")
_FEEDS = frozenset({"RDF", "feed", "rss"})  # root elements
_DECLARED_WITHIN = 1024  # number of bytes that are searched for a declaration, as in the HTML standard


def declared_encoding(content: bytes) -> str | None:
    """Return the encoding that an HTML or XML file declares, or None if it declares none."""
    head = content[:_DECLARED_WITHIN]
    match = _DECLARED.search(head) or _META.search(head)
    return next(name for name in match.groups() if name).decode("ascii") if match else None


def with_languages(options: DocumentOptions) -> MarkupOptions:
    """Return the options for the markup of a document, with its languages."""
    if not options.target_language:
        return options.markup
    return replace(options.markup, languages=(options.source_language, full_tag(options.target_language)))


def open_markup(name: str, content: bytes, options: DocumentOptions) -> TextDocument:
    """Parse a file as XML if its suffix is .xml, otherwise as HTML.

    The values of feeds (RSS, Atom) that programs read, such as identifiers and dates, are not translated. If a
    translation contains characters that the encoding of the file lacks, they are written as numeric references.
    """
    declared = declared_encoding(content)
    text, encoding = decode_text(name, content, declared, options.encoding, options.source_language)
    markup_options = with_languages(options)
    is_feed = root_name(BytesIO(content)).rpartition("}")[2] in _FEEDS
    if is_feed:
        ignored = markup_options.ignore_tags | read_words("documents/names.toml")["feed_values"]
        markup_options = replace(markup_options, ignore_tags=ignored)
    parse = parse_xml if name.lower().endswith(".xml") else parse_html
    document = markup_document(parse(text, markup_options, SegmentList(name, options)), name, encoding, options)
    if is_feed:
        document.finish = partial(with_locale, _FEED_LANGUAGE, options, sign="-")
    return document


def markup_document(markup: Markup, name: str, encoding: TextEncoding, options: DocumentOptions) -> TextDocument:
    """Return the document of the file `name` that consists of markup."""
    document = TextDocument(name, options, encoding, "xmlcharrefreplace")
    document.embed(markup)
    document.frame, document.has_text = [*markup.tags], markup.has_text
    return document


class XmlReader:
    """Base of readers that copy the tokens of an XML file to a document, except the content that they translate."""

    def __init__(self, name: str, content: bytes, options: DocumentOptions) -> None:
        text, self.document = read_text(name, content, options, declared_encoding(content), "xmlcharrefreplace")
        self.tokens = list(xml_tokens(text))
        self.elements = ElementIndex(self.tokens, Dialect(xml=True))
        self.done = 0  # number of tokens that have been added

    def keep_until(self, end: int) -> None:
        """Copy the tokens before `end` that have not been added."""
        self.document.keep("".join(token.source for token in self.tokens[self.done : end]))
        self.done = end

    def keep_start(self, tag: Token) -> None:
        """Add a start tag, or that of an empty element that will have content."""
        self.document.keep(tag.source.removesuffix(">").removesuffix("/").rstrip() + ">")

    def space_before(self, number: int) -> str:
        """Return the white space before token `number`, or "" if there is none."""
        before = self.tokens[number - 1]
        return before.source if before.kind is TokenKind.TEXT and before.source.isspace() else ""
