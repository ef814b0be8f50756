import re

import pytest

from mt.text.markup import strings
from mt.text.markup.strings import (
    find_tags,
    has_unusual_marks,
    keeps_marks,
    read_marked_sentence,
    read_marks,
    write_marks,
)
from mt.text.segment import LONGEST_SENTENCE

WITHOUT_TAGS = [
    *("a < b and c > d", "I <3 you", "<anna@example.org>", "x<y and y>z", "List<String> x", "vector<p>", "a<b>c"),
    *("Hello <name>!", "<your name>", "if (a<b && c>d)", "<", ">", "<>", "</b>", "<b>", "Map<String, List<Integer>>"),
    *("1 <= 2", "->", "<-", "<<EOF", "\\<b", "&lt;b&gt;x", "a &lt; b &gt; c", "<https://x.org/>", "a <b and c> d"),
    "<%= x %>",
]
WITHOUT_MARKS = [
    *("2 * 3 * 4", "SELECT *, a.* FROM b", "a*b*c", "f(*a, **b)", "** a **", "a[1](x)", "*true* or *false*"),
    *("~~a~~ it", "an _id_ of a", "the __init__ of it", "a_b and c_d e", "a[i] and b[/i]", r"\*a\*"),
    *("[open it] and [NOTE] [1] a[b c]", "[php]a[/php]", "* one * two"),
]


@pytest.mark.parametrize("text", WITHOUT_TAGS)
def test_texts_without_tags(text: str) -> None:
    assert find_tags(text) == []
    assert read_marked_sentence(text, ()) is None


@pytest.mark.parametrize(
    "marked",
    [
        "The ⟨<b>⟩dog⟨</b>⟩ sleeps.",
        "⟨<p>⟩The dog",
        "A ⟨<a href=\"x\" class='y'>⟩b⟨</a>⟩",
        "One⟨<br>⟩two⟨<br/>⟩three ⟨<img src=x>⟩",
        "⟨<0>⟩Read⟨</0>⟩ ⟨<1/>⟩ ⟨<2>⟩⟨</2>⟩",
        "⟨<my-tag>⟩a⟨</my-tag>⟩ <b>c",
        "⟨<b>⟩<i>a⟨</b>⟩</i>",  # <i> has no partner within <b>
        "a ⟨<!-- c -->⟩ b",
        "a < b ⟨<b>⟩c⟨</b>⟩",
        "List<String> ⟨<b>⟩x⟨</b>⟩",
        "⟨<B>⟩Groß⟨</b>⟩",
        "⟨&lt;a b=&quot;x&quot;&gt;⟩b⟨&lt;/a&gt;⟩⟨&lt;br/&gt;⟩",
        "⟨<a href={url}>⟩Здесь⟨</a>⟩",
        "⟨<x id='1'/>⟩here⟨<x id=\"2\" />⟩ ⟨&lt;x a='b'/&gt;⟩ ⟨<a href=x/>⟩c⟨</a>⟩",
    ],
)
def test_tags(marked: str) -> None:
    """The tags are in angle brackets."""
    text = re.sub("[⟨⟩]", "", marked)
    assert [text[tag.begin : tag.end] for tag in find_tags(text)] == re.findall("⟨(.*?)⟩", marked)


