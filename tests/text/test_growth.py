"""Time that functions of mt.text take for hostile input: at twice the size at most three times as long."""

import io
import re
from collections.abc import Callable
from functools import partial

import pytest

from mt.errors import DocumentError
from mt.text import protect, repetition, restoration, segment
from mt.text.alignment import Link, PieceAttention
from mt.text.casing import lower_capitals, lower_first, lower_title_case
from mt.text.clock import read_times
from mt.text.documents import DocumentOptions, open_document
from mt.text.documents.packages import root_name
from mt.text.documents.pdf import WordWriter
from mt.text.documents.pdf_layout import Block, BlockKind
from mt.text.markup import TranslatedSegment, parse_html, parse_xml
from mt.text.markup.strings import find_tags, read_marks
from mt.text.measures import read_measure
from mt.text.members import mend_lists, split_list
from mt.text.names import lost_names, write_names
from mt.text.negation import mend_prohibitions
from mt.text.normalise import NormalisedText, normalise_text
from mt.text.numbers import mend_numbers, unify_numbers, write_dates
from mt.text.numerals import count_lost_values
from mt.text.places import postcodes
from mt.text.quotations import lost_quotations, whole_quotation
from mt.text.schedules import lost_ranges, mend_ranges, translate_line
from mt.text.span_patterns import PLACEHOLDER
from mt.text.symbols import lost_symbols, unknown_words
from mt.text.terms import Terms
from mt.text.typography import mend_marks, restore_no_break_spaces
from scripts.attack.payloads import SIZED_DOCUMENTS
from tests.linear_time import Prepare, assert_linear

COUNTED = Terms(tuple((f"a {number}", "b") for number in range(1000)), ("a a b",))
NESTED = Terms(tuple((" ".join(["ab"] * number) + f" c{number}", "b") for number in range(2, 150)))
CASED = Terms(tuple((f"{number:015b}".replace("0", "a").replace("1", "A"), str(number)) for number in range(2000)))


def find_beside_taken(size: int) -> Callable[[], object]:
    return partial(COUNTED.find, "a " * size, "en", [(place, place + 1) for place in range(0, 2 * size, 4)])


def translate_file(name: str, content: bytes) -> object:
    try:
        document = open_document(name, content, DocumentOptions(target_language="de"))
        return document.render([TranslatedSegment(segment.text + "!") for segment in document.segments])
    except DocumentError:
        return None


def write_paragraphs(size: int) -> Callable[[], object]:
    def write() -> bytes:
        writer = WordWriter((600, 800))
        for _ in range(size):
            writer.add(Block(BlockKind.PARAGRAPH, "a"), "a")
        return writer.content()

    return write


def restore_numbers(size: int) -> Callable[[], object]:
    source = " ".join(f"{number}x" for number in range(size))
    spans = protect.find_spans(source)
    return partial(restoration.add_missing_spans, "", spans)


def restore_emoji(size: int) -> Callable[[], object]:
    source, translation = "man😀 " * size, "Mann"
    spans = protect.find_spans(source)
    stripped = restoration.remove_spans(source, spans)
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
    stripped = restoration.remove_spans(source, spans)
    begins = [[word.start() for word in re.finditer(r"\S+", text)] for text in (stripped.text, target)]
    attention = PieceAttention(begins[0], begins[1], [[1 / len(begins[0])] * len(begins[0])] * len(begins[1]))
    return partial(restoration.restore_spans, stripped, spans, target, attention)


def grown(text: str, times: int) -> str:
    """Return a text `begin⋯unit⋯middle⋯unit⋯end` with its units repeated. Without ⋯ it is a unit."""
    parts = text.split("⋯") if "⋯" in text else ["", text]
    return "".join(part * (times if number % 2 else 1) for number, part in enumerate(parts))


def find_kept_letters(size: int) -> Callable[[], object]:
    return partial(protect.find_spans, "ab" * size, [(place, place + 1) for place in range(0, 2 * size, 2)])


def remove_digits(brackets: int, size: int) -> Callable[[], object]:
    """To extend each span to its word would be quadratic."""
    places = range(brackets * size + 2, brackets * size + 3 * size, 3)
    spans = [protect.ProtectedSpan(place, place + 1, "1", protect.SpanKind.NUMBER) for place in places]
    return partial(restoration.remove_spans, "(" * brackets * size + "a-1" * size + ")" * brackets * size, spans)


def reverse(size: int) -> tuple[Link, ...]:
    return tuple(((place, place + 1), (size - 1 - place, size - place)) for place in range(size))


def place(source: str) -> Callable[[], object]:
    markup = parse_html(source)
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


def split(text: str) -> object:
    return list(segment.split_text(text, "en"))


def halve(text: str) -> object:
    return list(segment.split_long_sentence(f"x{text}x", lambda part: len(part) < 100, "en"))


