"""Documents: untranslated content is preserved, and translations are written in the right places."""

import base64
import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress

import docx
import polib
import pysubs2
import pytest
from docx.oxml import OxmlElement, parse_xml
from docx.oxml.ns import qn
from hypothesis import given
from hypothesis import strategies as st

from mt.errors import DocumentError
from mt.text.documents import SUFFIXES, DocumentOptions, open_document
from mt.text.documents.markdown import _characters
from mt.text.documents.packages import Package
from mt.text.markup import TranslatedSegment

MARKDOWN = """---
slug: "Not touched"
---
# The *big* house #

A paragraph with `code` and a [link](http://x.y/z_(a) "Title"), over
two lines\\
and a hard break \\* &amp; <b>html</b> ![alt](u.png) <http://auto.link> note[^1].

> Quoted
> text
> 1. one
>    two

- item *a*
  - nested **item**
* [ref][foo] and [foo]

| Head | **bold** |
|------|----------|
| cell | two `x`  |

```python
print("hi")
```

    indented code

Setext
======

<div class="x">Some <b>html</b>
text</div>

[foo]: http://a.b "t"
[^1]: The note.
"""

SRT = """1
00:00:01,000 --> 00:00:02,500
<i>Hello there,</i>
my old friend!

2
00:00:03,000 --> 00:00:04,000
- How are you?
- {\\an8}Fine.

"""

VTT = """WEBVTT - A film

NOTE not this
nor this

STYLE
::cue { color: red }

intro
00:01.000 --> 00:02.500 align:start line:0%
<v Ann>Tom &amp; <c.loud>Jerry</c></v>
"""

JSON = '{"title": "A dog", "n": 1.50, "list": ["one\\n", {"key": "two \\"x\\" "}], "url": "", "e": "\\u00e4hm"}\n'

PO = """# A comment
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=3; plural=(n==1 ? 0 : n<5 ? 1 : 2);\\n"

#: a.c:1
msgctxt "menu"
msgid "Open\\n"
msgstr ""

msgid "Done"
msgstr "Fertig"

#, fuzzy, c-format
#| msgid "Old %d"
msgid "New %d"
msgstr "Alt %d"

msgid "%d dog"
msgid_plural "%d dogs"
msgstr[0] ""
msgstr[1] ""
msgstr[2] ""

#~ msgid "Gone"
#~ msgstr ""
"""

XLIFF_1 = """<?xml version="1.0"?>
<xliff version="1.2"><file source-language="en"><body>
  <trans-unit id="1">
    <source>The <g id="1">big</g> dog<x id="2"/></source>
  </trans-unit>
  <trans-unit id="2"><source>Done</source><target state="final">Fertig</target></trans-unit>
  <trans-unit id="3"><source>New</source><target state="new"/>
    <alt-trans><source>Other</source><target>Anders</target></alt-trans></trans-unit>
  <trans-unit id="4" translate="no"><source>Kept</source></trans-unit>
  <trans-unit id="5"><source>A. B.</source><seg-source><mrk mtype="seg" mid="1">A.</mrk> <mrk mtype="seg" mid="2">B.</mrk></seg-source></trans-unit>
</body></file></xliff>
"""  # noqa: E501

XLIFF_2 = """<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en"><file id="f"><unit id="u">
<segment state="initial"><source>Press <ph id="1" disp="x"/> &amp; <pc id="2">go</pc></source></segment>
</unit></file></xliff>
"""

EXACT = {
    "a.txt": "\ufeff  One.  \r\n\r\nTwo\nthree \u2028 \t\n",
    "a.html": "<!DOCTYPE html>\r\n<p>Hello <b>world</b> &amp; all</p>\n",
    "a.xml": '<?xml version="1.0"?>\n<a><b>x &lt; y</b></a>',
    "a.md": MARKDOWN,
    "a.srt": SRT,
    "b.srt": SRT.replace("\n", "\r\n"),
    "a.vtt": VTT,
    "a.json": JSON,
}


def translate(
    name: str, content: str, translations: Mapping[str, str] | None = None, options: DocumentOptions | None = None
) -> str:
    """Render a document with the given translations of segments, and all others in upper case."""
    document = open_document(name, content.encode(), options)
    texts = [(translations or {}).get(segment.text, segment.text.upper()) for segment in document.segments]
    return document.render(list(map(TranslatedSegment, texts))).decode()