@pytest.mark.parametrize(
    ("marked", "unusual"),
    [
        ("a ⟨**⟩big⟨**⟩ and ⟨*⟩old⟨*⟩ dog", True),
        ("Open ⟨**⟩File⟨**⟩ and ⟨***⟩Save as⟨***⟩.", False),
        ("Open ⟨**⟩File⟨**⟩.", False),
        ("⟨**⟩Do not⟨**⟩ open it", True),
        ("l'⟨*⟩eau⟨*⟩ '*' '**'", True),
        ('See ⟨[⟩the guide⟨](a.html "Guide")⟩ and ⟨![⟩a dog⟨](d.png)⟩.', True),
        ("⟨**⟩.NET Core⟨**⟩ (⟨*⟩.txt⟨*⟩ or *.doc), the ⟨*⟩data⟨*⟩ folder", False),
        ("⟨*⟩all⟨*⟩ files", True),
        ("Closed on ⟨**⟩Monday, May 3 at 10 o'clock⟨**⟩", True),
        ("by ⟨**⟩31.12.2024⟨**⟩ or ⟨**⟩Version 2.0⟨**⟩", True),
        ("the ⟨**⟩January of the previous year⟨**⟩ column", False),
        ("a ⟨[b]⟩big ⟨[i]⟩old⟨[/i]⟩⟨[/b]⟩ ⟨[url=a]⟩dog⟨[/url]⟩", True),
        ("⟨**⟩Old⟨**⟩ {''''}'", False),  # nothing between marks
        ("a ⟨'''⟩big⟨'''⟩ and ⟨''⟩old⟨''⟩ dog", True),
        ("a ⟨\\emph{⟩big⟨}⟩ ⟨\\section*{⟩old⟨}⟩ \\input{dog}", True),
        ("⟨[⟩the *old* dog⟨][1]⟩ ⟨[⟩a dog⟨][]⟩ [b][x] ⟨[[Dog|⟩a dog⟨]]⟩ [[Dog]]", True),
        ("Read ⟨`⟩the old guide⟨ <https://a.org>`_⟩ or ⟨`⟩it⟨ <b>`__⟩, not :ref:`it <b>`, `it`_ and `<b>`.", True),
        ("⟨_⟩very old⟨_⟩ and ⟨__⟩very big⟨__⟩", True),
        ("a ⟨_⟩very⟨_⟩ big x_id_ of", True),
        ("It ⟨_⟩does⟨_⟩ so; the ⟨_⟩old⟨_⟩ file ⟨_⟩didn't⟨_⟩, ⟨_⟩no⟨_⟩.", True),
        ("The _ab_, _data_ and _logs_ folders; der Ordner _bad_; use _id_ to", False),  # names
        *((text, False) for text in WITHOUT_MARKS),
    ],
)
def test_emphasis_and_links(marked: str, unusual: bool) -> None:
    text, marks = re.sub("[⟨⟩]", "", marked), re.findall("⟨(.*?)⟩", marked)
    assert [text[tag.begin : tag.end] for tag in find_tags(text, marks=True)] == marks
    assert has_unusual_marks(text) is unusual
    assert not has_unusual_marks("**numpy** or *big*", frozenset().__contains__)
    assert keeps_marks(text, text) and keeps_marks(text, "a dog") is not bool(marks)
    assert not keeps_marks("*a* and **b**", "**a** and *b") and not keeps_marks("*a* b", "*b* *")
    assert not any(keeps_marks("**a**", crossed) for crossed in ("**a „b**“", '**a "b**"', "**a** **"))


def test_ranges_are_written_as_emphasis_and_read_again() -> None:
    text, ranges = "Open the new file.", ((0, 4), (9, 17))
    assert write_marks(text, ranges) == "**Open** the **new file**."
    assert read_marks("**Open** the **new file**.") == (text, ranges)
    assert read_marks("*Open* the **new file") == ("*Open* the **new file", ())


@pytest.mark.parametrize(
    ("language", "marked", "labels"),
    [
        ("en", "Choose **File** and **Save as** or **C**, then **OK**.", ["File", "Save as", "C", "OK"]),
        ("en", "Press the **green** button **3** or **{n}**, do **NOT** wait.", []),
        ("en", "**Red** and **Green** apples", ["Green"]),
        ("en", "**Warning:** (**Help**)", ["Help"]),
        ("en", "**Save** – writes the file", ["Save"]),
        ("en", "**{name}** opens the **Mein** menu", ["Mein"]),
        ("de", "Klicken Sie auf **Neu**. Der **Hund** und eine **Katze** auf der **Start**-Seite", ["Neu", "Start"]),
        ("fr", "Ouvrez le menu des **Outils**.", ["Outils"]),
    ],
)
def test_labels(language: str, marked: str, labels: list[str]) -> None:
    text, ranges = strings.read_marks(marked)
    assert [text[slice(*place)] for place in ranges if strings.is_label(text, place, language)] == labels


@pytest.mark.parametrize(
    ("sentence", "inner"),
    [
        ("**It is.**", "It is."),
        ("_It is a dog_", "It is a dog"),
        ("~~Buy it~~", "Buy it"),
        ("It is.[/b]", "It is."),
        ("(Two dogs)", "Two dogs"),
        ("[It is.]", "It is."),
        *((text, text) for text in ("(Tom) and (Ann)", "[x y](z)", "(dogs)", "'tis 'em")),
        ("**Two dogs**", "Two dogs"),
        ("**Two Dogs**", "**Two Dogs**"),
        ("Sale ***", "Sale"),
        ("Hello ~*~", "Hello"),
        ("* a *", "* a"),
        ("[b]It is.[/b]", "[b]It is.[/b]"),
        ("**It is *so* big.**", "It is *so* big."),
        ("**It is.", "It is."),
        ("It is.**", "It is."),
        ("*See the shop", "See the shop"),  # a footnote
        *((text, text) for text in ("**a** or **b.**", "**File**", "*args", "__init__", "x_", r"\*a\*", "*a* b", "*")),
    ],
)
def test_marks_around_a_sentence(sentence: str, inner: str) -> None:
    assert sentence[slice(*strings.inner_range(sentence))] == inner


