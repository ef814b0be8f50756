"""Documents: untranslated content is preserved, and translations are written in the right places."""

import io
import json
import re
from contextlib import suppress
from pathlib import Path

import docx
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mt.errors import DocumentError
from mt.text.documents import open_document
from mt.text.markup import TranslatedSegment
from tests.text.changes import before_and_after
from tests.text.documents import archive, members_of, render, texts, translated
from tests.text.test_word_runs import BOLD, run, word_file

ITALIC = "<w:rPr><w:i/></w:rPr>"
BRACKETS = str.maketrans("", "", "⟨⟩")
CATALOGUES = Path(__file__).parent / "catalogues"

CHARACTERS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
PIECES = [
    *("# ", "> ", "- ", "1. ", "*", "`", "[a](b)", "\n", "\r\n", "word", "|", "    ", "~~", "<b>", "\\", "\t", "&amp;")
]


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.xml"])
@given(CHARACTERS | st.lists(st.sampled_from(PIECES)).map("".join))
def test_any_unchanged_text_is_rendered_byte_for_byte(name: str, text: str) -> None:
    content = text.encode("utf-8", "replace")
    with suppress(DocumentError):  # for example, the text is all code
        assert render(name, content) == content


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
    assert render("a.json", content) == content
    new = json.loads(render("a.json", content, lambda _: '„x" \\'))
    assert type(new) is type(value)


def test_columns_of_text_are_texts() -> None:
    content = "a dog     12   two cats\nname\tA house.  It is big.\n"
    assert texts("a.txt", content) == ["a dog", "12", "two cats", "name", "A house.  It is big."]
    assert translated("a.txt", content) == content.upper()


def test_a_picture_in_a_sentence_of_markdown_stands_for_a_word() -> None:
    alt, text = texts("a.md", "See ![a](b) and <img> now.\n")
    assert (alt, re.sub("[\U000f0000-\U000f0fff]", "*", text)) == ("a", "See * and * now.")


WRAPPED = (
    "The old house stands at the end of the long street in\n",
    "Berlin and my brother has lived there since the year\n",
    "Germany was divided.\n",
)


@pytest.mark.parametrize(
    ("content", "segments"),
    [
        ("".join(WRAPPED), "".join(WRAPPED).replace("\n", " ").strip()),
        ("Гулял старый пёс по большому\r\nтёмному лесу.\r\n", "Гулял старый пёс по большому|тёмному лесу."),
        (
            "we see that the old dog of the old neighbour in this\nold house is\ntired",
            "we see that the old dog of the old neighbour in this old house is|tired",
        ),
        ("> The dog of the old neighbour is\n> in it\n>> and\n", "> The dog of the old neighbour is in it|>> and"),
        ("- The dog of the old neighbour is\n- in the house\n", "- The dog of the old neighbour is|- in the house"),
        ("The dog of the neighbour sleeps.\nit is old\n", "The dog of the neighbour sleeps.|it is old"),
        ("The old dog of the neighbour\nhttps://a.org\n", "The old dog of the neighbour|https://a.org"),
    ],
)
def test_lines_of_a_wrapped_sentence_are_one_text(content: str, segments: str) -> None:
    assert "|".join(texts("a.txt", content)) == segments
    written = translated("a.txt", content)
    assert written.split() == content.upper().split() and written.count("\n") == content.count("\n")