def texts(name: str, content: str) -> list[str]:
    return [segment.text for segment in open_document(name, content.encode()).segments]


def identity(name: str, content: bytes) -> bytes:
    document = open_document(name, content)
    return document.render([TranslatedSegment(segment.text) for segment in document.segments])


@pytest.mark.parametrize("name", EXACT)
def test_unchanged_documents_are_rendered_byte_for_byte(name: str) -> None:
    content = EXACT[name].encode()
    assert open_document(name, content).segments
    assert identity(name, content) == content


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.xml"])
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])) | st.lists(st.sampled_from(["# ", "> ", "- ", "1. ", "*", "`", "[a](b)", "\n", "\r\n", "word", "|", "    ", "~~", "<b>", "\\", "\t", "&amp;"])).map("".join))  # fmt: skip  # noqa: E501
def test_any_unchanged_text_is_rendered_byte_for_byte(name: str, text: str) -> None:
    content = text.encode("utf-8", "replace")
    with suppress(DocumentError):  # for example, the text is all code
        assert identity(name, content) == content


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(JSON_VALUES, st.booleans())
def test_json_changes_only_in_its_strings(value: object, ascii_only: bool) -> None:
    content = json.dumps(value, ensure_ascii=ascii_only, indent=1).encode("utf-8", "surrogatepass")
    try:
        content.decode()
    except UnicodeDecodeError:
        return
    assert identity("a.json", content) == content
    document = open_document("a.json", content)
    new = json.loads(document.render([TranslatedSegment('„x" \\') for _ in document.segments]))
    assert type(new) is type(value)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.html", "<p><ruby>犬<rp>(</rp><rt>inu</rt><rp>)</rp></ruby> runs</p>"),
        ("a.xhtml", "<p><ruby>犬<rt>inu</rt></ruby> runs</p>"),
        ("a.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\n<ruby>犬<rt>inu</rt></ruby> runs\n"),
    ],
)
def test_the_reading_of_a_word_is_no_text(name: str, content: str) -> None:
    assert texts(name, content) == ["犬 runs"]
    assert "inu" in translate(name, content)


def test_text_keeps_lines_and_white_space() -> None:
    assert translate("a.txt", "  one \r\n\n---\n\ttwo") == "  ONE \r\n\n---\n\tTWO"


def test_columns_of_text_are_texts() -> None:
    content = "a dog     12   two cats\nname\tA house.  It is big.\n"
    assert texts("a.txt", content) == ["a dog", "12", "two cats", "name", "A house.  It is big."]
    assert translate("a.txt", content) == content.upper()


def test_html_is_written_in_the_encoding_it_declares() -> None:
    content = '<meta charset="iso-8859-1"><p>Grüße</p>'.encode("latin-1")
    document = open_document("a.html", content)
    assert [segment.text for segment in document.segments] == ["Grüße"]
    assert document.render([TranslatedSegment("Ä 語")]) == '<meta charset="iso-8859-1"><p>Ä &#35486;</p>'.encode(
        "latin-1"
    )


def test_utf_16_is_kept() -> None:
    content = "one".encode("utf-16")
    assert translate("a.txt", content.decode("utf-16")) == "ONE"
    document = open_document("a.txt", content)
    assert document.render([TranslatedSegment("zwei")]) == "zwei".encode("utf-16")


def test_markdown_keeps_its_structure() -> None:
    segments = texts("a.md", MARKDOWN)
    assert segments[0] == "The big house"
    assert "Quoted text" in segments and "two x" in segments and "The note." in segments
    result = translate("a.md", MARKDOWN)
    kept = ['slug: "Not touched"', 'print("hi")', "    indented code", '[foo]: http://a.b "t"', "======", "|------"]
    written = [
        "# THE *BIG* HOUSE #",
        "> QUOTED TEXT",
        "> 1. ONE TWO",
        "  - NESTED **ITEM**",
        "[REF][foo] AND [FOO][foo]",
    ]
    for part in (*kept, *written):
        assert part in result
    assert '](http://x.y/z_(a) "Title")' in result and "![alt](u.png)" in result and "<http://auto.link>" in result