@pytest.mark.parametrize(
    "marked",
    [
        "<p>⟨Read <b>it</b>.⟩</p><ul><li>⟨It is good.⟩</li></ul>",
        "⟨<b>It sleeps.</b>⟩ ⟨It eats.⟩",
        "⟨It sleeps.⟩ ⟨<b>It eats.</b>⟩ ⟨So⟩",
        "| ⟨The name⟩<br>⟨The small⟩\n ⟨house⟩<br>⟨Now⟩ |\n⟨A<br>B⟩",
        "⟨Run:⟩\n```py\nA {{#b}} dog\n ```\n⟨The cat⟩\n```\n⟨a⟩",
        "⟨Use ```a``` now⟩",
        "⟨The old house⟩<br>⟨Main Street<br>and<br>I⟩",
        "⟨We need:⟩<br>⟨bread⟩<br>⟨milk<br>with sugar⟩<br>⟨tea⟩",
        "⟨It is good.⟩<br/>⟨It is new:⟩<br>⟨* One⟩<br>⟨* Two<br> and more⟩",
        "⟨It sleeps <x/>⟩",
        "⟨<1></1> sleeps.⟩ ⟨<x/> eats.⟩",
        "⟨The dog is < 5.⟩ ⟨It is so.⟩",
        "⟨You have⟩ {{#if a}}⟨many <b>dogs</b>⟩{{else}}⟨a dog⟩{{/if}}.",
        "{% if a > b %}⟨Hi {{ name }}!⟩{% endif %} ⟨Bye.⟩",
        "<% if a %>⟨Hi <%= b %>⟩<% end %> <?php if (a): ?>⟨you⟩<?php } ?>",
        "⟨See {% link 'a' %} and {{> b}}.⟩",
        "*|IF:A|*⟨Hi *|NAME|*!⟩*|END:IF|*[% IF a %]⟨you⟩[% END %]",
        "@if($a > f(5)) ⟨Hi⟩ @else ⟨you⟩ @endif #if($x) ⟨all⟩ #end ⟨a@if.org⟩",
        "⟨This is the #end of the @else story.⟩",
        "<%-- no --%>⟨Hi <%- a %>⟩",
        "⟨You have {n, plural, =0 {no file} other {# files in {x}}}.⟩",
        "⟨{x, number} {g, select, a {{n} dogs} b {it}}⟩",
        "{n, plural, other {⟨Go.⟩ ⟨See.⟩}}",
        "⟨Go.⟩ ⟨{n, plural, one {# dog} other {# dogs}} of {x}.⟩",
        "⟨Use {a, plural, one { here⟩",
        '---\ntitle: "⟨My dog⟩"\ntags: [a b]\n---\n⟨It is⟩\n---\n⟨title: a⟩\n---',
        "---\n⟨It is⟩\n---",
        "{# A note #}⟨It is {{ '<b>' }} so.⟩",
        "⟨See \ufffc and {n, plural, one {# dog} other {# dogs}} \ufffc now.⟩ ⟨Go \ufffc on.⟩",
    ],
)
def test_sentences_of_texts_with_tags(marked: str) -> None:
    """The sentences are in angle brackets."""
    text = re.sub("[⟨⟩]", "", marked)
    parts = list(strings.split_marked_text(text, "en"))
    assert [part.text for part in parts if not part.kept] == re.findall("⟨(.*?)⟩", marked, re.DOTALL)
    assert "".join(part.text for part in parts) == text


@pytest.mark.parametrize("unit", ["<b>a</b> ", "a<br>", "<i></i>", "<b>", "```\na\n```\n", "```\n", "~~~\na\n"])
def test_steps_of_long_texts_with_tags(unit: str) -> None:
    """A step gives no long part, and is followed by another within few tags."""
    text = f"{unit * 3000}dog"
    parts = list(strings.split_marked_text(text, "en"))
    assert "".join(part.text for part in parts) == text
    assert max(len(part.text) for part in parts if not part.kept) <= LONGEST_SENTENCE
    assert len(parts) > 3000


def test_kept_ranges_of_a_sentence_with_tags() -> None:
    inline = read_marked_sentence("See <b>the x1 dog</b>", [(11, 13)])
    assert inline and inline.built
    assert inline.built.segment.text == "See the x1 dog" and inline.built.segment.kept == ((8, 10),)
    assert read_marked_sentence("See <b>the</b>", [(4, 6)]) is None


@pytest.mark.parametrize(
    ("sentence", "text", "kept"),
    [
        ("Call <code>foo <b>x</b></code> now", "Call foo x now", ["foo x"]),
        ('Say <span translate="no">Hello</span> <b class="notranslate">you</b>', "Say Hello you", ["Hello", "you"]),
        ("<script>a b</script> The dog", "The dog", []),
        ("The <bpt>&lt;b&gt;</bpt>dog<ept>&lt;/b&gt;</ept> and <ph>%s</ph>", "The dog and %s", []),
        ("It<ref>Tom 12</ref> is the <ref>dog</ref>", "It is the dog", []),
        ("Hello&nbsp;<b>friend</b>&#160;now &amp; then", "Hello friend now &amp; then", []),
    ],
)
def test_elements_that_are_not_translated(sentence: str, text: str, kept: list[str]) -> None:
    inline = read_marked_sentence(sentence, ())
    assert inline and inline.built
    segment = inline.built.segment
    assert (segment.text, [segment.text[begin:end] for begin, end in segment.kept]) == (text, kept)
