"""Time that functions of mt.text take for hostile input: at twice the size at most three times as long."""

import io
import re
from collections.abc import Callable
from functools import partial

import pytest

from mt.errors import DocumentError
from mt.text import casing, protect, repetition, restoration, segment
from mt.text.alignment import Link, PieceAttention
from mt.text.documents import DocumentOptions, open_document
from mt.text.documents.packages import root_name
from mt.text.markup import TranslatedSegment, parse_html, parse_xml
from mt.text.markup.strings import find_tags
from mt.text.markup.tokens import MAX_TOKENS
from mt.text.normalise import normalise_text
from mt.text.numbers import join_numbers, mend_numbers
from mt.text.symbols import lost_symbols, unknown_words
from mt.text.terms import Terms
from scripts.attack.payloads import SIZED_DOCUMENTS
from tests.linear_time import Prepare, assert_linear

COUNTED = Terms(tuple((f"a {number}", "b") for number in range(1000)), ("a a b",))
NESTED = Terms(tuple((" ".join(["ab"] * number) + f" c{number}", "b") for number in range(2, 150)))
CASED = Terms(tuple((f"{number:015b}".replace("0", "a").replace("1", "A"), str(number)) for number in range(2000)))


def find_terms(terms: Terms, unit: str, size: int, any_case: bool = False) -> Callable[[], object]:
    terms.find(unit, "en", any_case=any_case)
    return partial(terms.find, unit * size, "en", any_case=any_case)


def find_beside_taken(size: int) -> Callable[[], object]:
    return partial(COUNTED.find, "a " * size, "en", [(place, place + 1) for place in range(0, 2 * size, 4)])


def translate_file(name: str, content: bytes) -> object:
    """Open a file and write it with other texts."""
    try:
        document = open_document(name, content, DocumentOptions(target_language="de"))
        return document.render([TranslatedSegment(segment.text + "!") for segment in document.segments])
    except DocumentError:
        return None


def restore_numbers(size: int) -> Callable[[], object]:
    source = " ".join(f"{number}x" for number in range(size))
    spans = protect.find_spans(source)
    return partial(restoration.add_missing_spans, "", spans)


def restore_emoji(size: int) -> Callable[[], object]:
    source, translation = "man😀 " * size, "Mann"
    spans = protect.find_spans(source)
    stripped = protect.remove_spans(source, spans)
    attention = PieceAttention(range(0, 4 * size, 4), [0], [[1.0] * size])
    return partial(restoration.restore_spans, stripped, spans, translation, attention)


def find_kept(size: int) -> Callable[[], object]:
    words = [f"w{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{chr(97 + n // 676)}q" for n in range(size)]
    source = " ".join(words)
    places = [(place, place + 5) for place in range(0, len(source), 6)]
    return partial(restoration.add_missing_spans, " ".join(words[::-1]), protect.find_spans(source, places))


def restore_between_words(unit: str, size: int) -> Callable[[], object]:
    """Return the restoration of missing numbers in a translation of 50 words."""
    source, target = unit * size, "haus 12 " * 25
    spans = protect.find_spans(source)
    stripped = protect.remove_spans(source, spans)
    begins = [[word.start() for word in re.finditer(r"\S+", text)] for text in (stripped.text, target)]
    attention = PieceAttention(begins[0], begins[1], [[1 / len(begins[0])] * len(begins[0])] * len(begins[1]))
    return partial(restoration.restore_spans, stripped, spans, target, attention)


def remove(unit: str, size: int) -> Callable[[], object]:
    return partial(protect.remove_spans, unit * size, protect.find_spans(unit * size))


def reverse(size: int) -> tuple[Link, ...]:
    return tuple(((place, place + 1), (size - 1 - place, size - place)) for place in range(size))


def place(source: str, size: int) -> Callable[[], object]:
    markup = parse_html(source * size)
    words = [TranslatedSegment(part.text[::-1], reverse(len(part.text))) for part in markup.segments]
    return partial(markup.render, words)