@pytest.mark.parametrize(
    ("source", "translated"),
    [
        ("- [ ] one\n- [x] two\n", "- [ ] ONE\n- [x] TWO\n"),
        ("|a|b|\n|-|-|\n|one \\| two|three `a \\| b`|\n", "|A|B|\n|-|-|\n|ONE \\| TWO|THREE `a \\| b`|\n"),
        ("|a|\n|-|\n|two \\|  |\n", "|A|\n|-|\n|TWO \\|  |\n"),
        ("A term\n: the *text*\n", "A TERM\n: THE *TEXT*\n"),
        ("[one two][]\n\n[one two]: u\n", "[ONE TWO][one two]\n\n[one two]: u\n"),
        ("A [dog] ran[^1].\n\n[dog]: u\n[^1]: u\n", "A [DOG][dog] RAN[^1].\n\n[dog]: u\n[^1]: U\n"),
        ("> [!NOTE]\n> one\n> [!TIP]- two\n> three\n", "> [!NOTE]\n> ONE\n> [!TIP]- TWO\n> THREE\n"),
        (":::tip[A *b*]\none\n:::\n::: warning two\n:::\n", ":::tip[A *B*]\nONE\n:::\n::: warning TWO\n:::\n"),
        ("::::{note} one\n:class: x\n::::\n", "::::{note} ONE\n:class: x\n::::\n"),
        (
            '!!! note "one"\n    two\n\n    - three\n\n=== "four"\n\n    ```\n    five\n    ```\nsix\n',
            '!!! note "ONE"\n    TWO\n\n    - THREE\n\n=== "FOUR"\n\n    ```\n    five\n    ```\nSIX\n',
        ),
        ("??? tip\n    one\n    !!! b\n        two\n", "??? tip\n    ONE\n    !!! b\n        TWO\n"),
        ("[^a]: one\n    two\n[^b]: three\n*[ab]: four\n", "[^a]: ONE TWO\n[^b]: THREE\n*[ab]: FOUR\n"),
        ("one $a*b*c$ two \\(d\\) for $5 or $6\n", "ONE $a*b*c$ TWO \\(d\\) FOR $5 OR $6\n"),
        ("one\n$$\na_b_c\n$$\ntwo\n\\[ d e \\]\n", "ONE\n$$\na_b_c\n$$\nTWO\n\\[ d e \\]\n"),
        ("{{< tip >}}\none {{< ref a >}} two\n{{< /tip >}}\n", "{{< tip >}}\nONE {{< ref a >}} TWO\n{{< /tip >}}\n"),
        ("import A from 'a';\nexport const b = 1\n\n# c\n", "import A from 'a';\nexport const b = 1\n\n# C\n"),
        ("```\n> [!NOTE]\n:::tip one\n```\ntwo\n", "```\n> [!NOTE]\n:::tip one\n```\nTWO\n"),
        ("one ==two== ++three++ C++ ^[four]\n", "ONE ==TWO== ++THREE++ C++ ^[FOUR]\n"),
        ("- > [!NOTE]\n  > one\n", "- > [!NOTE]\n  > ONE\n"),
        (
            "````{note}\n```{tip} one\ntwo\n```\n```py\nthree\n```\n````\nfour\n",
            "````{note}\n```{tip} ONE\nTWO\n```\n```py\nthree\n```\n````\nFOUR\n",
        ),
        ("{% highlight py %}\none\n{% endhighlight %}\ntwo\n", "{% highlight py %}\none\n{% endhighlight %}\nTWO\n"),
        (
            "export const a = {\n  b: 'c d'\n}\n\n{/* e */}\n# f\n",
            "export const a = {\n  b: 'c d'\n}\n\n{/* e */}\n# F\n",
        ),
        ("<Card\n  title='x'\n>\none\n</Card>\n", "<Card\n  title='x'\n>\nONE\n</Card>\n"),
        ("![one](u){ .left }\n\n[two](u){ .a b }\n", "![ONE](u){ .left }\n\n[TWO](u){ .a b }\n"),
        ('![one](u "t")\n\n![two]\n\n[two]: u\n', '![ONE](u "t")\n\n![TWO][two]\n\n[two]: u\n'),
        (
            "---\ntitle: one\ntags: [two]\nseo:\n  description: >\n    a\n    b\n---\n",
            "---\ntitle: ONE\ntags: [two]\nseo:\n  description: >\n    A B\n---\n",
        ),
    ],
)
def test_markdown_that_depends_on_its_text(source: str, translated: str) -> None:
    assert identity("a.md", source.encode()) == source.encode()
    document = open_document("a.md", source.encode())
    translations = []
    for segment in document.segments:
        words = [match.span() for match in re.finditer(r"\S+", segment.text)]
        capitals = "".join(
            letter if any(begin <= place < end for begin, end in segment.kept) else letter.upper()
            for place, letter in enumerate(segment.text)
        )
        translations.append(TranslatedSegment(capitals, tuple((word, word) for word in words)))
    assert document.render(translations).decode() == translated


