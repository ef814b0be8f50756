import html
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mt.text.alignment import Link
from mt.text.markup import Markup, MarkupOptions, TranslatedSegment, parse_html, parse_xml, xml_problem
from mt.text.markup.tokens import TokenKind, html_tokens, xml_tokens
from mt.text.markup.units import UnitAlignment

PLACEMENTS = Path(__file__).with_name("placements.tsv")
"""Markup, its translation, the word alignment, all by hand; and the bare translation where it lacks more than tags."""

PICTURE = "<p>a <svg><title>b</title><text><tspan>c</tspan> d</text><style>e</style></svg> f<svg><path/></svg></p>"

ODD = [
    *("<p>", "</p>", "<b>", "</b>", "<i class='x'>", "</i>", "<br>", "<img alt='a dog'>", "<li>", "<td>", "<!-- c -->"),
    *("<script>if (a<b)", "</script>", "<style>", "<code>", "</code>", "<span translate=no>", "</span>"),
    *("<!DOCTYPE html>", "<![CDATA[", "]]>", "<?php x", "?>", '<a href="x', '"', "'", ">", "<", "</", "&amp;", "&lt;"),
    *("&nbsp;", "&#0;", "&foo;", "&#99999999999;", "<textarea>", "<title>", "\n", " ", "word", "Zwei", "3.5", "。"),
    *("語", "\ud800", "\x00", "{{#if a}}", "{{", "}}", "{% end %}", "<%= a && b %>", "<% if (a > b) { %>", "<#if a>"),
]
SOURCES = st.lists(st.sampled_from(ODD) | st.text(max_size=3), max_size=25).map("".join)
PARSERS = pytest.mark.parametrize("parse", [parse_html, parse_xml])


def identity(document: Markup) -> str:
    return document.render([TranslatedSegment(segment.text) for segment in document.segments])


def texts(source: str, parse: Callable[..., Markup] = parse_html, options: MarkupOptions | None = None) -> list[str]:
    return [segment.text for segment in parse(source, options).segments]


def link_words(source: str, target: str, pairs: Iterable[tuple[int, int]]) -> tuple[Link, ...]:
    """Return the alignment of the words of these numbers; a number that is too large has no link."""
    left, right = ([match.span() for match in re.finditer(r"\S+", text)] for text in (source, target))
    return tuple((left[i], right[j]) for i, j in pairs if i < len(left) and j < len(right))


def translated(source: str, target: str, pairs: str = "") -> str:
    """Translate the only segment of HTML, with a word alignment such as `0-0 1-2`."""
    document = parse_html(source)
    (segment,) = document.segments
    numbers = [(int(a), int(b)) for a, b in (pair.split("-") for pair in pairs.split())]
    return document.render([TranslatedSegment(target, link_words(segment.text, target, numbers))])


def upper(source: str) -> str:
    document = parse_html(source)
    return document.render([TranslatedSegment(segment.text.upper()) for segment in document.segments])


def plain(marked: str) -> str:
    """Return the translation of a row of the table without its tags."""
    bare = re.sub(r"<sup>\W?\d\W?</sup>", "", marked.replace("<br>", " "))
    bare = re.sub("(?<= )<img[^>]*>(?= )", "\U000f0000", bare)
    return " ".join(html.unescape(re.sub(r"<!--.*?-->|<[^>]*>", "", bare)).split())


@pytest.mark.parametrize("row", PLACEMENTS.read_text(encoding="utf-8").splitlines())
def test_tags_stand_where_a_person_would_put_them(row: str) -> None:
    source, wanted, pairs, *target = row.split("\t")
    assert translated(source, target[0] if target else plain(wanted), pairs) == wanted


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a <b>c</b> d<br/>", ""),
        ("AT&T &nbsp; <br/>", ""),
        ("<?xml version='1.0' encoding='utf-16'?><a/>", ""),
        ("a <b>c</i>", "mismatched tag in line 1, column 9"),
        ("<b>", "mismatched tag"),
        ("\n<a></b>", "mismatched tag in line 2, column 6"),
    ],
)
def test_tags_of_xml(text: str, problem: str) -> None:
    assert xml_problem(text).startswith(problem) and (problem or not xml_problem(text))


