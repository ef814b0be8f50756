"""Tables, YAML, and the text resources of programs: the texts that are found, and how translations are written."""

import re
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.errors import DocumentError
from mt.text.documents import DocumentOptions
from mt.text.messages import split_message, whole_sentences, write_branches
from tests.text.documents import texts, translated

TABLE = 'id,name,"long\ntext"\r\n1,A dog,"He said ""hi"", then left"\r\n2,"","3.5"\r\n3,Two words,'


ESCAPED = [
    ("a.yaml", "a: One\n", 'a: "l\'été: \\"x\\""\n'),
    ("a.yaml", "a: [:b, :c]\nd: One\n", 'a: [:b, :c]\nd: "l\'été: \\"x\\""\n'),  # symbols of Ruby
    ("a.yaml", "a: 'One'\n", "a: 'l''été: \"x\"'\n"),
    ("a.yaml", "a: |\n  One\n  # Two\n", 'a: |\n  l\'été: "x"\n  l\'été: "x"\n'),
    ("a.yaml", "a: '{n, plural, other {One}}'\n", "a: '{n, plural, other {l''été: \"x\"}}'\n"),
    ("a.arb", '{"a": "One"}', '{"a": "l\'été: \\"x\\""}'),
    ("a.arb", '{"a": "\\u0041 b"}', '{"a": "l\'\\u00e9t\\u00e9: \\"x\\""}'),
    ("a.properties", "a=One", 'a=l\'été: "x"'),
    ("a.properties", "a={0} b", "a=l''été: \"x\""),
    ("a.properties", "a=\\u0041 b", 'a=l\'\\u00e9t\\u00e9: "x"'),
    ("a.strings", '"a" = "One";', '"a" = "l\'été: \\"x\\"";'),
    ("a.xml", "<resources><string>A</string></resources>", r"<resources><string>l\'été: \"x\"</string></resources>"),
    ("a.xml", r"<resources><string>\u0020A\u00A0</string>", r"<resources><string>\u0020l\'été: \"x\"\u00A0</string>"),
    ("a.xml", r"<resources><string>\t5\% A</string>", r"<resources><string>\tl\'été: \"x\"</string>"),
    ("a.resx", "<data><value>A</value></data>", '<data><value>l\'été: "x"</value></data>'),
    ("a.csv", "A", '"l\'été: ""x"""'),
    ("a.tsv", "A", 'l\'été: "x"'),
]  # fmt: skip
NEW_CELLS = [
    ("a.csv", "a;b\n", '"x, y; z";"x, y; z"\n'),
    ("a.csv", "a, b;c\n", '"x, y; z";"x, y; z"\n'),
    ("a.csv", '"a",b\n', '"x, y; z","x, y; z"\n'),
    ("a.csv", "a\nb\n", '"x, y; z"\n"x, y; z"\n'),
    ("a.csv", "a, b; c\nb, d; e\nNo\nc\nd\n", 'x, y; z\nx, y; z\n"x, y; z"\n"x, y; z"\n"x, y; z"\n'),
    ("a.csv", "sep=\t\na\tb\n", "sep=\t\nx, y; z\tx, y; z\n"),
]
OTHERS = [
    ("Eins", "a.yaml", "a: One", "a: Eins"),
    ("yes", "a.yaml", "a: One", 'a: "yes"'),
    ("3", "a.yaml", "a: One", 'a: "3"'),
    (" a\\b\t\r\n", "a.properties", "a=One", r"a=\ a\\b\t\r\n"),
    (" a\\b\t\n", "a.strings", '"a" = "One";', r'"a" = " a\\b\t\n";'),
]


@pytest.mark.parametrize(
    ("translation", "name", "content", "written"),
    [
        *(('l\'été: "x"', *row) for row in ESCAPED),
        *(("x, y; z", *row) for row in NEW_CELLS),
        *OTHERS,
    ],
)
def test_translations_are_escaped_by_format(translation: str, name: str, content: str, written: str) -> None:
    assert translated(name, content, lambda text: translation) == written


def test_an_endless_number_of_plural_forms() -> None:
    assert texts("a.po", f'msgid ""\nmsgstr "Plural-Forms: nplurals={"9" * 5000};\\n"\n\nmsgid "a"\nmsgstr ""\n') == [
        "a"
    ]


