"""XLIFF: which units are translated, the languages that a file names, white space, and what is kept."""

import re

import pytest

from mt.errors import DocumentError
from mt.text.documents import DocumentOptions, open_document
from mt.text.markup import TranslatedSegment

CODES = dict.fromkeys(map(ord, "\U000f0000"))  # stand for inline codes
EN_DE = DocumentOptions(source_language="en", target_language="de")


def version_1(units: str, languages: str = 'source-language="en" target-language="de"') -> str:
    body = f'<file original="a" {languages}><body>{units}</body></file>'
    return f'<?xml version="1.0"?>\n<xliff version="1.2">{body}</xliff>'


def version_2(units: str, languages: str = 'srcLang="en" trgLang="de"') -> str:
    return f'<xliff version="2.1" {languages}><file id="f">{units}</file></xliff>'


def unit(content: str, attributes: str = "") -> str:
    return f'<trans-unit id="1"{attributes}>{content}</trans-unit>'


def segment(content: str, attributes: str = "") -> str:
    return f'<unit id="1"><segment{attributes}>{content}</segment></unit>'


def group(content: str, attributes: str) -> str:
    return f"<group {attributes}>{content}</group>"


def texts(content: str, options: DocumentOptions = EN_DE) -> list[str]:
    segments = open_document("a.xlf", content.encode(), options).segments
    return [item.text.translate(CODES).strip() for item in segments]


def translated(content: str, options: DocumentOptions = EN_DE) -> str:
    document = open_document("a.xlf", content.encode(), options)
    return document.render([TranslatedSegment(item.text.upper()) for item in document.segments]).decode()


A_DOG, BERLIN = "<source>A dog.</source>", "<source>Berlin</source><target>Berlin</target>"
EMPTY = ("", "<target/>", "<target>  \n </target>", "<target><![CDATA[ ]]> <!-- none --></target>")
SAME = (
    *("<target>A dog.</target>", "<target><![CDATA[A dog.]]></target>"),
    *('<target state="needs-review-l10n">A dog.</target>', '<target state="x-mine">A dog.</target>'),
)
TO_TRANSLATE = [
    *(unit(A_DOG + target) for target in (*EMPTY, *SAME)),
    *(unit(f'{A_DOG}<target state="{state}">Ein Tier.</target>') for state in ("new", "needs-l10n")),
    *(unit(f"{A_DOG}<target state='needs-{state}'>Ein Tier.</target>") for state in ("translation", "adaptation")),
    unit("<source>A\n  dog.</source><target>A dog.</target>"),
    unit("<source>Tom &amp; I</source><target>Tom &#38; I</target>"),
    unit('<source>A <g id="1">dog</g>.</source><target>A <g id="1">dog</g>.</target>'),
    unit(BERLIN, ' approved="no"'),
    *(segment(A_DOG + target) for target in ("", "<target>A dog.</target>")),
    segment(f"{A_DOG}<target>Ein Tier.</target>", ' state="initial"'),
]
DONE = [
    *(unit(f"{A_DOG}<target>Ein Hund.</target>", attribute) for attribute in ("", ' approved="no"')),
    unit(f'{A_DOG}<target state="needs-review-translation">Ein Hund.</target>'),
    *(unit(BERLIN.replace("<target", f'<target state="{state}"')) for state in ("translated", "signed-off")),
    unit(BERLIN, ' approved="yes"'),
    segment(f"{A_DOG}<target>Ein Hund.</target>"),
    *(segment(BERLIN, f' state="{state}"') for state in ("reviewed", "final")),
]


@pytest.mark.parametrize(("content", "done"), [*((row, False) for row in TO_TRANSLATE), *((row, True) for row in DONE)])
def test_the_state_decides_whether_a_unit_is_translated(content: str, done: bool) -> None:
    file = version_2(content) if "<segment" in content else version_1(content)
    assert (texts(file) == []) is done
    assert (translated(file) == file) is done


def test_a_new_translation_has_the_state_of_one() -> None:
    old = '<target state-qualifier="exact-match" state="needs-l10n" xml:lang="de">x</target>'
    new = '<target state="translated" xml:lang="de">A DOG.</target>'
    content = version_1(unit("<source>A dog.</source>" + old))
    assert translated(content) == content.replace(old, new)
    content = version_2(segment("<source>A dog.</source>", " state='initial' subState=\"my:draft\""))
    assert '<segment state="translated"><source>A dog.</source><target>A DOG.</target></segment>' in translated(content)


