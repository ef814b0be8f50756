"""Files with the texts of a program: .properties, .strings, .resx, and the string resources of Android."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from mt.errors import DocumentError
from mt.text.documents.base import DocumentOptions, TextDocument, read_text
from mt.text.documents.markup import XmlReader, with_languages
from mt.text.encoding import TextEncoding
from mt.text.encoding_detection import utf8_share
from mt.text.markup.elements import Dialect, ElementIndex
from mt.text.markup.parsing import parse_dialect
from mt.text.markup.rendering import escape
from mt.text.markup.tokens import Token, TokenKind, decode, references
from mt.text.word_tables import read_tables, read_words

_PROPERTY, _PROPERTY_ESCAPE, _ARGUMENT, _STRINGS, _STRINGS_ESCAPE, _REFERENCE = (
    re.compile(pattern) for pattern in read_tables("documents/patterns.toml")["resources"].values()
)
_MEANINGS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}

# These patterns match every line and string, complete or not: a failed search would begin again at each letter.


def open_properties(name: str, content: bytes, options: DocumentOptions) -> TextDocument:
    """Parse Java properties. Each value is a segment; keys, comments and the layout are kept.

    A file that is not UTF-8 is read as Latin-1, unless most of it is UTF-8. Characters of a translation that Latin-1
    lacks are then written as escapes, such as `\\u00e4`. If a file contains such escapes and only ASCII characters, all
    other characters are written as escapes. In values with arguments such as `{0}`, two apostrophes stand for one, as
    in Java's MessageFormat.
    """
    text, document = read_text(name, content, options, None if utf8_share(content) > 0.5 else "latin-1")
    write = partial(_write_property, TextEncoding("ascii") if text.isascii() and "\\u" in text else document.encoding)
    for match in _PROPERTY.finditer(text):
        source = match["value"]
        document.frame.append((match["head"] or "").strip())
        if not source:
            continue
        document.keep_until(match.start("value"))
        document.done = match.end("value")
        value = _unescape(_PROPERTY_ESCAPE, source)
        document.add_string(value, source, write, doubled=_ARGUMENT.search(value) is not None)
    document.keep_until(len(text))
    return document


def _write_property(encoding: TextEncoding, text: str) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    text = "\\" + text if text.startswith(" ") else text
    return "".join(letter if encoding.has_all(letter) else json.dumps(letter).strip('"') for letter in text)


def _unescape(pattern: re.Pattern[str], source: str) -> str:
    def meaning(match: re.Match[str]) -> str:
        if match[1]:
            return chr(int(match[1], 16))
        return _MEANINGS.get(match[2], match[2]) if match[2] else ""

    text = pattern.sub(meaning, source)
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # joins pairs of surrogates


def open_strings(name: str, content: bytes, options: DocumentOptions) -> TextDocument:
    """Parse the string table of an Apple program. Each value is a segment; keys, comments and the layout are kept.

    Raises: DocumentError if the content is not empty, and contains no string.
    """
    text, document = read_text(name, content, options)
    before = ""
    for match in _STRINGS.finditer(text):
        if match[0].startswith("/"):
            continue
        if match[0].startswith('"') and before == "=":
            document.keep_until(match.start())
            value = _unescape(_STRINGS_ESCAPE, match[0][1:].removesuffix('"'))
            document.add_string(value, match[0], _write_string)
            document.done = match.end()
            document.frame.append("a value")
        else:
            document.frame.append(match[0])
        before = match[0]
    document.keep_until(len(text))
    if text.strip() and not before:
        raise DocumentError(f'{name} has no text; accepted: lines such as "key" = "text";')
    return document


def _write_string(text: str) -> str:
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{text}"'


def open_resx(name: str, content: bytes, options: DocumentOptions) -> TextDocument:
    """Parse the resources of a .NET program. Each text is a segment; comments, objects and the layout are kept."""

    def is_text(data: Token) -> bool:
        typed = data.attribute("type") is not None or data.attribute("mimetype") is not None
        return data.name == "data" and not typed and not (data.attribute("name") or "").startswith(">>")

    dialect = Dialect(xml=True, collapse=False, messages=True, words=True)
    return _open_elements(
        name, content, options, dialect, is_text, lambda elements, number: elements.tokens[number].name == "value"
    )


def open_android(name: str, content: bytes, options: DocumentOptions) -> TextDocument:
    """Parse Android's string resources. Each string and each item of an array or of plurals is a segment.

    Elements with `translatable="false"`, references such as `@string/title`, and quotes that protect spaces are kept.
    """

    def is_translatable(token: Token) -> bool:
        return token.attribute("translatable") != "false"

    def is_string(elements: ElementIndex, number: int) -> bool:
        token, parent = elements.tokens[number], elements.tokens[elements.parent[number]]
        named = token.name == "string" or (token.name == "item" and parent.name in ("string-array", "plurals"))
        return named and is_translatable(token)

    dialect = Dialect(xml=True, kept=frozenset({"xliff:g"}), backslashes=True, messages=True, words=True)
    return _open_elements(name, content, options, dialect, is_translatable, is_string)


def open_stringsdict(name: str, content: bytes, options: DocumentOptions) -> TextDocument:
    """Parse the plural forms of an Apple program. Each form and each text around plural forms is a segment."""

    def is_form(elements: ElementIndex, number: int) -> bool:
        key = next((n for n in range(number - 1, number - 4, -1) if elements.tokens[n].kind is TokenKind.END), -1)
        if key < 0 or elements.tokens[key].name != "key" or elements.tokens[number].name != "string":
            return False
        title = elements.inner(elements.partner[key])
        return title in read_words("documents/names.toml")["form_keys"] or title.isdigit()  # numbers are widths

    return _open_elements(name, content, options, Dialect(xml=True), lambda token: token.name == "dict", is_form)


def _open_elements(
    name: str,
    content: bytes,
    options: DocumentOptions,
    dialect: Dialect,
    selects_parent: Callable[[Token], bool],
    selects: Callable[[ElementIndex, int], bool],
) -> TextDocument:
    """Parse an XML file. The content of some elements is translated, and everything else is kept.

    An element is translated if `selects_parent` is true of the start tag of its parent, and `selects` of its elements
    and the index of its start tag. `selects_parent` is called only once for each parent, because a parent may have many
    attributes and many children.
    """
    reader = XmlReader(name, content, options)
    dialect = replace(dialect, languages=with_languages(options).languages, fragment=True)
    tokens, elements, document = reader.tokens, reader.elements, reader.document
    parents: dict[int, bool] = {}
    for number, token in enumerate(tokens):
        parent = elements.parent[number]
        if token.kind is not TokenKind.START or elements.partner[number] < 0 or parent < 0 or number < reader.done:
            continue
        if parent not in parents:
            parents[parent] = selects_parent(tokens[parent])
            document.frame.append(tokens[parent].source)
        if parents[parent] and selects(elements, number):
            inner = elements.inner(number)
            if dialect.backslashes and _REFERENCE.fullmatch(inner):
                continue
            document.frame.append(token.source)
            reader.keep_until(number + 1)
            reader.done = elements.end[number] - 1
            plain = all(token.kind is TokenKind.TEXT for token in tokens[number + 1 : reader.done])
            if plain and not dialect.backslashes:
                forms = {
                    meaning: source for source, meaning in references(inner, xml=True) if meaning not in (source, None)
                }
                document.add_string(decode(inner, xml=True), inner, partial(escape, forms=forms))
            else:
                document.embed(parse_dialect(inner, dialect))
    reader.keep_until(len(tokens))
    return document