@pytest.mark.parametrize(
    ("label", "text", "translation", "written"),
    [
        ("_Open", "Open", "Jetzt offen", "Jetzt _offen"),
        ("E&xit", "Exit", "Beenden", "&Beenden"),
        ("R&D &amp; a_b, _a_ &b &c", "R&D &amp; a_b, _a_ &b &c", "x", "x"),
    ],
)
def test_access_keys_of_labels(label: str, text: str, translation: str, written: str) -> None:
    content = f'msgid "{label}"\nmsgstr ""\n'
    assert texts("a.po", content) == [text]
    assert f'msgstr "{written}"' in translated("a.po", content, lambda _: translation)
    value = "<root><data name='a'><value>{}</value></data></root>"
    result = translated("a.resx", value.format(label.replace("&", "&amp;")), lambda _: translation)
    assert result == value.format(written.replace("&", "&amp;"))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [(("name",), ["A dog", "Two words"]), (("2",), ["A dog", "Two words"]), (("1", "3"), ['He said "hi", then left'])],
)
def test_columns_of_a_table(columns: tuple[str, ...], expected: list[str]) -> None:
    table = TABLE.replace("long\ntext", "name")  # the first of two columns with a name
    assert texts("a.csv", table, DocumentOptions(columns=columns)) == expected


MESSAGES = {
    "a.json": '{"a": "%s"}',
    "a.arb": '{"a": "%s"}',
    "a.yaml": 'a: "%s"',
    "b.yaml": "a: '%s'",
    "a.po": 'msgid ""\nmsgstr "Language: de\\n"\n\nmsgid "%s"\nmsgstr ""\n',
    "a.properties": "a=%s",
    "a.strings": '"a" = "%s";',
    "a.resx": "<root><data name='a'><value>%s</value></data></root>",
    "strings.xml": "<resources><string name='a'>%s</string></resources>",
    "a.csv": '1,"%s"',
    "a.xlf": "<xliff version='1.2'><trans-unit><source>%s</source></trans-unit></xliff>",
}


@pytest.mark.parametrize("name", MESSAGES)
@pytest.mark.parametrize(
    "marked",
    [
        "{n, plural, =0 {⟨no dogs⟩} one {⟨a dog⟩} other {⟨# dogs⟩}}",
        "⟨Hi {name},⟩ {n, selectordinal, one {⟨#st day⟩} other {⟨#th day⟩}}!",
        "{g, select, female {⟨her⟩ {n, plural, offset:1 one {⟨cat⟩} other {⟨cats⟩}}} other {⟨a '{' b⟩}}",
        "{0,choice,0#⟨no dogs⟩|1#⟨one dog⟩|1<⟨{0} dogs⟩}",
    ],
)
def test_branches_of_messages_in_each_format(name: str, marked: str) -> None:
    """The texts are in angle brackets."""
    source = re.sub("[⟨⟩]", "", marked)
    target = re.sub("⟨(.*?)⟩", lambda text: text[1].upper(), marked)
    if name.endswith((".xml", ".xlf", ".resx")):
        source, target = source.replace("<", "&lt;"), target.replace("<", "&lt;")
    if name == "strings.xml":
        source, target = source.replace("'", r"\'"), target.replace("'", r"\'")
    if name == "b.yaml":
        source, target = source.replace("'", "''"), target.replace("'", "''")
    content = MESSAGES[name] % source
    assert texts(name, content) == re.findall("⟨(.*?)⟩", marked)
    assert target in translated(name, content, str.upper)


@pytest.mark.parametrize("name", ["a.json", "a.strings", "a.po", "a.xlf"])
@pytest.mark.parametrize(
    ("source", "translation", "written"),
    [
        ("the {city}", "l'{city}", "l’{city}"),
        ("It's '{x}'", "C'est '{x}'", "C'est '{x}'"),
        ("{n, plural, other {it''s # dogs}}", "c'est l'# d'ici", "{n, plural, other {c''est l''# d''ici}}"),
        ("{n, plural, other {# dogs}}", "d'# chiens", "{n, plural, other {d’# chiens}}"),
    ],
)
def test_apostrophes_begin_no_literal_text(name: str, source: str, translation: str, written: str) -> None:
    found = translated(name, (MESSAGES[name] % source), lambda text: translation)
    assert written in found


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('"Hello, my friend, how are you";1\n"Red, and new";2\n', ["Hello, my friend, how are you", "Red, and new"]),
        ("Dog;1,50\nCat;2,00\n", ["Dog", "Cat"]),
        ("Hello, world\t1\nBye, now\t2\n", ["Hello, world", "Bye, now"]),
        ("a|b, c|d\ne, f|g|h\n", ["a", "b, c", "d", "e, f", "g", "h"]),
        ('id,text\n1,"a;\nb;\nc;"\n2,"d;"\n', ["id", "text", "a;\nb;\nc;", "d;"]),
        ("Stock, 2024\r\nid;name\r\n1;dog\r\n2;cat\r\n", ["Stock, 2024", "id", "name", "dog", "cat"]),
        ("sep=;\nA, b;C, d\n", ["A, b", "C, d"]),
        ("text\nA dog, a cat.\nA, b, c?\nHere.\n", ["text", "A dog, a cat.", "A, b, c?", "Here."]),
        ("a,b,c\nd,e\nf,g,h,i\n", ["a", "b", "c", "d", "e", "f", "g", "h", "i"]),
        ('"a","b ""x; y"" c"\r"d","e; f"\r', ["a", 'b "x; y" c', "d", "e; f"]),
    ],
)  # fmt: skip
def test_the_separator_of_a_table(content: str, expected: list[str]) -> None:
    assert texts("a.csv", content) == expected
    assert translated("a.csv", content, str) == content