TRANSLATED: dict[str, list[str]] = {
    "a.md": [
        "|⟨a⟩|⟨b⟩|\n|-|-|\n|⟨one⟩ \\| ⟨two⟩|⟨three⟩ `a \\| b`|\n",
        "A ⟨[dog]→[DOG][dog]⟩ ⟨ran⟩[^1].\n\n[dog]: u\n[^1]: ⟨u→U⟩\n",
        "⟨One⟩.\\\n⟨Two⟩.  \n⟨Three⟩.\n",
        "⟨**One** dog⟩  \n⟨Two⟩<br>⟨- x⟩\n",
        "⟨bread⟩  \n*⟨milk⟩*\\\n⟨tea⟩<br>⟨beer⟩\n",
        "> ⟨One.\n> Two.→ONE. TWO.⟩   \n> ⟨Three⟩.  \n> ⟨Four⟩.\n",
        "> [!NOTE]\n> ⟨one⟩\n> [!TIP]- ⟨two⟩\n> ⟨three⟩\n",
        "::::{note} ⟨one⟩\n:class: x\n::::\n",
        '!!! note "⟨one⟩"\n    ⟨two⟩\n\n    - ⟨three⟩\n\n=== "⟨four⟩"\n\n    ```\n    five\n    ```\n⟨six⟩\n',
        "# ⟨one⟩ {#a .b} ##\n⟨two⟩ {: .c}\n{: .d}\n⟨three⟩ {.⟨e⟩}\n",
        "⟨one⟩ $a*b*c$ ⟨two⟩ \\(d\\) ⟨for⟩ $5 ⟨or⟩ $6\n",
        "⟨one⟩\n$$\na_b_c\n$$\n⟨two⟩\n\\[ d e \\]\n",
        "{{< tip >}}\n⟨one⟩ {{< ref a >}} ⟨two⟩\n{{< /tip >}}\n",
        "{{#each a}}\n- ⟨one⟩\n{{/each}}\n<% if b > c %>\n⟨two⟩\n<% end %>\n",
        "import A from 'a';\nexport const b = 1\n\n# ⟨c⟩\n",
        "```\n> [!NOTE]\n:::tip one\n```\n⟨two⟩\n",
        "⟨one⟩ ==⟨two⟩== ++⟨three⟩++ C++ ^[⟨four⟩]\n",
        "````{note}\n```{tip} ⟨one⟩\n⟨two⟩\n```\n```py\nthree\n```\n````\n⟨four⟩\n",
        "{% highlight py %}\none\n{% endhighlight %}\n⟨two⟩\n",
        "export const a = {\n  b: 'c d'\n}\n\n{/* e */}\n# ⟨f⟩\n",
        "<Card\n  title='x'\n>\n⟨one⟩\n</Card>\n",
        "![⟨one⟩](u){ .left }\n\n[⟨two⟩](u){ .a b }\n",
        '![⟨one⟩](u "⟨t⟩")\n\n⟨![two]→![TWO][two]⟩ ⟨![Two][]→![TWO][Two]⟩\n\n[two]: u "⟨t⟩"\n',
        "⟨See⟩ ![⟨a *b* c→A B C⟩](u) ⟨now⟩ [⟨one⟩](u '⟨it\\'s \"a\"→IT\\'S \"A\"⟩') [⟨two⟩](<u> (⟨a b⟩)).\n",
        '| ⟨See⟩ ![⟨a \\| b⟩](u "⟨c \\| d⟩") ⟨now⟩ |\n|-|\n',
        '[![⟨Build⟩](u)](v "⟨a⟩ 1") ![⟨two⟩](v)\n\n![{{< a >}}](u)\n',
        '<Tabs>\n<TabItem value="a" label="⟨the dog⟩">⟨It is.⟩</TabItem>\n</Tabs>\n',
        '⟨See⟩ <img src="a" alt="⟨a dog⟩"> ⟨and⟩ <a title="⟨a⟩" href="b">⟨two⟩</a>.\n',
        "---\ntitle: ⟨one→ONE⟩\ntags: [two]\nseo:\n  description: >\n    ⟨a\n    b→A B⟩\n---\n",
    ],
    "a.html": [
        '<hr title="⟨x⟩"><p>⟨bread⟩<br>⟨milk⟩<br/>\n ⟨2 dogs⟩</p>',
        '<hr title="⟨x⟩"><meta name="description" content="A ⟨dog⟩">',
        '<hr title="⟨x⟩"><META PROPERTY="og:title" CONTENT="A ⟨dog⟩">',
        '<hr title="⟨x⟩"><meta name="twitter:description" content="⟨a & b→A &amp; B⟩">',
        '<hr title="⟨x⟩"><meta name="twitter:card" content="summary">',
        '<hr title="⟨x⟩"><meta property="og:url" content="https://a.org/dog">',
        '<hr title="⟨x⟩"><meta name="viewport" content="width=device-width">',
        '<hr title="⟨x⟩"><input type=submit value="⟨Send it⟩">',
        "<hr title=\"⟨x⟩\"><input value='⟨Neu laden⟩' type='RESET'>",
        '<input type="button" value=⟨Да→"ДА"⟩ title="⟨да⟩">',
        '<hr title="⟨x⟩"><input type="hidden" value="a dog" title="a dog">',
        '<hr title="⟨x⟩"><input type="text" value="a dog">',
        '<hr title="⟨x⟩"><select><optgroup label="⟨The animals⟩"><option value="dog" label="⟨the dog⟩">',
        '<hr title="⟨x⟩"><track label="⟨English text⟩" src="a">',
        '<hr title="⟨x⟩"><table><th abbr="⟨No⟩.">',
        '<hr title="⟨x⟩"><textarea placeholder="⟨Your text⟩">kept</textarea>',
        '<hr title="⟨x⟩"><p>A <svg aria-label="⟨a tree⟩"><path d="M0"/></svg>',
        '<hr title="⟨x⟩"><div aria-description="⟨zwei⟩ ⟨Hunde⟩"></div>',
        "<iframe srcdoc=\"⟨<→&lt;⟩p title='⟨x⟩'>⟨A⟩ &quot;⟨dog⟩&quot; &amp;amp; ⟨me<→ME&lt;⟩/p>\"></iframe>",
        '<hr title="⟨x⟩"><textarea translate="no" placeholder="a dog"></textarea>',
        '<hr title="⟨x⟩"><style title="a dog"></style>',
        "<p>⟨a⟩ &lt;⟨script⟩&gt; ⟨b⟩</p>",
        "⟨a⟩ &amp;⟨lt⟩;⟨b⟩&amp;⟨gt⟩; &#60;⟨img onerror⟩=⟨c⟩&#62;",
        "<!-- a -->\n<p>⟨one⟩</p>\n\n<script>a < b</script>",
        "<p>⟨a⟩&nbsp;⟨b⟩ &amp; ⟨c⟩ > ⟨d⟩ &mdash; ⟨e⟩</p>",
        "<p>\n  ⟨one⟩\n</p>\n",
        "<IMG ALT='⟨it&#39;s &quot;a&quot; <b→IT&#39;S \"A\" &lt;B⟩>' SRC='x'>",
        '<input ⟨placeholder=name>→placeholder="NAME">⟩',
        "<a href='x?a=1&b=2'>⟨one⟩</a><!-- <b> -->",
        "<b>⟨one⟩ <i>⟨two⟩</b> ⟨three⟩</i>",
        "<p>⟨one⟩ <b translate=no>ACME &amp; Co</b></p>",
        "<p>⟨The dog⟩ <del>⟨sleeps⟩</del><ins>⟨eats⟩</ins></p>",
        "{% if a < b %}⟨one⟩{% else %}⟨two⟩ ⟨&→&amp;⟩ {% end %}",
        '<i {{#if a > "b"}}lang="x"{{/if}}>⟨one⟩</i>',
        "<p>{{\n  A <\n b }} <% IF A %>⟨one⟩</p>",
        "<p>⟨he is there⟩<sup>[⟨who⟩?]</sup>.</p>",
        "<p>⟨a⟩ <svg><title>⟨b⟩</title><text><tspan>⟨c⟩</tspan> ⟨d⟩</text><style>e</style></svg> ⟨f⟩<svg><path/></svg>",
        "<p><ruby>犬<rp>(</rp><rt>inu</rt><rp>)</rp></ruby> ⟨Yes⟩</p>",
    ],
    "a.yaml": [
        "a: &x ⟨The dog⟩\nb: *x\n",
        'a: &x-1_y "⟨The dog⟩"\n',
        "a: !!str ⟨The dog⟩\n",
        "a: ! ⟨The dog⟩\n",
        "a: !!str &x ⟨The dog⟩\n",
        "a: &x # why\n  ⟨The dog⟩\n",
        '[&x ⟨The dog⟩, *x, &y "⟨The dog⟩"]\n',
        "a: !!str >-\n  ⟨The\n  dog→THE DOG⟩\n",
        "a: &x |2+\n    ⟨The dog⟩\n\n",
        "a: &x\n  b: ⟨The dog⟩\nc:\n  <<: *x\n",
        "&k key: &v ⟨The dog⟩\n*k : *v\n",
        "--- &x ⟨The dog⟩\n",
        "a: !ruby/sym the_dog\nb: !Ref Dog\n",
    ],
    "a.xml": [
        "<a><b>true</b><b>⟨Yes⟩</b></a>",
        "<rss><sy:updatePeriod>daily</sy:updatePeriod><guid>A dog</guid><title>⟨Yes⟩</title></rss>",
        "<feed xmlns='a'><id>A dog</id><author><name>A Cat</name></author><title>⟨Yes⟩</title></feed>",
        "<a><programlisting>int x;</programlisting><b>⟨Yes⟩</b></a>",
        "<a><db:screen>$ ls</db:screen><screen><b>⟨Yes⟩</b></screen><preformat>a <i>b</i></preformat></a>",
    ],
    "a.csv": ["⟨Yes⟩,null\n"],
    "a.vtt": ["WEBVTT\n\n00:01.000 --> 00:02.000\n<ruby>犬<rt>inu</rt></ruby> ⟨Yes⟩\n"],
}
"""Files in which `⟨a⟩` is translated into capitals, and `⟨a→b⟩` is written in another way."""