@PARSERS
@given(source=SOURCES)
@example(source="<b>a<i>b</b>c</i>")
def test_unchanged_markup_is_rendered_as_it_was(parse: Callable[[str], Markup], source: str) -> None:
    assert identity(parse(source)) == source


@PARSERS
@given(source=SOURCES, data=st.data())
def test_every_tag_is_rendered_once(parse: Callable[[str], Markup], source: str, data: st.DataObject) -> None:
    document = parse(source)
    words = st.sampled_from(["eins", "zwei,", "„drei“", "語", "a & b", "<x>", "\ud800"])
    translations = []
    for segment in document.segments:
        target = " ".join(data.draw(st.lists(words, max_size=5)))
        pairs = data.draw(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=5))
        translations.append(TranslatedSegment(target, link_words(segment.text, target, pairs)))
    result = document.render(translations)

    def tags(text: str) -> list[str]:
        tokens = (html_tokens if parse is parse_html else xml_tokens)(text)
        return sorted(token.name for token in tokens if token.kind not in (TokenKind.TEXT, TokenKind.OTHER))

    assert tags(result) == tags(source)


@given(st.lists(st.sampled_from(["<b>", "</b>", "<i>", "</i>", "<u>", " one ", " two "]), max_size=12).map("".join))
def test_tags_that_do_not_match_keep_their_order(inside: str) -> None:
    source = f"begin {inside}</q> end"
    document = parse_html(source)
    result = document.render([TranslatedSegment("ende der eins zwei drei begin") for _ in document.segments])
    assert re.findall("<.*?>", result) == re.findall("<.*?>", source)