def test_markdown_escapes_what_would_be_markup() -> None:
    assert translate("a.md", "one\n", {"one": "1. a*b_c"}) == "1\\. a\\*b\\_c\n"
    assert translate("a.md", "a_b \\* c\n", {"a_b * c": "x_y * z"}) == "x_y \\* z\n"


def test_a_long_paragraph_of_markdown_is_scanned_once() -> None:
    """To scan it for each piece would be quadratic: minutes for a megabyte."""
    _characters.cache_clear()
    result = translate("a.md", "Hello **big** world and [x](y). " * 50)
    assert result.count("**BIG** WORLD") == 50
    assert _characters.cache_info().misses == 1


def test_another_reader_finds_the_same_cues_in_srt() -> None:
    assert texts("a.srt", SRT) == ["Hello there, my old friend!", "How are you?", "Fine."]
    result = translate("a.srt", SRT)
    before, after = pysubs2.SSAFile.from_string(SRT), pysubs2.SSAFile.from_string(result)
    assert [(cue.start, cue.end) for cue in after] == [(cue.start, cue.end) for cue in before]
    assert [cue.plaintext for cue in after] == [cue.plaintext.upper() for cue in before]
    assert "<i>HELLO THERE,</i>\nMY OLD FRIEND!" in result and "- {\\an8}FINE." in result


CUES = "1\n00:00:01,000 --> 00:00:02,000\n%s\n\n2\n00:00:03,000 --> 00:00:04,000\nLast.\n"


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.srt", CUES % "First.\n\nSecond.", ["First.", "Second.", "Last."]),
        ("a.srt", CUES % "\nSecond.", ["Second.", "Last."]),
        ("a.srt", CUES % "First.\n \nIn\n1999\n\n1999.", ["First.", "In 1999", "1999.", "Last."]),
        ("a.srt", (CUES % "A.\n\n- B?\n- C.").replace("\n", "\r\n"), ["A.", "B?", "C.", "Last."]),
        ("a.srt", CUES.replace("\n\n2", "\n2") % "First.", ["First.", "Last."]),
        ("a.srt", CUES.replace("2\n0", "End\n0") % "First.", ["First.", "Last."]),
        ("a.srt", CUES.replace("\n\n2\n", "\n") % "First.", ["First.", "Last."]),
        ("a.srt", "A title\n\n" + CUES % "First.", ["First.", "Last."]),
        ("a.vtt", "WEBVTT\n\n" + (CUES % "First.\n\nNOTE Second").replace(",", "."), ["First.", "Last."]),
        ("a.vtt", "WEBVTT\n\nname\n" + (CUES % "First.\n\nname").replace(",", "."), ["First.", "Last."]),
    ],
)  # fmt: skip
def test_text_after_an_empty_line_belongs_to_a_cue_of_srt(name: str, content: str, expected: list[str]) -> None:
    assert texts(name, content) == expected
    assert identity(name, content.encode()) == content.encode()


def test_vtt_keeps_notes_styles_and_settings() -> None:
    result = translate("a.vtt", VTT, {"Tom & Jerry": "Jerry & <Tom>"})
    assert result == VTT.replace("Tom &amp; <c.loud>Jerry</c>", "<c.loud>Jerry</c> &amp; &lt;Tom>")


def test_json_keeps_keys_numbers_and_format() -> None:
    wanted = '{"title": "A DOG", "n": 1.50, "list": ["ONE\\n", {"key": "TWO \\"X\\" "}], "url": "", "e": "\\u00c4HM"}\n'
    assert translate("a.json", JSON) == wanted