@pytest.mark.parametrize(("name", "marked"), [(name, row) for name, rows in TRANSLATED.items() for row in rows])
def test_translated_parts(name: str, marked: str) -> None:
    source, written = before_and_after(marked)
    source = source.translate(BRACKETS)
    written = re.sub("⟨(.*?)⟩", lambda part: part[1].upper(), written, flags=re.DOTALL)
    assert translated(name, source) == written
    assert "→" in marked or translated(name, source, str) == source
    if name == "a.yaml":
        assert len(list(yaml.compose_all(source))) == len(list(yaml.compose_all(written)))


def test_markdown_escapes_what_would_be_markup() -> None:
    assert translated("a.md", "one\n", lambda _: "1. a*b_c") == "1\\. a\\*b\\_c\n"
    assert translated("a.md", "a_b \\* c\n", lambda _: "x_y * z") == "x_y \\* z\n"


def test_po_translates_fuzzy_entries() -> None:
    source = 'msgid "Done"\nmsgstr "Fertig"\n\n#, fuzzy, c-format\n#| msgid "Old %d"\nmsgid "New %d"\nmsgstr "Alt"\n'
    written = translated("a.po", source)
    assert 'msgstr "Fertig"' in written and written.endswith('#, c-format\nmsgid "New %d"\nmsgstr "NEW %D"\n')