@pytest.mark.parametrize(
    ("source", "segments"),
    [
        ("<p>One\n  two</p>", ["One two"]),  # a newline does not end a sentence
        ("<p>One<p>Two<ul><li>Three<li>Four</ul>", ["One", "Two", "Three", "Four"]),
        ("<title>A &amp; B</title><script>var x = 'no';</script><style>p {}</style>", ["A & B"]),
        ("<!DOCTYPE html><!-- note --><pre>kept</pre><textarea>kept</textarea>", []),
        ("<script><!-- <script> </script> --> x</script><p>Yes</p>", ["Yes"]),
        ("<img alt='A dog' title=Rex src=x>", ["A dog", "Rex"]),
        ("<p translate='no' title='kept'>kept</p><p class='a notranslate'>kept</p><p>Yes</p>", ["Yes"]),
        ("<div translate=no>kept <p translate=yes>Yes</p> kept</div>", ["Yes"]),
        ("<ul><li translate=no>kept<li>Yes</ul>", ["Yes"]),
        ("Use <code>x &lt; y</code> now", ["Use x < y now"]),
        ("First line.<br>Second line", ["First line.", "Second line"]),
        ("a long<br>line", ["a long line"]),
        ("Main Street<br><b>Berlin</b> in<br>Europe", ["Main Street", "Berlin in Europe"]),
        ("one<br><br>two", ["one", "two"]),
        ("<p> 🙂 </p><p>---</p>", []),
        ("a < b and <3", ["a < b and <3"]),
        ("house<sup>1<p>dog</p>", ["house1", "dog"]),  # the mark of a footnote has no end
        ("<p>A list <b>of\n* dogs</b></p>", ["A list of * dogs"]),
        ("Dogs<br>* Camera<br>* Battery", ["Dogs", "* Camera", "* Battery"]),
        ("<p>Dogs {{#if a}}sleep{{else}}eat{{/if}} now", ["Dogs", "sleep", "eat", "now"]),
        ("<script{{ a }}>alert('Hi')</script><b{{ c }}>Dogs</b>", ["Dogs"]),
        ("{% if a > b and c < d %}<b>Yes</b>{%- endif -%}{# no #} Dogs", ["Yes", "Dogs"]),
        ("<title>{% block title %}Cats{% endblock %}</title>", ["Cats"]),
        ("<?php\n$a = 'no > yes';\n?><p>Hi<?php if ($a->b): ?> you<?php endif; ?>", ["Hi", "you"]),
        ("Hi <?php echo $a->b; ?>, I am <%= a && b %>", ["Hi <?php echo $a->b; ?>, I am <%= a && b %>"]),
        ("<b>Hi</b> you <?php echo $a->b", ["Hi you"]),  # code without an end stays behind all tags
        ('<a href="<?= f("a > b") ?>" class="c">Go</a>', ["Go"]),
        ("<div {{#if a}}title='A dog'{{/if}} {% if a > b %}class=c{% endif %}>Go</div>", ["A dog", "Go"]),
        ('<img alt="{{t "a dog"}}"><img alt="{{a && b}} c"><img alt="A {{b}} dog">', ["A {{b}} dog"]),
        ("{{range .Dogs}}<li>{{.Name}} sleeps{{end}}", ["{{.Name}} sleeps"]),
        ("From {{start}} to {{end}}", ["From {{start}} to {{end}}"]),
        ('{% schema %}{"a": "no"}{% endschema %}<p>Dog{%- style -%}no<b>no</b>{% endstyle %}', ["Dog"]),
        ("{% style %}Dog{% comment %}", ["Dog"]),
        ("{#each a as b}Dog{:else}Cat{/each}", ["Dog", "Cat"]),
        ("{if $a > 3}Dog{else}Cat{/if}, {if you can} {count, plural, one {# dog}}",
         ["Dog", "Cat", ", {if you can} {count, plural, one {# dog}}"]),
        # words on both sides of a tag are not joined to code
        ('<p>See page <a href="p5">5</a> now.</p>', ["See page 5 now."]),
        ("<p>It has 20 m<sup>2</sup> now.</p>", ["It has 20 m2 now."]),
        ("<p>Le XVI<sup>e</sup> siècle, x<sup>i</sup>, 2<sup>nd</sup></p>", ["Le XVIe siècle, xi, 2nd"]),
        ("<p>The dog<sup>1)</sup>and the cat<sup>2</sup></p>", ["The dog and the cat"]),
        ("<p>dog[<b>old</b>], a dog<b>[old]</b>, dog(<i>my</i>), f(<i>x</i>)</p>",
         ["dog [old], a dog [old], dog (my), f(x)"]),
        ("<p>A dog:<i>big</i>,age:<i>two</i>;<b>see</b>:house</p>", ["A dog: big, age: two; see: house"]),
        ("<p><b>Name:</b>the dog</p>", ["Name: the dog"]),
        ("<p>Click<a>here</a>to go, the <a>dog</a>s of a<a>b</a>c</p>", ["Click here to go, the dogs of abc"]),
        ("<p>Click<b>here</b>to go, re<b>do</b> it, w<b>or</b>ds</p>", ["Click here to go, redo it, words"]),
        ("<p>Hello<b>World</b> of dogs<i>1</i></p>", ["Hello World of dogs 1"]),
        ("<p>H<sub>2</sub>O, Mc<b>Donald</b>, r<b>ed</b>, 12:<b>30</b>, 20<b>px</b></p>",
         ["H2O, McDonald, red, 12:30, 20px"]),
        ("<p>file.<b>txt</b> e.g.<b>a</b></p>", ["file.txt e.g.a"]),
        ("<p>AT&amp;<b>T</b>, Tom &lt;<a>a@b.org</a>&gt;</p>", ["AT&T, Tom <a@b.org>"]),
        ("<p><a>Home</a><a>help</a> <a>All</a>|<a>News</a>&raquo;<b>Dogs</b> &gt; Cats</p>",
         ["Home help", "All", "News", "Dogs", "Cats"]),
        ("<p>See <a>Home</a> &gt; <a>Dogs</a>, <a>Old</a> <a>Cats</a></p>", ["See Home > Dogs, Old Cats"]),
        ("<p><a>dogs</a> <a>cats</a><p><a>2</a> <a>next</a></p>", ["dogs", "cats", "2", "next"]),
        ("<label>Name</label><input><label>your age <input></label>", ["Name", "your age"]),
        ("<p>The <s>dog</s><u>cat</u>, <b>Donau</b><i>dampfer</i>, <i>gar</i><i>den</i>, |<i>x</i>|</p>",
         ["The dog cat, Donaudampfer, garden, |x|"]),
        ("<p><b>红</b><i>的狗儿</i> <i>dog</i><b>s</b></p>", ["红的狗儿 dogs"]),
        # raised remarks and pictures are texts of their own
        ("<p>he<sup>[<i><a>who?</a></i>]</sup>. it ends<sup>[note 1]</sup></p>", ["[who?]", "[note 1]", "he. it ends"]),
        (PICTURE, ["b", "c d", "a \U000f0000 f"]),
        ("<svg translate=no><text>b</text></svg>", []),
    ],
)  # fmt: skip
def test_segments(source: str, segments: list[str]) -> None:
    assert texts(source) == segments