IN_512 = "<b>" * 512 + "⋯"
LONG_LINE = "⋯" + "A" * 50 + "⋯⋯\nand a dog is running in the big old house"
UNITS = [
    *("a", "a.", "a/", "a-", "@", "`", "{", "%", "<a", "1", "1.", "A1-", "👩\u200d", "/a", "&a", "{}", "a("),
    *("<%", "a_", "$", "(0", "**", "a:", "a;", "'_", '""', "a(1", "A<", "a.b", "1km", "1.2", "# ", "+1 ", "EUR "),
]
GROWTH: list[tuple[Callable[[str], object], int, list[str]]] = [
    (partial(COUNTED.find, language="en"), 2000, ["a ", "a'b"]),
    (partial(NESTED.find, language="en"), 400, ["ab "]),
    (partial(CASED.find, language="en", any_case=True), 1000, ["aaaaaaaaaaaaaaA. "]),
    (protect.find_spans, 20_000, ["http://a⋯]", "<ref>", *UNITS[:13]]),
    (protect.find_spans, 8000, ["`a <b>`", "①", "① ", "½", "<b ⋯a⋯=1>", *UNITS[13:]]),
    (protect.find_spans, 5000, ["1 ⋯١⋯st", "aa.Aa", "⋯a.⋯com", "``a ", "<a ", "⋯{a⋯⋯}", "{a}", "{a}.", "{a}€1"]),
    (PLACEHOLDER.fullmatch, 5000, ["{a}⋯ ", "x⋯x{a}⋯ ", "{a⋯}", "%s⋯ ", "a%", "$t(⋯"]),
    (
        protect.find_spans,
        2000,
        ["⋯1.⋯1st", "1.22", "[Name ", "[A a⋯ a", "1 ½", "1 °C–", "1–2,000.", "{{a %(a ", "x⋯-aa⋯1", '-a "'],
    ),
    (protect.split_at_long_spans, 500, ["http://a" + "b" * 70 + " "]),
    (partial(protect.list_marker_length, language="en"), 5000, ["- - - -", "-Wi", "-A=", "--a, ", "[@a.", "1.1."]),
    (lambda text: restoration.remove_spans(text, protect.find_spans(text)), 1000, ["😀  x ", '{0}⋯"⋯ x']),
    (partial(unknown_words, known=frozenset("a")), 5000, ["да "]),
    (partial(lost_symbols, translation=""), 5000, ["1 ", "~ 1.", "5 m/", "aB ", "1,000 "]),
    (partial(lost_names, translation=""), 2000, ["Mary ", "Mary, ", "Our LLC. A & "]),
    (partial(write_names, translation="Maria " * 50), 2000, ["Mary "]),
    (postcodes, 5000, ["10827 ", "10827 B"]),
    (
        lambda text: mend_prohibitions(text, text.replace("must", "muss"), ("en", "de")),
        500,
        ["must not ", "must not, "],
    ),
    (lambda text: mend_ranges(text, text, ("de", "fr")), 500, ["`x` Mo–Fr 9:10-9:20 "]),
    (lambda text: lost_ranges(text, text, ("de", "fr")), 500, ["`x` Mo–Fr 9:10-9:20 "]),
    (lambda text: translate_line(text, ("en", "de")), 50, ["Mon, ", "Mon 1-", "Mon 8 h "]),
    (lambda text: split_list(text, ("en", "de")), 2000, ["a, ", "a and ", "a b, or "]),
    (lambda text: mend_lists(text, text, ("en", "de"), lambda some: [*some]), 200, ["a, ", "a and ", "a, b or c, "]),
    (partial(read_measure, source="en", target="de"), 5000, ["1 cup ", "2 kg a ", "1½ ⋯1"]),
    (partial(lower_capitals, language="en"), 1000, ["WORD A1 "]),
    (partial(lower_title_case, language="en"), 1000, ["Word A1 "]),
    (partial(write_dates, languages=("de", "en")), 1000, ["1.2.2024 ", "2024 ", "1.2"]),
    (partial(lower_first, language="en"), 1000, ["Word a ", "Word’s "]),
    (partial(normalise_text, language="de"), 2000, ["Aa/in »a »(in Der/die Aer/", "‚a", "a⋯\u0301⋯⋯\u0316⋯"]),
    (lambda text: unify_numbers(NormalisedText(text), ("fr", "en")), 300, ["14h30 `x1` 1 000 € "]),
    (
        lambda text: unify_numbers(NormalisedText(text), ("en", "fr")),
        300,
        ["1 to ", "1 pm ", "every 1-2 h 1/13/2024 1.5kg ", "1 a/day 1.", "a ⋯1,⋯–"],
    ),
    (lambda text: read_times(NormalisedText(text), ("de", "en")), 300, ["halb sechs ", "fünf vor ", "1 Uhr "]),
    (lambda text: mend_marks('"a," b', text, "de"), 2000, ['⋯"a ⋯x', "«a", '"⋯a ⋯', "„a “", "Haus a-", "[a "]),
    (lambda text: restore_no_break_spaces("1\u00a0m", text, "de"), 300, ["1⋯1"]),
    (lambda text: restore_no_break_spaces(text, "1 m", "de"), 300, ["1⋯1"]),
    (read_marks, 2000, ["**a** ", "**a", "*a** "]),
    (lambda text: whole_quotation(f'"A b{text}."'), 2000, [", a-t-", ", he said ", ", a er "]),
    (partial(lost_quotations, translation=""), 2000, ["'a", "‘a’ ", "«a“b"]),
    (lambda text: mend_numbers(text, text.replace("€1.5", "$1"), ("en", "fr")), 300, ["1.5 €1.5 - `5` "]),
    (lambda text: mend_numbers(text, text, ("en", "fr")), 300, ["$5 ", "1-", "3 kB 18 o'clock ", "2 million €", "1⋯1"]),
    (
        lambda text: count_lost_values(text, text, ("en", "fr")),
        300,
        ["two ", "one hundred and ", "2 million ", "euros "],
    ),
    (
        lambda text: count_lost_values(text, text, ("de", "fr")),
        300,
        ["hundert", "zweiund", "tausend ", "spätestens am 3 "],
    ),
    (lambda text: mend_numbers(text, text, ("fr", "de")), 300, ["1.234 1,234 "]),
    (split, 20_000, ["\n", "-\n", "[ ] a⋯ ⋯[ ] b", "house ", "house", "房子在这里", "𐌰𐌱𐌲 ", r"a⋯\n⋯5"]),
    (split, 5000, [".", "\"'“", "⋯> a-⋯\nb"]),
    (split, 2000, ["a !=", "We go. ", "Dr. ", "A. B. ", '"a. ', "(a. ", "1. ", "red * ", "[ ] red "]),
    (split, 1000, ["a 😀 A", "in this very small old house of the\n", LONG_LINE]),
    (halve, 50_000, ["x"]),
    (halve, 5000, ["\u0301"]),
    (halve, 500, ["x" * 200 + ", "]),
    (parse_html, 5000, ["a⋯\n⋯b", "a⋯ ⋯b", "a⋯ \n⋯b"]),
    (parse_html, 2000, ["&#1;&a", "<p ⋯a ⋯>x</p>"]),
    (parse_html, 1000, ["⋯<b>⋯x⋯</b>", "⋯<code>⋯<p>", *(IN_512 + unit for unit in ("</i>", "<p>", "<p>a"))]),
    (parse_html, 500, ["word<sup>1</sup></b>", "word <a>1</a>", "<b>word\n* word", "word<b><br>"]),
    (parse_html, 500, ['⋯<code translate="yes"><p>⋯x⋯</p></code>']),
    (parse_xml, 2000, ["<a>⋯<![CDATA[>", "<!DOCTYPE \">'", "a&#10;"]),
    (parse_xml, 1000, ["word <x/> "]),
    (find_tags, 20_000, ["⋯<!--⋯>"]),
    (find_tags, 5000, ["---\ntitle: a⋯ ⋯b\n---\n", "---\ntitle⋯\t⋯b\n---\n"]),
    (find_tags, 1000, ["{a,plural,b{c}}", "{a,plural,b{", "```\n{{#a}}\n```\n{{ a }}\n"]),
    (find_tags, 5000, ["{{", "{{ a ", "{% a ", "{% code %}", "<% a ", "<?php ", "{if a ", "</#a "]),
    (lambda text: root_name(io.BytesIO(text.encode())), 2000, ["⋯<!-- a -->\n⋯<w/>"]),
]
PLACED: list[tuple[Callable[[str], Callable[[], object]], int, list[str]]] = [
    (place, 300, ["word <x></x>, ", "word:<b>word</b>"]),
    (place, 2, ["<p>" + "word <b>word</b> " * 100, "<p>" + "<code>x</code> a " * 100]),
    (place, 1000, ["word <b>word</b> ", "a <b>.</b> ⋯."]),
    (place, 500, ["a ⋯<b>c ⋯⋯</b>⋯ d", "a ⋯<b>- ⋯⋯</b>⋯ d"]),
    (place_in_word, 800, ["⋯中⋯" + "<b>中</b>" * 40]),
    (
        place_copy,
        3000,
        [
            "⋯a⋯ <code>⋯a⋯b</code>",
            "<b>a</b> ⋯1⋯ h",
            "<b>a</b> ⋯9 h ⋯",
            "⋯IX⋯<sup>e</sup> a",
            "<b>a</b> ⋯1.1.2024 May 2024 ⋯",
        ],
    ),
]
PREPARED: list[tuple[Prepare, int]] = [
    (find_beside_taken, 2000),
    (restore_emoji, 1000),
    (restore_numbers, 500),
    (find_kept_letters, 2000),
    *((partial(remove_digits, brackets), 2000) for brackets in (0, 1)),
    (find_kept, 500),
    (write_paragraphs, 10_000),
    (partial(restore_between_words, "word 12x 1,000 "), 100),
    (lambda n: partial(repetition.doubled_words, "a b c d, " * n, "a b b, " * n), 1000),
    (lambda n: partial(repetition.doubled_words, "a" * n + "., " * n, "a a" + " a" * n + "b" * n), 1000),
    (lambda n: partial(repetition.is_repetitive, ["a"] * n, ["a", "b", "c"] * n), 1000),
]
FILES: list[tuple[int, str, str]] = [
    (20_000, "a.json", "[⋯[],⋯0]"),
    (10_000, "a.json", '{⋯"a":1,⋯"b":1}'),
    (2000, "a.po", '⋯# a\n⋯msgid "a"\nmsgstr ""\n'),
    (5000, "a.po", 'msgid "a"\nmsgstr "⋯\\"⋯\n'),
    (5000, "a.po", 'msgid ""\nmsgstr "a: b\\n⋯a\\n⋯"\n\nmsgid "a"\nmsgstr ""\n'),
    (4000, "a.po", 'msgid ""\nmsgstr "Plural-Forms: ⋯"\n"⋯\n\nmsgid "a"\nmsgstr ""\n'),
    (4000, "a.po", 'msgid "⋯a\\n⋯"\nmsgstr "b"\n'),
    (4000, "a.po", 'msgid "a"\nmsgstr "b"\n'),
    (5000, "a.po", '# \nLanguage:⋯ ⋯x\nmsgid ""\nmsgstr "a: b\\n"\n\nmsgid "a"\nmsgstr ""\n'),
    (3000, "a.po", '⋯# Plural-Forms: \n⋯msgid ""\nmsgstr "Plural-Forms: nplurals=INTEGER\\n"\n\nmsgid "a"\nmsgstr ""'),
    (500, "a.srt", "1\n00:00:01,000 --> 00:00:02,000\nHouse\n⋯<b>\n"),
    (4000, "a.properties", "⋯a⋯\\"),
    (4000, "a.properties", "a=⋯b⋯\\"),
    (4000, "a.strings", '"⋯\\"⋯\\'),
    (4000, "a.strings", '"a" = "⋯{0,choice,0#a|1#⋯";'),
    (4000, "a.strings", '"a" = "⋯{a \'{⋯";'),
    (4000, "a.yaml", "a: ⋯{n, plural, one {"),
    (500, "a.md", "⋯|a⋯|\n⋯|-⋯|\n⋯|a⋯|\n"),
    (1000, "a.resx", "<data ⋯a='1' ⋯>⋯<value>a</value>⋯</data>"),
    (1000, "a.xml", "<resources><plurals ⋯a='1' ⋯>⋯<item>a</item>⋯</plurals>"),
]
SIZES = {"json-nested": 900, "md-brackets": 2000, "md-footnotes": 2000, "md-links": 3000}
SIZES |= {"docx-nested": 4000, "docx-texts": 80_000}