def test_po_translates_entries_without_a_translation() -> None:
    document = open_document("a.po", PO.encode())
    assert [segment.text for segment in document.segments] == ["Open", "New %d", "%d dog", "%d dogs"]
    result = polib.pofile("\n" + translate("a.po", PO))
    entries = {entry.msgid: entry for entry in result}
    assert entries["Open\n"].msgstr == "OPEN\n" and entries["Open\n"].msgctxt == "menu"
    assert entries["Done"].msgstr == "Fertig"
    assert entries["New %d"].msgstr == "NEW %D" and entries["New %d"].flags == ["c-format"]
    assert entries["%d dog"].msgstr_plural == {0: "%D DOG", 1: "%D DOGS", 2: "%D DOGS"}
    assert entries["Gone"].obsolete and result.header == "A comment" and entries["Open\n"].occurrences == [("a.c", "1")]


def test_po_can_retranslate_and_flag_entries() -> None:
    result = polib.pofile("\n" + translate("a.po", PO, options=DocumentOptions(retranslate=True, mark_fuzzy=True)))
    assert {entry.msgid: entry for entry in result}["Done"].msgstr == "DONE"
    assert all(entry.fuzzy for entry in result if not entry.obsolete)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_po_keeps_every_line_that_is_no_translation(newline: str) -> None:
    source = """#    msgid "in a comment"
#, fuzzy
msgid ""
msgstr ""
"Plural-Forms: nplurals=3; plural=(n == 0 || n == 1) ? 0 : n != 0 && n % "
"1000000 == 0 ? 1 : 2;\\n"

#. note
#: a.py:1
#, c-format, fuzzy
#| msgid "An old "
#| "dog"
msgctxt "menu"
msgid ""
"A %d dog\\n"
"sleeps"
msgstr "alt\\n"

msgid "dog"
msgid_plural "dogs"
msgstr[0] ""

msgid "Cat" "s"
msgstr "Katzen"

#~ msgid "Gone"
#~ msgstr "Weg"
"""
    written = source.replace('#, c-format, fuzzy\n#| msgid "An old "\n#| "dog"\n', "#, c-format\n")
    written = written.replace('msgstr "alt\\n"', 'msgstr ""\n"A %D DOG\\n"\n"SLEEPS"')
    written = written.replace('msgstr[0] ""', 'msgstr[0] "DOG"\nmsgstr[1] "DOGS"\nmsgstr[2] "DOGS"')
    assert translate("a.po", source.replace("\n", newline)) == written.replace("\n", newline)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ('msgid "a"\nmsgid "b"\n', "line 2: the entry before this line has no msgstr"),
        ('msgid "a" b"\nmsgstr ""\n', 'line 1: \'"a" b"\' is not a string in quotes'),
        ('"a"\n', "line 1: '\"a\"' is neither a keyword, a string nor a comment"),
        ("# only a comment\n", "it contains no entry; accepted: at least one msgid"),
    ],
)
def test_a_damaged_po_is_refused_with_its_line(content: str, problem: str) -> None:
    with pytest.raises(DocumentError, match=re.escape(f"a.po is not a .po file: {problem}")):
        open_document("a.po", content.encode())


def test_a_po_whose_content_is_a_path_opens_no_file() -> None:
    with pytest.raises(DocumentError, match=r"line 1: .* is neither a keyword, a string nor a comment"):
        open_document("a.po", __file__.encode())


def test_xliff_1_writes_targets_only() -> None:
    assert texts("a.xlf", XLIFF_1) == ["The big dog", "New", "A.", "B."]
    result = translate("a.xlf", XLIFF_1, {"A": "Ä"})
    assert '</source>\n    <target>THE <g id="1">BIG</g> DOG<x id="2"/></target>' in result
    assert '<target state="final">Fertig</target>' in result and "<target>Anders</target>" in result
    assert '<target state="translated">NEW</target>' in result
    assert '<target><mrk mtype="seg" mid="1">A.</mrk> <mrk mtype="seg" mid="2">B.</mrk></target>' in result
    assert "<source>Kept</source></trans-unit>" in result


def test_xliff_2_writes_targets_only() -> None:
    assert texts("a.xliff", XLIFF_2) == ["Press \U000f0000 & go"]
    target = '<target>PRESS <ph id="1" disp="x"/> &amp; <pc id="2">GO</pc></target>'
    result = translate("a.xliff", XLIFF_2)
    assert result == XLIFF_2.replace("</source>", "</source>" + target).replace('"initial"', '"translated"')


@pytest.mark.parametrize("source", [XLIFF_1, XLIFF_2])
def test_rendered_xliff_is_stable(source: str) -> None:
    once = identity("a.xlf", source.encode())
    assert identity("a.xlf", once) == once
    document = open_document("a.xlf", once, DocumentOptions(retranslate=True))
    assert document.render([TranslatedSegment(segment.text) for segment in document.segments]) != b""