@pytest.mark.parametrize(
    ("source", "kept", "rendered"),
    [
        ("the value T<sub>max</sub>.", ["Tmax"], "THE VALUE T<sub>max</sub>."),
        ("so <i>F</i><sub>g</sub>-values go", ["Fg"], "SO <i>F</i><sub>g</sub>-VALUES GO"),
        ("the N<sub>A</sub> and p<sub>O2</sub>", ["NA", "pO2"], "THE N<sub>A</sub> AND p<sub>O2</sub>"),
        ("H<sub>2</sub>O, dog<sub>x</sub>, <i>dog</i><sub>x</sub>, x<sub>a <b>c</b></sub>, <sub>a</sub>", [], None),
    ],
)
def test_a_symbol_with_an_index_of_letters_stays(source: str, kept: list[str], rendered: str | None) -> None:
    document = parse_html(source)
    (segment,) = document.segments
    assert [segment.text[begin:end] for begin, end in segment.kept] == kept
    upper, end = "", 0
    for first, last in [*segment.kept, (len(segment.text), len(segment.text))]:
        upper, end = upper + segment.text[end:first].upper() + segment.text[first:last], last
    if rendered is not None:
        assert document.render([TranslatedSegment(upper)]) == rendered


def test_languages_without_spaces() -> None:
    document = parse_html("I like <b>red wine</b>.")
    links = (((0, 1), (0, 1)), ((2, 6), (1, 3)), ((7, 10), (3, 4)), ((11, 15), (4, 6)))
    assert document.render([TranslatedSegment("我喜欢红葡酒。", links)]) == "我喜欢<b>红葡酒</b>。"


def test_each_line_of_a_list_is_a_text() -> None:
    source = "List of properties:\n* <c>Camera</c>\n * <c>Battery</c> and\nmore\n1. One\n"
    assert texts(source, parse_xml) == ["List of properties:", "* Camera", "* Battery and more", "1. One"]


@pytest.mark.parametrize(
    ("source", "segments"),
    [
        ("<c>A set of:<c>a dog <i>x</i>;</c><c>a cat</c></c>", ["A set of:", "a dog x;", "a cat"]),
        ("<c>A set of:<c>a dog</c> and more</c>", ["A set of: a dog and more"]),
        ("<c>A <c>red dog</c></c>", ["A red dog"]),
        ("<c>A set of:<i>a dog</i></c>", ["A set of: a dog"]),
        ("<c>A dog.&#10;A red&#xA;cat</c>", ["A dog.", "A red cat"]),
    ],
)
def test_divisions_of_xml(source: str, segments: list[str]) -> None:
    assert texts(source, parse_xml) == segments


DOCUMENT = "<doc><t>Title</t><p>Some <e>old</e> text</p><x><e>One</e> <e>Two</e></x></doc>"


@pytest.mark.parametrize(
    ("options", "segments"),
    [
        (MarkupOptions(), ["Title", "Some old text", "One", "Two"]),
        (MarkupOptions(non_splitting_tags=frozenset({"e"})), ["Title", "Some old text", "One Two"]),
        (MarkupOptions(splitting_tags=frozenset({"e"})), ["Title", "Some", "old", "text", "One", "Two"]),
        (MarkupOptions(ignore_tags=frozenset({"t", "x"})), ["Some old text"]),
        (MarkupOptions(outline_detection=False), ["Title Some old text One Two"]),
        (MarkupOptions(outline_detection=False, splitting_tags=frozenset({"t", "p"})),
         ["Title", "Some old text", "One Two"]),
    ],
)  # fmt: skip
def test_options_of_xml(options: MarkupOptions, segments: list[str]) -> None:
    assert texts(DOCUMENT, parse_xml, options) == segments


