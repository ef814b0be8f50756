"""Stored files of real programs and of people: their texts, and what a translation changes in them.

The name of a binary file begins with the program that wrote it. `texts.toml` has the texts of each file in the order
of reading.
"""

import csv
import html
import io
import json
import re
import tomllib
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import docx
import openpyxl
import polib
import pptx
import pysubs2
import pytest
import yaml
from fluent.syntax import FluentParser, ast
from odf import opendocument

from mt.text.documents import Document, DocumentOptions, open_document
from mt.text.markup import Segment, TranslatedSegment

FOLDER = Path(__file__).parent
TEXTS: dict[str, list[str]] = tomllib.loads((FOLDER / "texts.toml").read_text(encoding="utf-8"))
MARK = "þ"
"""A letter of Latin-1 that no file contains."""

MARKS = re.compile(r"þ|\\u00fe|&#254;", re.IGNORECASE)
NO_WORDS = re.compile(r"\{[^{}]*\}|%[\w$@()]+|&\w+;|[\U000f0000-\U000fffff]")
SPECIAL = ' & "é" < 5'
"""Characters that the formats escape."""

BILINGUAL = (".po", ".tmx", ".xliff")
RUNS = ("r", "rPr", "s", "span", "t")
"""Elements in paragraphs whose number may change: runs, and what is divided or joined with them."""

WRITTEN_ANEW = {
    "breaks.md": "a quotation is written in one line",
    "comments.strings": "a line break in a string becomes an escape",
    "escapes.properties": "escapes that are not necessary are left out",
    "continued.properties": "a value is written in one line",
    "libreoffice-notes.docx": "a field without text moves over a comma",
    "messages.yaml": "a value is written in one line",
    "openapi.yaml": "a value gets quotes",
    "references.md": "a link names its reference",
    "unicode.json": "escapes that are not necessary are left out",
}
"""Files whose texts are written in another way after a translation."""


def document_of(name: str, content: bytes) -> Document:
    """Open a file. Only for .tmx, the target language must be given; the languages in files have their own tests."""
    return open_document(name, content, DocumentOptions(target_language="de" if name.endswith(".tmx") else ""))


def opened(name: str) -> Document:
    return document_of(name, (FOLDER / "files" / name).read_bytes())


def marked(segment: Segment) -> TranslatedSegment:
    """Return the segment with a letter more in each word that is not kept, each letter aligned with itself."""
    kept = [*segment.kept, *(match.span() for match in NO_WORDS.finditer(segment.text))]
    text, links, in_word = "", [], False
    for place, letter in enumerate(segment.text):
        links.append(((place, place + 1), (len(text), len(text) + 1)))
        text += letter
        if letter.isalpha() and not in_word and not any(begin <= place < end for begin, end in kept):
            text, in_word = text + MARK, True
        in_word = in_word and not letter.isspace()
    return TranslatedSegment(text, tuple(links))


def members(content: bytes) -> list[tuple[str, str]]:
    """Return the members of an archive, or the whole file, as texts. A name of a member has its compression."""
    if not content.startswith(b"PK"):
        return [("", decoded(content))]
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return [(f"{info.filename} {info.compress_type}", decoded(archive.read(info))) for info in archive.infolist()]


def line_ends(content: bytes) -> set[str]:
    return set() if content.startswith(b"PK") else {*re.findall("\r\n|\r|\n", decoded(content))}


def without_marks(content: bytes) -> list[object]:
    """Return the members without marks. A translation is written in one line, and an archive is XML with other runs."""
    texts = [(name, MARKS.sub("", text)) for name, text in members(content)]
    packed = content.startswith(b"PK")
    return [structure(part) if packed and part[:1] == "<" else (name, " ".join(part.split())) for name, part in texts]


def structure(source: str) -> tuple[list[tuple[str, dict[str, str]]], str]:
    """Return the elements of XML but runs, with their attributes, and the text without white space."""
    root = ElementTree.fromstring(source.encode())
    elements = [(element.tag, element.attrib) for element in root.iter() if element.tag.rpartition("}")[2] not in RUNS]
    return elements, "".join("".join(root.itertext()).split())


def decoded(content: bytes) -> str:
    """Decode by the byte order mark, which is left out, or as UTF-8 or Latin-1."""
    codec = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return content.decode(codec)
    except UnicodeDecodeError:
        return content.decode("latin-1")


def values(value: Any) -> Iterator[str]:
    if isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from values(inner)
    yield str(value) if isinstance(value, str) else ""