def test_fluent_keeps_placeables_and_escapes_translations() -> None:
    (segment,) = open_document("a.ftl", b"a = Hello, { $name }!\n").segments
    assert [segment.text[slice(*kept)] for kept in segment.kept] == ["{ $name }"]
    document = open_document("a.ftl", b"a =\n    One\n\n    Two\n\n    Three\n")
    written = document.render([TranslatedSegment("* {x}\n y"), TranslatedSegment("[z]"), TranslatedSegment(".w")])
    assert written.decode() == 'a =\n    { "*" } { "{" }x{ "}" }  y\n\n    { "[" }z]\n\n    { "." }w\n'


CUES = "1\n00:00:01,000 --> 00:00:02,000\n%s\n\n2\n00:00:03,000 --> 00:00:04,000\nLast.\n"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_po_keeps_every_line_that_is_no_translation(newline: str) -> None:
    source, written = ((CATALOGUES / f"{name}.po").read_text(encoding="utf-8") for name in ("source", "translated"))
    assert translated("a.po", source.replace("\n", newline)) == written.replace("\n", newline)


def test_word_follows_the_alignment() -> None:
    paragraph = run("A ") + run("big", BOLD) + run(" dog, ") + run("ran", ITALIC) + run(" away.")
    document = open_document("a.docx", word_file(f"<w:p>{paragraph}</w:p>"))
    links = (((2, 5), (13, 19)), ((11, 14), (4, 8)))
    written = docx.Document(io.BytesIO(document.render([TranslatedSegment("Weg lief ein großer Hund.", links)])))
    runs = [(run.text, run.bold, run.italic) for run in written.paragraphs[0].runs]
    assert [run for run in runs if run[1] or run[2]] == [("lief", None, True), ("großer", True, None)]


def test_entities_of_word_are_not_expanded() -> None:
    members = members_of(word_file(f"<w:p>{run('The title')}</w:p>"))
    declared = '<!DOCTYPE d [<!ENTITY a "AAAA"><!ENTITY b "&a;&a;">]>' + members["word/document.xml"]
    members["word/document.xml"] = declared.replace("The title", "The &b; title")
    assert not any("AAAA" in text for text in texts("a.docx", archive(members)))


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.srt", CUES % "First.\n\nSecond.", ["First.", "Second.", "Last."]),
        ("a.srt", CUES % r"A.\NB\Nc.", ["A.", "B c.", "Last."]),
        ("a.srt", CUES % "A\nB C: D\n(E f)\ng\n♪ h ♪\n[i] j\nK", "A;B C: D;(E f);g;♪ h ♪;[i] j K;Last.".split(";")),
        ("a.srt", CUES % "First.\n \nIn\n1999\n\n1999.", ["First.", "In 1999", "1999.", "Last."]),
        ("a.srt", (CUES % "A.\n\n- B?\n- C.").replace("\n", "\r\n"), ["A.", "B?", "C.", "Last."]),
        ("a.srt", CUES.replace("\n\n2", "\n2") % "First.", ["First.", "Last."]),
        ("a.srt", CUES.replace("\n\n2\n", "\n") % "First.", ["First.", "Last."]),
        ("a.vtt", "WEBVTT\n\n" + (CUES % "First.\n\nNOTE Second").replace(",", "."), ["First.", "Last."]),
        ("a.vtt", "WEBVTT\n\nname\n" + (CUES % "First.\n\nname").replace(",", "."), ["First.", "Last."]),
    ],
)  # fmt: skip
def test_text_after_an_empty_line_belongs_to_a_cue_of_srt(name: str, content: str, expected: list[str]) -> None:
    assert texts(name, content) == expected
    assert translated(name, content, str) == content