@pytest.mark.parametrize(
    ("languages", "written"),
    [
        ('source-language="en-US"', 'source-language="en-US" target-language="de"'),
        ("target-language='' source-language='en'", 'target-language="de" source'),
        ("datatype='html'", "datatype='html' target-language=\"de\""),
        ('srcLang="en"', '<xliff version="2.1" srcLang="en" trgLang="de">'),
        ('srcLang="en" trgLang="de-AT"', 'trgLang="de-AT">'),
        ('source-language="und" target-language="DE_CH"', '"DE_CH">'),
    ],
)
def test_a_missing_target_language_is_written(languages: str, written: str) -> None:
    second = "srcLang" in languages
    content = version_2(segment(A_DOG), languages) if second else version_1(unit(A_DOG), languages)
    translation = translated(content)
    assert written in translation
    assert len(re.findall("target-language|trgLang", translation)) == 1
    assert translated(content, DocumentOptions()).count("target-language") == languages.count("target-language")


@pytest.mark.parametrize(
    ("source", "target", "wanted", "languages"),
    [
        ("fr", "", EN_DE, "from fr into \\?, not from en into de"),
        ("German", "de", EN_DE, "from German into de, not from en into de"),
        ("en", "pt-BR", EN_DE, "from en into pt-BR, not from en into de"),
        ("en", "zh-TW", DocumentOptions(target_language="zh"), "from en into zh-TW, not from any language into zh;"),
    ],
)
def test_other_languages_are_refused(source: str, target: str, wanted: DocumentOptions, languages: str) -> None:
    first = version_1(unit(A_DOG), f'source-language="{source}" target-language="{target}"')
    second = version_2(segment(A_DOG), f'srcLang="{source}" trgLang="{target}"')
    for content in (first, second):
        with pytest.raises(DocumentError, match=f"a.xlf is for translation {languages}"):
            texts(content, wanted)


def test_regions_of_languages_and_files_for_several_languages_are_accepted() -> None:
    brazil = version_1(unit("<source>A</source>"), 'source-language="en-GB" target-language="pt-BR"')
    assert texts(brazil, DocumentOptions(source_language="en", target_language="pt")) == ["A"]
    taiwan = version_2(segment("<source>A</source>"), 'srcLang="en" trgLang="zh-TW"')
    assert texts(taiwan, DocumentOptions(target_language="zt")) == ["A"]
    french = '</body></file><file source-language="en" target-language="fr"><body>'
    content = version_1(unit("<source>Two</source>") + french + unit("<source>Three</source>"))
    assert texts(content) == ["Two"]
    assert texts(content, DocumentOptions(target_language="fr")) == ["Three"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (version_1(unit("<source>The dog\n      sleeps\twell.</source>")), ["The dog sleeps well."]),
        (version_1(unit("<source>\r\n  The dog\r\n  sleeps.\r\n</source>")), ["The dog sleeps."]),
        (version_1(unit('<source>The <g id="1">big\n  dog</g>\n  sleeps.</source>')), ["The big dog sleeps."]),
        (version_1(unit("<source>One\nTwo</source>", ' xml:space="preserve"')), ["One\nTwo"]),
        (version_1(group(unit("<source>One\nTwo</source>"), 'xml:space="preserve"')), ["One\nTwo"]),
        (version_1(group(unit("<source>A\nB</source>", ' xml:space="default"'), 'xml:space="preserve"')), ["A B"]),
        (version_1(unit('<source xml:space="preserve">One  two</source>')), ["One  two"]),
        (version_2(segment('<source xml:space="preserve">One\ntwo</source>')), ["One\ntwo"]),
        (version_2(segment("<source>One\ntwo</source>")), ["One two"]),
        (version_1(unit('<source>Hello<x id="1" ctype="lb"/>my dog</source>')), ["Hello my dog"]),
        (version_1(unit('<source>Hello<x id="1" ctype="lb"/>My dog</source>')), ["Hello", "My dog"]),
        # translate
        (version_1(group(unit("<source>A</source>"), 'translate="no"')), []),
        (version_1(group(unit("<source>A</source>", ' translate="yes"'), 'translate="no"')), ["A"]),
        (version_2(group(group(segment("<source>A</source>"), 'translate="yes"'), 'translate="no"')), ["A"]),
        (version_2('<unit id="u" translate="no"><segment><source>A</source></segment></unit>'), []),
    ],
)  # fmt: skip
def test_texts(content: str, expected: list[str]) -> None:
    assert texts(content) == expected