def read_xml(content: bytes) -> str:
    content = re.sub(rb"&(?!amp;|lt;|gt;|quot;|apos;|#)[\w.]+;", b"", content)  # entities of a document type
    root = ElementTree.fromstring(content)
    attributes = (value for element in root.iter() for value in element.attrib.values())
    return "".join([*root.itertext(), *attributes]).replace('\\"', '"').replace("&&", "&")  # of headers of worksheets


def read_archive(content: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = [name for name in archive.namelist() if name.endswith(("ml", ".ncx", ".opf"))]
        return "".join(read_xml(archive.read(name)) for name in names)


def read_fluent(content: bytes) -> str:
    entries = FluentParser().parse(decoded(content)).body
    assert any(isinstance(entry, ast.Message) for entry in entries)
    return decoded(content)


ANY_TAG: Any = type("AnyTag", (yaml.SafeLoader,), {})  # reads values with unknown tags
ANY_TAG.add_multi_constructor("!", lambda loader, tag, node: loader.construct_scalar(node))
OPENERS: dict[str, Callable[[io.BytesIO], object]] = {
    "docx": docx.Document,
    "odp": opendocument.load,
    "ods": opendocument.load,
    "odt": opendocument.load,
    "pptx": pptx.Presentation,
    "xlsx": openpyxl.load_workbook,
}
READERS: dict[str, Callable[[bytes], str]] = {
    **dict.fromkeys(("arb", "json"), lambda content: "".join(values(json.loads(decoded(content))))),
    **dict.fromkeys(("csv", "tsv"), lambda content: read_table(decoded(content))),
    **dict.fromkeys((*OPENERS, "epub"), read_archive),
    **dict.fromkeys(("resx", "stringsdict", "tmx", "xhtml", "xliff", "xml"), read_xml),
    **dict.fromkeys(("srt", "vtt"), lambda content: "".join(cue.text for cue in subtitles(decoded(content)))),
    **dict.fromkeys(("html", "txt"), decoded),
    **dict.fromkeys(("md", "properties", "strings"), lambda content: re.sub(r"\\(?!u)", "", decoded(content))),
    "ftl": read_fluent,
    "po": lambda content: "".join("".join(values([e.msgstr, e.msgstr_plural])) for e in polib.pofile(decoded(content))),
    "yaml": lambda content: "".join(values(list(yaml.load_all(decoded(content), ANY_TAG)))),
}
"""For each format, a function that reads the texts of a file with another library than the product."""


def read_table(text: str) -> str:
    separator = max(",;\t", key=text.partition("\n")[0].count)
    return "".join(cell for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) for cell in row)


def subtitles(text: str) -> pysubs2.SSAFile:
    return pysubs2.SSAFile.from_string(text, "vtt" if "WEBVTT" in text[:10] else "srt")


def test_the_table_has_a_row_for_each_file() -> None:
    assert sorted(TEXTS) == sorted(path.name for path in (FOLDER / "files").iterdir())


@pytest.mark.parametrize("name", TEXTS)
def test_texts_in_the_order_of_reading(name: str) -> None:
    assert [segment.text for segment in opened(name).segments] == TEXTS[name]


@pytest.mark.parametrize("name", TEXTS)
def test_nothing_but_the_texts_changes(name: str) -> None:
    document, content = opened(name), (FOLDER / "files" / name).read_bytes()
    same = document.render([TranslatedSegment(segment.text) for segment in document.segments])
    if not name.endswith(BILINGUAL):
        assert members(same) == members(content)
    changed = document.render(list(map(marked, document.segments)))
    assert changed != same
    assert line_ends(changed) == line_ends(content)
    if name.endswith(BILINGUAL):
        assert document_of(name, changed).segments == []
    if name not in WRITTEN_ANEW:
        assert without_marks(changed) == without_marks(same)


@pytest.mark.parametrize("name", TEXTS)
def test_another_program_reads_the_translation(name: str) -> None:
    document, kind = opened(name), name.rpartition(".")[2]
    links = [tuple(((n, n + 1), (n, n + 1)) for n in range(len(segment.text))) for segment in document.segments]
    translations = [segment.text + SPECIAL for segment in document.segments]
    written = document.render(list(map(TranslatedSegment, translations, links)))
    if kind in OPENERS:
        OPENERS[kind](io.BytesIO(written))
    text = re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), READERS[kind](written))
    assert html.unescape(text).count(SPECIAL.strip()) >= len(document.segments)