def test_xml_preserves_unknown_entities_and_cdata() -> None:
    source = '<?xml version="1.0"?><!DOCTYPE d [<!ENTITY a "<b>">]><d>one &a; two<?pi 1 > <b>0?><![CDATA[ <b> & ]]></d>'
    document = parse_xml(source)
    assert [segment.text for segment in document.segments] == ["one &a; two"]
    written = source.replace("one", "EINS").replace("two", "&lt; ZWEI")
    assert document.render([TranslatedSegment("EINS &a; < ZWEI\x00")]) == written


@pytest.mark.parametrize(
    ("source", "segments", "rendered"),
    [
        ("<![CDATA[<p>A &amp; <b>dog</b></p>]]>", ["A & dog"], "<![CDATA[<p>A &amp; <b>DOG</b></p>]]>"),
        ("<![CDATA[Tom & a dog < 3]]>", ["Tom & a dog < 3"], "<![CDATA[TOM & A DOG < 3]]>"),
        ("<![CDATA[ - ]]>", [], "<![CDATA[ - ]]>"),
        ("see <![CDATA[<a>my dog</a>]]> now", ["see my dog now"], "SEE <![CDATA[<a>MY DOG</a>]]> NOW"),
        ("a <![CDATA[<b>]]>red<![CDATA[</b>]]> dog", ["a red dog"], "A <![CDATA[<b>]]>RED<![CDATA[</b>]]> DOG"),
        ("its <![CDATA[R&D]]> now", ["its", "R&D", "now"], "ITS <![CDATA[R&D]]> NOW"),
        ("a <![CDATA[<p>dog</p>]]>", ["a", "dog"], "A <![CDATA[<p>DOG</p>]]>"),
        ("if <![CDATA[a < b]]>.", ["if <![CDATA[a < b]]>."], "IF <![CDATA[a < b]]>."),
        ("a<br/><![CDATA[dog<br>now]]>", ["a dog now"], "A<br/><![CDATA[DOG<br>NOW]]>"),
    ],
)
def test_a_cdata_section_is_html_or_text(source: str, segments: list[str], rendered: str) -> None:
    document = parse_xml(f"<d><a>{source}</a><code><![CDATA[a dog]]></code></d>")
    assert [segment.text for segment in document.segments] == segments
    links = [tuple(((at, at + 1), (at, at + 1)) for at in range(len(text))) for text in segments]
    translations = map(TranslatedSegment, map(str.upper, segments), links)
    assert document.render(list(translations)) == f"<d><a>{rendered}</a><code><![CDATA[a dog]]></code></d>"
    assert identity(document) == f"<d><a>{source}</a><code><![CDATA[a dog]]></code></d>"


def test_untranslatable_elements_without_end_tags_stay_at_the_end() -> None:
    """Text behind the unfinished tag would end it."""
    document = parse_xml("0<span translate=no><script>if (a<b)")
    assert [segment.text for segment in document.segments] == ["0"]
    assert document.render([TranslatedSegment("<x>")]) == "&lt;x><span translate=no><script>if (a<b)"


@pytest.mark.parametrize("parse", [parse_html, parse_xml])
def test_no_translation_makes_xml_ill_formed(parse: Callable[[str], Markup]) -> None:
    """XHTML is read as HTML."""
    document = parse('<p title="my dog">the dog</p>')
    written = [TranslatedSegment("]]>") for _ in document.segments[1:]]
    assert document.render([*written, TranslatedSegment("a]\x01]>b<")]).endswith(">a]]&gt;b&lt;</p>")


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('The file <x id="1"></x> was not found in <x id="2"></x>.', "The file 0 was not found in 1."),
        ('<x id="1"/> of <x id="2"/> pages', "0 of 1 pages"),
        ('Hello, <ph id="1">%s</ph>!', "Hello, %s!"),
        ('<x/>\'s dog sleeps. "<x/>" is new.', '0\'s dog sleeps. "1" is new.'),
        ("Error:<x/>, welcome to <x/>", "Error:0, welcome to 1"),
        ("<1></1> and <2/>", "<1> and <2/>"),  # names of XML do not begin with a digit
        ('It is <sc id="3"/>very<ec startRef="3"/> big.', "It is very big."),
        ("Press <bpt/>the key<ept/>, now<!-- c --> and <?pi?> then.", "Press the key, now and then."),
        ("A dog.<x/> A cat<x/> and a bird.", "A dog. A cat and a bird."),
        ("A dog.<x/>A cat:<x/>it eats<x/>.", "A dog. A cat: it eats."),
        ("One <br/> two <index/> three", "One two three"),
    ],
)
def test_an_empty_element_of_xml_stands_for_a_word(source: str, words: str) -> None:
    (segment,) = parse_xml(source).segments
    shown = re.sub("[\U000f0000-\U000f0fff]", lambda match: str(ord(match[0]) - 0xF0000), segment.text)
    assert shown == words
    assert identity(parse_xml(source)) == source


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ('Click <img src="a.png">, then wait.', "Click *, then wait."),
        ('The house is <b class="n"></b> years old.', "The house is * years old."),
        ('<img src="a.png"> Save the file <i class="icon"></i>', "Save the file"),
        ("We saw it. <img> It was new.", "We saw it. It was new."),
        ('The dog <a id="n"></a> sleeps<wbr> here.', "The dog sleeps here."),
        ("<my-name></my-name> sleeps.", "* sleeps."),
    ],
)
def test_an_empty_element_of_html_stands_for_a_word_between_words(source: str, words: str) -> None:
    assert [re.sub("[\U000f0000-\U000f0fff]", "*", text) for text in texts(source)] == [words]