def place_copy(source: str) -> Callable[[], object]:
    """The translation is the source."""
    markup = parse_html(source)
    return partial(markup.render, [TranslatedSegment(part.text + "!") for part in markup.segments])


def place_in_word(source: str) -> Callable[[], object]:
    """One link joins all characters of the source with all characters of another text."""
    markup = parse_html(source)
    words = [TranslatedSegment("国" * len(part.text), (((0, len(part.text)),) * 2,)) for part in markup.segments]
    return partial(markup.render, words)


def parse(html: str, size: int, end: str = "") -> Callable[[], object]:
    return partial(parse_html, html * size + end)


def after(begin: str, html: str, size: int) -> Callable[[], object]:
    return partial(parse_html, begin + html * size)


def nested(begin: str, end: str, size: int) -> Callable[[], object]:
    return partial(parse_html, begin * size + "x" + end * size)


def split(unit: str, size: int, end: str = "") -> Callable[[], object]:
    return lambda: list(segment.split_text(unit * size + end, "en"))


def halve(unit: str, size: int) -> Callable[[], object]:
    return lambda: list(segment.split_long_sentence("x" + unit * size + "x", lambda part: len(part) < 100, "en"))


def find_repeated(unit: str, size: int) -> Callable[[], object]:
    return partial(protect.find_spans, unit * (size // len(unit)))


def find_tags_of(unit: str, n: int) -> Callable[[], object]:
    return partial(find_tags, unit * n)


def find_symbols(unit: str, size: int) -> Callable[[], object]:
    return partial(lost_symbols, unit * size, "")


UNITS = [
    *("a", "a.", "a/", "a-", "@", "`", "{", "%", "<a", "1", "1.", "A1-", "👩\u200d", "/a", "&a", "{}", "a("),
    *("<%", "a_", "$", "(0", "**", "a:", "a;", "'_", '""', "a(1", "A<", "a.b", "1km", "1.2", "# ", "+1 ", "EUR "),
]
GROWTH: dict[str, tuple[Prepare, int]] = {
    "terms: a first token in common": (partial(find_terms, COUNTED, "a "), 2000),
    "terms: prefixes in common": (partial(find_terms, NESTED, "ab "), 400),
    "terms: case variants": (lambda size: find_terms(CASED, "aaaaaaaaaaaaaaA. ", size, any_case=True), 1000),
    "terms: apostrophes": (partial(find_terms, COUNTED, "a'b"), 2000),
    "terms: taken ranges": (find_beside_taken, 2000),
    "protect: closing brackets of an address": (lambda n: partial(protect.find_spans, "http://a" + "]" * n), 20_000),
    "protect: an ordinal of many groups": (lambda n: partial(protect.find_spans, "1." * n + "1st"), 2000),
    "protect: an ordinal of other digits": (lambda n: partial(protect.find_spans, "1 " + "١" * n + "st"), 10_000),
    "protect: versions": (lambda n: partial(protect.find_spans, "1.22" * n), 2000),
    "protect: names with dots": (lambda n: partial(protect.find_spans, "aa.Aa" * n), 5000),
    "segment: operators": (lambda n: split("a !=", n), 2000),
    **{f"protect: {unit}": (partial(find_repeated, unit), 20_000) for unit in UNITS},
    "protect: dots": (lambda n: partial(protect.find_spans, "a." * n + "com"), 5000),
    "protect: code": (lambda n: partial(protect.find_spans, "``a " * n), 5000),
    "protect: tags": (lambda n: partial(protect.find_spans, "<a " * n), 5000),
    "protect: placeholders": (lambda n: partial(protect.find_spans, "{{a %(a " * n), 3000),
    "protect: braces": (lambda n: partial(protect.find_spans, "{a" * n + "}" * n), 5000),
    "symbols: unknown words": (lambda n: partial(unknown_words, "да " * n, frozenset("a")), 5000),
    "protect: emoji to restore": (restore_emoji, 1000),
    "protect: missing spans": (restore_numbers, 500),
    "protect: kept spans": (find_kept, 500),
    "protect: restored numbers": (partial(restore_between_words, "word 12x 1,000 "), 100),
    "protect: removed spans": (partial(remove, "😀  x "), 1000),
    "protect: long spans": (lambda n: partial(protect.split_at_long_spans, ("http://a" + "b" * 70 + " ") * n), 500),
    "protect: words of many hyphens": (lambda n: partial(protect.find_spans, "x" + "-aa" * n + "1"), 2000),
    "protect: list markers": (lambda n: partial(protect.list_marker_length, "- - - -" * n, "en"), 5000),
    "casing: words and spans": (lambda n: partial(casing.lower_capitals, "WORD A1 " * n, "en"), 1000),
    "casing: title case": (lambda n: partial(casing.lower_title_case, "Word A1 " * n, "en"), 1000),
    "repetition": (lambda n: partial(repetition.is_repetitive, ["a"] * n, ["a", "b", "c"] * n), 1000),
    "segment: line breaks": (partial(split, "\n"), 20_000),
    "segment: joined lines": (partial(split, "in this very small old house of the\n"), 1000),
    "segment: lines after a long line": (
        lambda n: split("A" * 50 * n + "\nand a dog is running in the big old house" * n, 1),
        1000,
    ),
    "segment: one long line": (lambda n: split("> a-", n, "\nb"), 5000),
    "normalise: gender forms": (lambda n: partial(normalise_text, "Aa/in »a »(in Der/die Aer/" * n, "de"), 2000),
    "numbers: joined": (lambda n: partial(join_numbers, "15.30 Uhr `x1` 1 000 € " * n), 300),
    "numbers: marks": (
        lambda n: partial(mend_numbers, "1.5 5 pm €1.5 - `5` " * n, "1.5 5 Uhr $1 - `5` " * n, ("en", "fr")),
        300,
    ),
    "segment: written line breaks": (lambda n: split("a", 1, r"\n" * n + "5"), 20_000),
    "segment: kept lines": (partial(split, "-\n"), 20_000),
    "segment: no sentence ends": (partial(split, "house "), 20_000),
    "segment: no spaces": (partial(split, "house"), 20_000),
    "segment: no spaces in Chinese": (partial(split, "房子在这里"), 20_000),
    "segment: an unknown script": (partial(split, "𐌰𐌱𐌲 "), 20_000),
    "segment: sentences": (partial(split, "We go. "), 2000),
    "segment: dots": (partial(split, "."), 5000),
    "segment: abbreviations": (partial(split, "Dr. "), 2000),
    "segment: initials": (partial(split, "A. B. "), 2000),
    "segment: quotation marks": (partial(split, '"a. '), 2000),
    "segment: three kinds of quotation marks": (partial(split, "\"'“"), 5000),
    "segment: open brackets": (partial(split, "(a. "), 2000),
    "segment: numbers": (partial(split, "1. "), 2000),
    "segment: long without spaces": (partial(halve, "x"), 50_000),
    "segment: long with marks at the end": (partial(halve, "x" * 200 + ", "), 500),
    "segment: long of accents": (partial(halve, "\u0301"), 5000),
    "markup: CDATA": (partial(parse, "<![CDATA[>"), 2000),
    "markup: XML CDATA": (lambda n: partial(parse_xml, "<a>" + "<![CDATA[>" * n), 2000),
    "markup: DOCTYPE": (lambda n: partial(parse_xml, "<!DOCTYPE \">'" * n), 2000),
    "markup: comments": (partial(parse, "<!--"), 20_000),
    "markup: end tags within open elements": (lambda n: after("<b>" * 512, "</i>", n), 1000),
    "markup: paragraphs within open elements": (lambda n: after("<b>" * 512, "<p>", n), 1000),
    "markup: open elements": (partial(parse, "<b>"), 1000),
    "markup: nested elements": (partial(nested, "<b>", "</b>"), 1000),
    "markup: nested blocks": (partial(nested, "<div>", "</div>"), 1000),
    "markup: nested untranslatable blocks": (partial(nested, '<code translate="yes"><p>', "</p></code>"), 500),
    "markup: open untranslatable elements": (partial(parse, "<code>", end="<p>"), 1000),
    "markup: footnote marks": (partial(parse, "word<sup>1</sup></b>"), 500),
    "markup: marks that are no footnote marks": (partial(parse, "word <a>1</a>"), 500),
    "markup: lines of lists": (partial(parse, "<b>word\n* word"), 500),
    "markup: empty elements": (lambda n: partial(parse_xml, "word <x/> " * n), 1000),
    "markup: placement of empty elements": (lambda n: place("word <x></x>, ", n), 300),
    "markup: divided words": (lambda n: place("word:<b>word</b>", n), 300),
    "markup: line breaks": (partial(parse, "word<b><br>"), 500),
    "markup: attributes": (lambda n: partial(parse_html, "<p " + "a " * n + ">x</p>"), 2000),
    "markup: references": (partial(parse, "&#1;&a"), 2000),
    "markup: placement": (partial(place, "<p>" + "word <b>word</b> " * 100), 2),
    "markup: placement of guesses": (partial(place, "<p>" + "<code>x</code> a " * 100), 2),
    "markup: placement of many": (partial(place, "word <b>word</b> "), 1000),
    "markup: open elements and paragraphs": (lambda n: after("<b>" * 512, "<p>a", n), 1000),
    "markup: nested placement": (lambda n: place("a " + "<b>c " * n + "</b>" * n + " d", 1), 500),
    "markup: placement in a long word": (lambda n: place_in_word("中" * n + "<b>中</b>" * 40), 800),
    "markup: placement around one sign": (lambda n: place("a <b>.</b> " + "." * n, 1), 1000),
    "markup: placement of a long kept word": (lambda n: place_copy("a" * n + " <code>" + "a" * n + "b</code>"), 3000),
    "markup: placement among signs": (lambda n: place("a " + "<b>- " * n + "</b>" * n + " d", 1), 400),
    **{f"symbols: {unit}": (partial(find_symbols, unit), 5000) for unit in ("1 ", "~ 1.", "5 m/", "aB ", "1,000 ")},
    "documents: JSON containers": (lambda n: partial(translate_file, "a.json", b"[" + b"[]," * n + b"0]"), 20_000),
    "documents: JSON values": (lambda n: partial(translate_file, "a.json", b"{" + b'"a":1,' * n + b'"b":1}'), 10_000),
    "documents: PO comments": (
        lambda n: partial(translate_file, "a.po", b"# a\n" * n + b'msgid "a"\nmsgstr ""\n'),
        2000,
    ),
    "documents: PO string without an end": (
        lambda n: partial(translate_file, "a.po", b'msgid "a"\nmsgstr "' + b'\\"' * n + b"\n"),
        5000,
    ),
    "documents: comments before a root element": (
        lambda n: partial(root_name, io.BytesIO(b"<!-- a -->\n" * (n // 10) + b"<w/>")),
        200,
    ),
    "strings: comments in comments": (lambda n: partial(find_tags, "<!--" * n + ">"), 20_000),
    **{
        f"strings: {unit}": (partial(find_tags_of, unit), 5000)
        for unit in ("{{", "{{ a ", "{% a ", "{% code %}", "<% a ", "<?php ", "{if a ", "</#a ")
    },
    "documents: PO metadata": (
        lambda n: partial(
            translate_file, "a.po", b'msgid ""\nmsgstr "a: b\\n' + b"a\\n" * n + b'"\n\nmsgid "a"\nmsgstr ""\n'
        ),
        5000,
    ),
    "documents: SRT tags": (
        lambda n: partial(translate_file, "a.srt", b"1\n00:00:01,000 --> 00:00:02,000\nHouse\n" + b"<b>\n" * n),
        500,
    ),
    "documents: MD table cells": (
        lambda n: partial(translate_file, "a.md", b"|a" * n + b"|\n" + b"|-" * n + b"|\n" + b"|a" * n + b"|\n"),
        500,
    ),
}
RESOURCES: list[tuple[str, Callable[[int], str]]] = [
    ("a.properties", lambda n: "a" * n + "\\"),
    ("a.properties", lambda n: "a=" + "b" * n + "\\"),
    ("a.strings", lambda n: '"' + '\\"' * n + "\\"),
    ("a.strings", lambda n: "/*" * n),
    ("a.csv", lambda n: '"' * (n + 1)),
    ("a.yaml", lambda n: "a: " + "{n, plural, one {" * n),
    ("a.arb", lambda n: '{"a": "' + "{n, plural, one {" * n + '"}'),
    ("a.strings", lambda n: '"a" = "' + "{0,choice,0#a|1#" * n + '";'),
    ("a.strings", lambda n: '"a" = "' + "{a '{" * n + '";'),
    ("a.po", lambda n: 'msgid "' + "a\\n" * n + '"\nmsgstr "b"\n'),
    ("a.po", lambda n: 'msgid "a"\nmsgstr "b"\n' * n),
    ("a.resx", lambda n: "<data " + "a='1' " * n + ">" + "<value>a</value>" * n + "</data>"),
    ("a.xml", lambda n: "<resources><plurals " + "a='1' " * n + ">" + "<item>a</item>" * n + "</plurals>"),
]
SIZES = {"json-nested": 900, "docx-nested": 4000, "md-brackets": 2000, "md-footnotes": 2000, "md-links": 3000}


@pytest.mark.parametrize(("prepare", "size"), GROWTH.values(), ids=GROWTH.keys())
def test_time_grows_with_the_size(prepare: Prepare, size: int) -> None:
    assert_linear(prepare, size)


@pytest.mark.parametrize(("name", "content"), RESOURCES)
def test_time_of_resources_grows_with_the_size(name: str, content: Callable[[int], str]) -> None:
    assert_linear(lambda size: partial(translate_file, name, content(size).encode()), 4_000)


@pytest.mark.parametrize("kind", SIZED_DOCUMENTS)
def test_time_of_documents_grows_with_the_size(kind: str) -> None:
    name, content = SIZED_DOCUMENTS[kind]
    assert_linear(lambda size: partial(translate_file, name, content(size)), SIZES.get(kind, 10_000))


def test_a_file_is_refused_when_a_count_is_exceeded() -> None:
    options = DocumentOptions(max_segments=100, max_characters=1000)
    for name, content, problem in (
        ("a.txt", b"a\n" * 101, "too many texts.*; accepted: at most 100"),
        ("a.txt", b"a" * 1001, "too many characters.*; accepted: at most 1,000"),
        ("a.html", b"<p>a" * 101, "too many texts.*; accepted: at most 100"),
        ("a.html", b"<b>" * (MAX_TOKENS + 1), "too many tags.*; accepted: at most 1,000,000"),
        ("a.srt", b"\n" * (MAX_TOKENS + 1), "too many lines.*; accepted: at most 1,000,000"),
        ("a.json", b"[" + b'"a",' * 100 + b'"a"]', "too many texts.*; accepted: at most 100"),
        ("a.json", b"[" * (MAX_TOKENS + 1), "too many values.*; accepted: at most 1,000,000"),
        ("a.po", b'msgid "a"\nmsgstr ""\n' * 101, "too many texts.*; accepted: at most 100"),
    ):
        with pytest.raises(DocumentError, match=problem):
            open_document(name, content, options)


@pytest.mark.parametrize("codec", ["punycode", "idna", "utf-7", "unicode_escape", "rot13", "hex", "zlib", "no-codec"])
def test_only_encodings_of_text_may_be_declared(codec: str) -> None:
    content = f'<meta charset="{codec}"><p>Straße'.encode()
    assert open_document("a.html", content).render([TranslatedSegment("Straße")]) == content


@pytest.mark.parametrize(
    "codec", ["latin-1", "ISO-8859-15", "windows-1252", "shift_jis", "EUC-JP", "gb18030", "koi8-r"]
)
def test_encodings_of_text_may_be_declared(codec: str) -> None:
    content = f'<meta charset="{codec}"><p>abc Ж'.encode(codec, "ignore")
    document = open_document("a.html", content)
    assert document.render([TranslatedSegment(document.segments[0].text)]) == content