@pytest.mark.parametrize(("prepare", "size"), PREPARED)
def test_time_grows_with_the_size(prepare: Prepare, size: int) -> None:
    assert_linear(prepare, size)


@pytest.mark.parametrize(("prepare", "size", "text"), [(f, n, text) for f, n, all in PLACED for text in all])
def test_time_of_placement_grows(prepare: Callable[[str], Callable[[], object]], size: int, text: str) -> None:
    assert_linear(lambda times: prepare(grown(text, times)), size)


@pytest.mark.parametrize(("call", "size", "text"), [(call, size, text) for call, size, all in GROWTH for text in all])
def test_time_grows_with_the_repeated_text(call: Callable[[str], object], size: int, text: str) -> None:
    assert_linear(lambda times: partial(call, grown(text, times)), size)


@pytest.mark.parametrize(("size", "name", "text"), FILES)
def test_time_of_files_grows_with_the_size(size: int, name: str, text: str) -> None:
    assert_linear(lambda times: partial(translate_file, name, grown(text, times).encode()), size)


@pytest.mark.parametrize("kind", SIZED_DOCUMENTS)
def test_time_of_documents_grows_with_the_size(kind: str) -> None:
    name, content = SIZED_DOCUMENTS[kind]
    assert_linear(lambda size: partial(translate_file, name, content(size)), SIZES.get(kind, 10_000))