@pytest.mark.parametrize(
    ("message", "translations", "expected"),
    [
        (
            "A {x} {n, plural, =1 {# dog} other {# dogs}} b.",
            ["A 1 Hund {x} c.", "A 37 Hunde {x} c."],
            "A {n, plural, =1 {# Hund} other {# Hunde}} {x} c.",
        ),
        (
            "A {x} {n, plural, one {# dog} other {# dogs}} b.",
            ["A {x} b 1 Hund c.", "A {x} b 37 Hunde c."],
            "A {x} b {n, plural, one {# Hund} other {# Hunde}} c.",
        ),
        ("A {n, plural, other {# dogs}}.", ["A 7 Hunde."], None),
        ("{g, select, a {His dog} b {Her dog}}", ["Sein Hund", "Ihr Hund"], "{g, select, a {Sein Hund} b {Ihr Hund}}"),
        ("A {g, select, a {<b>it</b>} b {it}}", ["A <b>es</b>", "A <b>es</b>"], None),
        ("{n, plural, =0 {} one {# dog}}.", ["", "1 Hund"], "{n, plural, =0 {} one {# Hund}}."),
        ("({n, plural, =0 {} one {#}})", [], ""),
        ("The old dog " * 9 + "{n, plural, " + "".join(f"={n} {{b}} " for n in range(20)) + "other {c}}", [], ""),
    ],
)
def test_whole_sentences_of_branches(message: str, translations: list[str], expected: str | None) -> None:
    parts, sentences = whole_sentences(message) or ([], [])
    assert len(sentences) == len(translations)
    assert (write_branches(parts, translations) if parts else "") == expected


@pytest.mark.parametrize(
    ("message", "leaves"),
    [
        ("{n, plural, one {it''s {x}} other {'{'no'}'}}", ["it''s {x}", "'{'no'}'"]),
        ("'{n, plural, other {a}}'", ["'{n, plural, other {a}}'"]),
        ("{0,choice,-1#less|0#none|1#a {x}|2≤many '|' dogs}", ["less", "none", "a {x}", "many '|' dogs"]),
        ("{0,choice,0#{1,choice,0#a|1#b}|1#c}", ["a", "b", "c"]),
        ("{n, plural}", ["{n, plural}"]),
        ("{n,number,#.##} {d, date, short}", ["{n,number,#.##} {d, date, short}"]),
        ("{gender_1, select, мужской {он} other {они}}", ["он", "они"]),
        ("{n, plural, =0{none} one {a {thing}} other{# of {n}}}", ["none", "a {thing}", "# of {n}"]),
        ("} {a} {", ["} {a} {"]),
    ],
)
def test_branches_of_a_message(message: str, leaves: list[str]) -> None:
    parts = split_message(message)
    assert [text for text, translated in parts if translated and text] == leaves


@given(st.text(alphabet="{}, =a1#plurselcto\n"))
def test_the_parts_of_a_message_are_the_message(message: str) -> None:
    assert "".join(text for text, _ in split_message(message)) == message


@pytest.mark.parametrize("name", ["a.properties", "a.strings", "a.csv", "a.tsv"])
@given(st.text(alphabet="ab=\"'\\;,\t\n\r/*# {0}u4é"))
def test_any_text_is_rendered_byte_for_byte(name: str, text: str) -> None:
    with suppress(DocumentError):
        assert translated(name, text, str) == text