def test_white_space_around_a_wrapped_source_is_kept() -> None:
    translation = translated(version_1(unit("\n<source>\n    The dog\n    sleeps.\n  </source>\n")))
    assert "</source>\n<target>\n    THE DOG SLEEPS.\n  </target>\n" in translation


SEGMENTS = (
    '<source>A dog. A cat.</source><seg-source><g id="1"><mrk mtype="seg" mid="1">A dog.</mrk> '
    '<mrk mtype="seg" mid="2">A <x id="5"/> cat.</mrk></g></seg-source>'
)


@pytest.mark.parametrize(
    ("target", "written"),
    [
        ('<mrk mtype="seg" mid="1"/> <mrk mtype="seg" mid="2"/>', ("A DOG.", 'A <x id="5"/> CAT.')),
        ('<mrk mtype="seg" mid="1">Hund.</mrk> <mrk mtype="seg" mid="2"></mrk>', ("Hund.", 'A <x id="5"/> CAT.')),
        ('<mrk mtype="seg" mid="2">Eine Katze.</mrk> <mrk mtype="seg" mid="1"/>', ("A DOG.", "Eine Katze.")),
    ],
)
def test_each_marked_segment_is_written_into_its_mark(target: str, written: tuple[str, str]) -> None:
    result = translated(version_1(unit(f'{SEGMENTS}<target><g id="1">{target}</g></target>'))).partition("<target>")[2]
    marks = re.findall(r'<mrk mtype="seg" mid="(.)">(.*?)</mrk>', result)
    assert dict(marks) == dict(zip("12", written, strict=True))


def test_tags_in_the_text_of_phrase_are_tags() -> None:
    content = version_1(unit("<source>The {b&gt;red house&lt;b} is {1&gt;new&lt;1}</source>"))
    assert texts(content) == ["The red house is new"]
    document = open_document("a.mxliff", content.encode(), EN_DE)
    aligned = TranslatedSegment("Neu ist das Haus", (((17, 20), (0, 3)), ((4, 13), (12, 16))))
    assert "<target>{1&gt;Neu&lt;1} ist das {b&gt;Haus&lt;b}</target>" in document.render([aligned]).decode()


@pytest.mark.parametrize(
    ("opening", "closing"),
    [
        ('<x id="START_TAG_STRONG"/>', '<x id="CLOSE_TAG_STRONG"/>'),
        ('<x id="START_LINK_1"/>', '<x id="CLOSE_LINK"/>'),
        ('<bx id="1" rid="7"/>', '<ex id="2" rid="7"/>'),
        ('<bpt id="1">&lt;b&gt;</bpt>', '<ept id="1">&lt;/b&gt;</ept>'),
        ('<sc id="1"/>', '<ec startRef="1"/>'),
    ],
)
def test_halves_of_a_pair_are_a_pair_of_tags(opening: str, closing: str) -> None:
    content = version_1(unit(f'<source>A {opening}red house{closing} for <x id="INTERPOLATION"/></source>'))
    document = open_document("a.xlf", content.encode(), EN_DE)
    aligned = TranslatedSegment("Für \U000f0000 ein Haus", (((10, 13), (0, 3)), ((6, 11), (10, 14))))
    rendered = document.render([aligned]).decode()
    assert f'<target>Für <x id="INTERPOLATION"/> ein {opening}Haus{closing}</target>' in rendered


def test_a_target_gets_the_prefix_of_its_source() -> None:
    content = '<x:xliff version="1.2"><x:trans-unit><x:source>A b</x:source></x:trans-unit></x:xliff>'
    assert "</x:source><x:target>A B</x:target></x:trans-unit>" in translated(content)


@pytest.mark.parametrize(
    ("source", "expected", "target"),
    [
        ('{n, plural, =0 {none} other {<x id="N"/> big <g id="1">dogs</g>}}', ["none", "big dogs"],
         '{n, plural, =0 {NONE} other {<x id="N"/> BIG <g id="1">DOGS</g>}}'),
        ("<![CDATA[{n, plural, one {a dog} other {dogs}}]]>", ["a dog", "dogs"],
         "<![CDATA[{n, plural, one {A DOG} other {DOGS}}]]>"),
        ("Dogs: {n,number}", ["Dogs: {n,number}"], "DOGS: {N,NUMBER}"),
    ],
)  # fmt: skip
def test_branches_of_messages(source: str, expected: list[str], target: str) -> None:
    content = version_1(unit(f"<source>{source}</source>"))
    assert texts(content) == expected
    assert f"<target>{target}</target>" in translated(content)