def word_file() -> bytes:
    document = docx.Document()
    document.add_heading("The title", 1)
    paragraph = document.add_paragraph("A ")
    paragraph.add_run("big").bold = True
    paragraph.add_run(" dog, ")
    paragraph.add_run("ran").italic = True
    paragraph.add_run(" away.")
    document.add_paragraph("Name:\tAnn")
    table = document.add_table(1, 2)
    table.cell(0, 0).text = "Left"
    table.cell(0, 1).text = "Right"
    document.sections[0].header.paragraphs[0].text = "The header"
    document.sections[0].footer.paragraphs[0].text = "12"
    linked = document.add_paragraph("See ")
    link = OxmlElement("w:hyperlink")
    link.set(qn("w:anchor"), "there")
    link.append(parse_xml(f'<w:r xmlns:w="{linked._p.nsmap["w"]}"><w:t>this page</w:t></w:r>'))
    linked._p.append(link)
    linked.add_run(" now")
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def runs(content: bytes, start: str) -> list[tuple[str, bool | None, bool | None]]:
    document = docx.Document(io.BytesIO(content))
    paragraph = next(p for p in document.paragraphs if p.text.startswith(start))
    return [(run.text, run.bold, run.italic) for run in paragraph.runs]


def test_word_is_translated_everywhere_and_keeps_its_formatting() -> None:
    content = word_file()
    document = open_document("a.docx", content)
    segments = [segment.text for segment in document.segments]
    expected = ["The title", "A big dog, ran away.", "Name:", "Ann", "Left", "Right", "See this page now"]
    assert sorted(segments) == sorted([*expected, "The header", "12"])
    result = document.render([TranslatedSegment(text.upper()) for text in segments])
    assert runs(result, "A BIG") == [
        ("A ", None, None),
        ("BIG", True, None),
        (" DOG, ", None, None),
        ("RAN", None, True),
        (" AWAY.", None, None),
    ]
    after = docx.Document(io.BytesIO(result))
    assert [cell.text for cell in after.tables[0].rows[0].cells] == ["LEFT", "RIGHT"]
    assert after.sections[0].header.paragraphs[0].text == "THE HEADER"
    assert after.sections[0].footer.paragraphs[0].text == "12"
    assert "NAME:\tANN" in [paragraph.text for paragraph in after.paragraphs]
    linked = next(paragraph for paragraph in after.paragraphs if paragraph.text.startswith("SEE"))
    assert [(link.text, link.fragment) for link in linked.hyperlinks] == [("THIS PAGE", "there")]
    assert after.paragraphs[0].style is not None and after.paragraphs[0].style.name == "Heading 1"


def test_word_follows_the_alignment() -> None:
    document = open_document("a.docx", word_file())
    translation = "Weg lief ein großer Hund."
    links = (((2, 5), (13, 19)), ((11, 14), (4, 8)))
    texts = [segment.text for segment in document.segments]
    translations = [TranslatedSegment(translation, links) if "dog" in t else TranslatedSegment(t) for t in texts]
    bold = [(text, b, i) for text, b, i in runs(document.render(translations), "Weg") if b or i]
    assert bold == [("lief", None, True), ("großer", True, None)]


TEXT_BOX = """<w:r xmlns:w="{w}" xmlns:v="urn:schemas-microsoft-com:vml"><w:rPr><w:b/></w:rPr>
<w:pict><v:shape><v:textbox>
<w:txbxContent><w:p><w:r><w:t>In a box.</w:t></w:r></w:p><w:p><w:r><w:t>Below.</w:t></w:r></w:p></w:txbxContent>
</v:textbox></v:shape></w:pict></w:r>"""
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


