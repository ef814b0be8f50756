"""Readers of translation memories (.tmx, .xliff, .xlf and .po files), and a writer of .tmx files.

The files may be compressed as .gz or .xz. A translation unit is a text with its translations. Each text becomes one
line: inline codes, which represent formatting, are removed, and white space is replaced by single spaces. Units without
a translation, and units that are marked as unfinished, are skipped.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import IO
from xml.etree import ElementTree
from xml.sax.saxutils import escape, quoteattr

from mt.data.corpus import SentencePair, open_corpus, read_tsv_stream
from mt.data_config import MEMORY_FORMATS, memory_format
from mt.errors import DataError, DocumentError, LanguageError
from mt.languages import language_and_script, standard_tag
from mt.text.encoding import decode_text
from mt.text.po import PoError, declared_charset, read_po
from mt.text.table import unquoted
from mt.text.xliff import UNTRANSLATED

Unit = Mapping[str, str]
"""The texts of a translation unit, by language code as it is written in the file."""

CODES = {"bpt", "ept", "ph", "it", "sub", "ut", "x"}
"""Names of XML elements in TMX 1.4 and XLIFF 1.2 that contain markup of the original document instead of text."""

UNFINISHED = UNTRANSLATED | {"needs-review-translation"}
"""Values of the XLIFF attribute `state` for translations that are not used as training text."""

LANGUAGES = {"source-language", "target-language", "srcLang", "trgLang"}
"""XLIFF attributes that give the languages of all units in an element."""

XML_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
XML_ERRORS = (ElementTree.ParseError, LookupError, ValueError)  # the latter two for encodings
LISTED = 10  # maximum number of languages in an error message


def read_memory(path: Path, source: str, target: str) -> Iterator[SentencePair]:
    """Yield the pairs of a file: one for each unit with text in both languages.

    The `line` of a pair is the number of its unit, from 1. Languages also match if their regions differ: for `en`, a
    text in `EN-US` is used. Raises: DataError if the file is missing or damaged, or if no unit has both languages.
    """
    try:
        with open_corpus(path) as stream:
            yield from read_memory_stream(stream, str(path), source, target)
    except FileNotFoundError:
        raise DataError(f"{path}: the file does not exist") from None
    except (OSError, EOFError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None


def read_memory_stream(stream: IO[bytes], name: str, source: str, target: str) -> Iterator[SentencePair]:
    """Yield the pairs of a stream, as `read_memory` does. The suffix of the file name `name` determines the format.

    Raises: DataError if the format is unknown, the content is damaged, or no unit has both languages.
    """
    reader = _READERS.get(memory_format(name) or "")
    if reader is None:
        raise DataError(f"{name}: unknown format; accepted: {', '.join(MEMORY_FORMATS)}")
    languages: set[str] = set()
    empty = True
    try:
        for number, unit in enumerate(reader(stream, name), start=1):
            languages.update(unit)
            source_text, target_text = _text_in(source, unit), _text_in(target, unit)
            if source_text and target_text:
                empty = False
                yield SentencePair(source_text, target_text, number, name)
    except XML_ERRORS as error:
        raise DataError(f"{name}: not well-formed XML: {error}") from None
    if empty:
        listed = ", ".join(sorted(languages)[:LISTED]) or "none"
        raise DataError(f"{name}: no unit has both {source} and {target}; languages of its units: {listed}")


def read_tab_separated(name: str, content: bytes, source: str, target: str) -> Iterator[SentencePair]:
    """Yield the pairs of a .tsv file in any encoding: a source, a tab and its translation on each line.

    A first line with the codes of both languages is a heading: it says which column is the source, and is no pair.
    Fields may be quoted as spreadsheet programs do (`unquoted`). Raises: DataError if the content cannot be read, or a
    line has no tab.
    """
    try:
        text, _ = decode_text(name, content)
    except DocumentError as error:
        raise DataError(str(error)) from error
    heading = [_tag(field.strip()) for field in text.partition("\n")[0].split("\t")[:2]]
    languages = [language_and_script(tag) for tag in heading if tag]
    wanted = [language_and_script(source), language_and_script(target)]
    columns = (1, 0) if languages == wanted[::-1] else (0, 1)
    pairs = read_tsv_stream(BytesIO(text.encode()), name, *columns)
    for pair in islice(pairs, int(languages in (wanted, wanted[::-1])), None):
        yield replace(pair, source=unquoted(pair.source.strip()), target=unquoted(pair.target.strip()))


def tmx_languages(stream: IO[bytes], name: str) -> tuple[str, list[str]]:
    """Return the source language of a TMX file, and its target languages, the most frequent first.

    The source language is that of the header, or else of the first text. Of tags that differ only in their region, such
    as `de` and `de-AT`, the most frequent is listed.

    Raises: DataError if the content is damaged, or has texts in fewer than two languages.
    """
    source, counts = "", Counter[str]()
    try:
        for element, _ in _elements(stream, "header", "tu"):
            if _name(element) == "header":
                source = _tag(element.get("srclang", ""))  # "" for `*all*`
            counts.update(tag for variant in element.iter("tuv") if (tag := _tag(_language(variant))))
    except XML_ERRORS as error:
        raise DataError(f"{name}: not well-formed XML: {error}") from None
    source = source or next(iter(counts), "")
    targets: dict[tuple[str, str], str] = {}
    for tag, _ in counts.most_common():
        if language_and_script(tag) != language_and_script(source):
            targets.setdefault(language_and_script(tag), tag)
    if not targets:
        raise DataError(f"{name}: the texts are in the languages {', '.join(counts) or 'none'}; accepted: at least two")
    return source, list(targets.values())


def _text_in(language: str, unit: Unit) -> str:
    """Return the text of a unit in `language`, or "" if there is none.

    If the tag `language` itself is missing, use a tag of the same language and script, such as `en-US` for `en`.
    """
    tags = {tag: text for code, text in unit.items() if (tag := _tag(code))}
    if language in tags:
        return tags[language]
    key = language_and_script(language)
    return next((text for tag, text in tags.items() if language_and_script(tag) == key), "")


def _tag(code: str) -> str:
    """Return the standard form of a language tag, or "" if `code` is not a valid tag."""
    try:
        return standard_tag(code)
    except LanguageError:
        return ""


def _tmx_units(stream: IO[bytes], name: str) -> Iterator[Unit]:
    for element, _ in _elements(stream, "tu"):
        yield {
            _language(variant): _text(segment)
            for variant in element.iter("tuv")
            if (segment := variant.find("seg")) is not None
        }


def _language(variant: ElementTree.Element) -> str:
    """Return the language code of an element `tuv`, as it is written in the file."""
    return variant.get(XML_LANGUAGE) or variant.get("lang") or ""


def _xliff_units(stream: IO[bytes], name: str) -> Iterator[Unit]:
    """Yield the units of XLIFF 1.2 (`trans-unit`) and 2.0 (`segment`)."""
    for element, outer in _elements(stream, "trans-unit", "segment"):
        parts = {_name(child): child for child in element}
        source, target = parts.get("source"), parts.get("target")
        if source is None or target is None or {element.get("state"), target.get("state")} & UNFINISHED:
            continue
        languages = (
            outer.get("source-language") or outer.get("srcLang"),
            outer.get("target-language") or outer.get("trgLang"),
        )
        yield {code or "": _text(part) for code, part in zip(languages, (source, target), strict=True)}


def _po_units(stream: IO[bytes], name: str) -> Iterator[Unit]:
    """Yield the units of a .po file. The source language is X-Source-Language of the header or, without it, English.

    Raises: DataError if the header has no target language, or the file is not a .po file in its declared encoding.
    """
    content = stream.read()
    try:
        entries = list(read_po(decode_text(name, content, declared_charset(content))[0]))
    except DocumentError as error:
        raise DataError(str(error)) from None
    except PoError as error:
        raise DataError(f"{name}: not a .po file: {error}") from None
    header = "\n".join(entry.translations.get(0, "") for entry in entries if entry.is_header)
    languages = dict(re.findall(r"^(Language|X-Source-Language):[ \t]*(\S+)", header, re.MULTILINE))
    if "Language" not in languages:
        raise DataError(f"{name}: the header lacks Language; accepted: a header with Language and a language code")
    for entry in entries:
        text = entry.translations.get(0, "")
        if text and not entry.is_fuzzy and not entry.is_header:
            source = languages.get("X-Source-Language", "en")
            yield {source: " ".join(entry.source.split()), languages["Language"]: " ".join(text.split())}


_READERS = {".tmx": _tmx_units, ".xliff": _xliff_units, ".xlf": _xliff_units, ".po": _po_units}


def write_tmx(units: Iterable[tuple[str, str]], source: str, target: str) -> Iterator[str]:
    """Yield the text of a TMX 1.4 file, in parts. Each of `units` is a pair of texts, in `source` and in `target`.

    The texts must not contain control characters.
    """
    languages = [quoteattr(language) for language in (source, target)]
    yield (
        '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><header creationtool="mt-service" '
        f'creationtoolversion="1" segtype="sentence" o-tmf="mt-service" adminlang="en" srclang={languages[0]} '
        'datatype="plaintext"/><body>\n'
    )
    for pair in units:
        sides = zip(languages, pair, strict=True)
        variants = (f"<tuv xml:lang={language}><seg>{escape(text)}</seg></tuv>" for language, text in sides)
        yield f"<tu>{''.join(variants)}</tu>\n"
    yield "</body></tmx>\n"


def _elements(stream: IO[bytes], *names: str) -> Iterator[tuple[ElementTree.Element, Mapping[str, str]]]:
    """Yield each XML element whose name is in `names`, with those attributes of outer elements that give languages.

    The names of these attributes are in LANGUAGES. When the next element is requested, the previous one is emptied, so
    that memory does not grow with the file.
    """
    enclosing: list[tuple[ElementTree.Element | None, Mapping[str, str]]] = [(None, {})]
    for event, element in ElementTree.iterparse(stream, events=("start", "end")):
        outer = enclosing[-1][1]
        if event == "start":
            languages = {key: value for key, value in element.items() if key in LANGUAGES}
            enclosing.append((element, {**outer, **languages} if languages else outer))
            continue
        enclosing.pop()
        parent, outer = enclosing[-1]
        if _name(element) in names:
            yield element, outer
            element.clear()
            if parent is not None:
                del parent[-1]  # the element itself; `remove` would search for it


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _text(element: ElementTree.Element) -> str:
    return " ".join("".join(_pieces(element)).split())


def _pieces(element: ElementTree.Element) -> Iterator[str]:
    """Yield the text of an element, in pieces and in order, without the content of inline codes."""
    yield element.text or ""
    for child in element:
        if _name(child) not in CODES:
            yield from _pieces(child)
        yield child.tail or ""