def test_words_for_empty_elements_never_stay() -> None:
    source = "Wait <b>for <x id='1'/></b> and <x id='2'/>."
    document = parse_xml(source)
    for target in ("Warte \U000f0001 und auf \U000f0000.", "Warte.", "\U000f0000\U000f0000 \U000f0001", ""):
        result = document.render([TranslatedSegment(target)])
        assert not re.search("[\U000f0000-\U000f0fff]", result)
        assert result.count("<x id='1'/>") == result.count("<x id='2'/>") == 1
    aligned = TranslatedSegment("Und \U000f0001: warte auf \U000f0000.", (((5, 8), (13, 16)),))
    assert document.render([aligned]) == "Und <x id='2'/>: warte <b>auf <x id='1'/></b>."


@pytest.mark.parametrize(
    "mark",
    [
        *('<a href="#n1">1</a>', '<a href="#n1"><sup>1</sup></a>', '<sup><a href="#n1">12, 13</a></sup>'),
        *(' <a href="#n1">[1]</a>', '<a epub:type="noteref" href="#n1">*</a>', ' <a role="doc-noteref" href="#">1</a>'),
        *('<a class="footnote-ref" href="#n1">†</a>', "<sup>[a]</sup>", '<a href="#f3"><sup>a</sup></a>'),
        *("<sup>iv</sup>", "<sup>1,a</sup>", "<sup>1</sup><sup>,</sup><sup>2</sup>"),
        *('<span class="superscript">1</span>', '<span style="vertical-align: super">1</span>'),
        '<sup><a href="#c"><span class="c">&#91;</span>1<span class="c">&#93;</span></a></sup>',
    ],
)
def test_footnote_marks_are_no_words(mark: str) -> None:
    source = f"<p>The dog{mark} sleeps.</p>"
    assert texts(source) == ["The dog sleeps."]
    result = upper(source)
    assert result.startswith(("<p>THE DOG<", "<p>THE DOG <")) and result.endswith(" SLEEPS.</p>")


def test_notes_and_index_terms_of_xml_are_apart_from_the_text_around_them() -> None:
    source = "<p>a<footnote><para>b c</para></footnote> d<indexterm><term>e</term></indexterm> f<note>g</note></p>"
    assert texts(source, parse_xml) == ["b c", "e", "g", "a d f"]
    document = parse_xml(source)
    capitals = re.sub(r"(?<=>)\w|(?<=[ b]) ?\w(?=<)", lambda text: text[0].upper(), source)
    links = tuple(((at, at + 1), (at, at + 1)) for at in range(5))
    assert document.render([TranslatedSegment(one.text.upper(), links) for one in document.segments]) == capitals


@pytest.mark.parametrize("placeholder", ["{count}", "{{ a b }}", "{n}"])
def test_no_mark_begins_within_a_placeholder(placeholder: str) -> None:
    """A link of the alignment, which ends within the placeholder, does not cut it."""
    units = UnitAlignment("x", f"{placeholder}+-Benutzer", [((0, 1), (0, 2))], ()).right
    assert not any(0 < unit.begin < len(placeholder) for unit in units)