def test_the_value_of_a_field_is_part_of_its_sentence() -> None:
    document = docx.Document()
    paragraph = document.add_paragraph("Page ")
    field = '<w:fldSimple xmlns:w="{}" w:instr="PAGE"><w:r><w:t>7</w:t></w:r></w:fldSimple>'
    paragraph._p.append(parse_xml(field.format(qn("w:p")[1:].partition("}")[0])))
    paragraph.add_run(" of the book")
    out = io.BytesIO()
    document.save(out)
    parsed = open_document("a.docx", out.getvalue())
    (segment,) = parsed.segments
    assert (segment.text, segment.kept) == ("Page 7 of the book", ((5, 6),))
    links = (((0, 4), (0, 5)), ((5, 6), (6, 7)), ((7, 18), (8, 17)))
    rendered = docx.Document(io.BytesIO(parsed.render([TranslatedSegment("Seite 7 des Buchs", links)])))
    (paragraph,) = rendered.paragraphs
    assert [child.tag.rpartition("}")[2] for child in paragraph._p] == ["r", "fldSimple", "r"]
    assert [run.text for run in paragraph.runs] == ["Seite ", " des Buchs"]


def test_notes_of_word_are_translated() -> None:
    parts = {
        "_rels/.rels": '<Relationships xmlns="{package}/relationships">'
        '<Relationship Id="r1" Type="{office}/officeDocument" Target="word/document.xml"/></Relationships>',
        "[Content_Types].xml": '<Types xmlns="{package}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Override PartName="/word/document.xml" ContentType="{type}.document.main+xml"/>'
        '<Override PartName="/word/footnotes.xml" ContentType="{type}.footnotes+xml"/></Types>',
        "word/_rels/document.xml.rels": '<Relationships xmlns="{package}/relationships">'
        '<Relationship Id="r2" Type="{office}/footnotes" Target="footnotes.xml"/></Relationships>',
        "word/document.xml": '<w:document xmlns:w="{word}"><w:body><w:p><w:r><w:t>A dog</w:t></w:r><w:r>'
        '<w:footnoteReference w:id="2"/></w:r></w:p></w:body></w:document>',
        "word/footnotes.xml": '<w:footnotes xmlns:w="{word}"><w:footnote w:id="2"><w:p><w:r><w:footnoteRef/></w:r>'
        "<w:r><w:t> It runs.</w:t></w:r></w:p></w:footnote></w:footnotes>",
    }
    names = {
        "package": "http://schemas.openxmlformats.org/package/2006",
        "office": "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
        "word": qn("w:p")[1:].partition("}")[0],
        "type": "application/vnd.openxmlformats-officedocument.wordprocessingml",
    }
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, re.sub(r"{(\w+)}", lambda match: names[match[1]], part))
    document = open_document("a.docx", out.getvalue())
    assert [segment.text for segment in document.segments] == ["A dog", "It runs."]
    rendered = zipfile.ZipFile(io.BytesIO(document.render([TranslatedSegment("EINS"), TranslatedSegment("ZWEI")])))
    assert "ZWEI" in rendered.read("word/footnotes.xml").decode()
    assert "<w:footnoteReference" in rendered.read("word/document.xml").decode()


def illustrated() -> bytes:
    """Return a document with a picture alone, one within a sentence, and a text box within another."""
    document = docx.Document()
    document.add_paragraph("Before.")
    document.add_paragraph().add_run().add_picture(io.BytesIO(PIXEL))
    paragraph = document.add_paragraph("A picture ")
    paragraph.add_run().add_picture(io.BytesIO(PIXEL))
    paragraph.add_run(" of a dog.")
    boxed = document.add_paragraph("See the box.")
    boxed._p.append(parse_xml(TEXT_BOX.format(w=boxed._p.nsmap["w"])))
    document.add_paragraph("After.")
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


@pytest.mark.parametrize("write", [str, str.upper], ids=["unchanged", "changed"])
def test_word_keeps_pictures_and_text_boxes_and_reads_the_text_after_them(write: Callable[[str], str]) -> None:
    document = open_document("a.docx", illustrated())
    segments = [segment.text for segment in document.segments]
    expected = ["Before.", "A picture of a dog.", "See the box.", "In a box.", "Below.", "After."]
    assert [" ".join(text.split()) for text in segments] == expected
    result = document.render([TranslatedSegment(write(text)) for text in segments])
    after = docx.Document(io.BytesIO(result))
    pictures = [len(list(paragraph._p.iter(qn("w:drawing")))) for paragraph in after.paragraphs]
    assert pictures == [0, 1, 1, 0, 0]
    text = "".join(element.text or "" for element in after.element.body.iter(qn("w:t")))
    assert text == write("Before.A picture  of a dog.See the box.In a box.Below.After.")
    (box,) = after.element.body.iter(qn("w:txbxContent"))
    assert box.getparent().getparent().getparent().getparent().find(qn("w:rPr")) is not None, (
        "the text box keeps the format of its run"
    )


def test_unchanged_word_keeps_its_content() -> None:
    before, after = (zipfile.ZipFile(io.BytesIO(data)) for data in (word_file(), identity("a.docx", word_file())))
    assert before.read("word/document.xml") == after.read("word/document.xml")


def test_word_copies_the_parts_that_do_not_change() -> None:
    theme = b"<?xml version='1.0'?>\n<a  b='1'/>"
    indented = Package("a.docx", word_file(), DocumentOptions()).rewrite(
        lambda name: theme if "theme" in name else None
    )
    document = open_document("a.docx", indented)
    rendered = document.render([TranslatedSegment(segment.text.upper()) for segment in document.segments])
    before, after = (zipfile.ZipFile(io.BytesIO(data)) for data in (indented, rendered))
    changed = {name for name in before.namelist() if before.read(name) != after.read(name)}
    assert before.namelist() == after.namelist()
    assert "word/document.xml" in changed and changed <= {"word/document.xml", "word/header1.xml", "word/footer1.xml"}


BOMB = io.BytesIO()
with zipfile.ZipFile(BOMB, "w", zipfile.ZIP_DEFLATED) as _archive:
    _archive.writestr("word/document.xml", b"\0" * 3_000_000)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.doc", b"", r"file extension '.doc'.*accepted: .arb, .csv"),
        ("a.docs", b"", r"did you mean .docx"),
        ("none", b"", "accepted: .arb"),
        ("a.txt", b"x" * 2_000_001, "2000001 bytes; accepted: at most 2000000"),
        ("a.txt", b"a\n" * 2000, "too many texts.*; accepted: at most 1,000"),
        ("a.txt", bytes(range(128, 256)), "not text in UTF-8 at byte 0; accepted: UTF-8, UTF-16 or UTF-32, or another"),
        ("a.txt", b"The dog\0 sleeps.\n", "not text: character 8 is NUL"),
        ("a.strings", b'"a" = "dog\0s";', "not text: character 11 is NUL"),
        ("a.json", b'{"a": }', "line 1, column 7"),
        ("a.json", b"[" * 100_000, "nested too deeply"),
        ("a.srt", b"no times here", "no cue"),
        ("a.po", b'msgid "a\nmsgstr', "not a .po file"),
        ("a.xlf", b"<html>", "not XLIFF"),
        ("a.docx", b"PK rubbish", "not a .docx file"),
        ("a.docx", BOMB.getvalue(), "would unpack to 3000000 bytes"),
    ],
)
def test_errors_name_the_problem(name: str, content: bytes, problem: str) -> None:
    options = DocumentOptions(max_bytes=2_000_000, max_unpacked_bytes=2_500_000, max_segments=1000)
    with pytest.raises(DocumentError, match=problem):
        open_document(name, content, options)


def test_entities_of_word_are_not_expanded() -> None:
    source = zipfile.ZipFile(io.BytesIO(word_file()))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for part in source.namelist():
            data = source.read(part)
            if part == "word/document.xml":
                data = data.replace(b"?>", b'?><!DOCTYPE d [<!ENTITY a "AAAA"><!ENTITY b "&a;&a;">]>', 1)
                data = data.replace(b"The title", b"The &b; title")
            archive.writestr(part, data)
    document = open_document("a.docx", out.getvalue())
    assert not any("AAAA" in segment.text for segment in document.segments)


def test_every_suffix_is_tested() -> None:
    tried = {*EXACT, "a.po", "a.pot", "a.xlf", "a.xliff", "a.docx", "a.htm", "a.xhtml", "a.markdown"}
    tried |= {"a.epub", "a.odt", "a.ods", "a.odp"}  # test_archives.py
    tried |= {"a.pptx", "a.xlsx"}  # test_office.py
    tried |= {"a.ftl", "a.pdf", "a.tmx"}  # test_fluent.py, test_pdf.py, test_tmx.py
    tried |= {"a.mdx", "a.mqxliff", "a.mxliff", "a.sdlxliff", "a.stringsdict"}  # as .md, .xlf and .resx
    tried |= {"a.arb", "a.csv", "a.properties", "a.resx", "a.strings", "a.tsv", "a.yaml", "a.yml"}  # test_resources.py
    assert {"." + name.split(".")[1] for name in tried} == set(SUFFIXES)
