"""Languages, directions and attributes of documents in HTML, and the languages of e-books."""

import re

import pytest

from mt.errors import DocumentError
from mt.text.documents import DocumentOptions, open_document
from mt.text.markup import TranslatedSegment
from tests.text.documents import capitals, members_of, translated
from tests.text.test_archives import CHAPTER, CONTENT
from tests.text.test_word_runs import WORD, run, word_file


@pytest.mark.parametrize(
    ("source", "languages", "expected"),
    [
        ('<html lang="en"><p>A', ("en", "de"), '<html lang="de"><p>N'),
        ("<html lang=en-US xml:lang='en'><p>A", ("en", "pt-BR"), "<html lang=pt-BR xml:lang='pt-BR'><p>N"),
        ('<p lang="en">A<i lang="fr">chat</i>', ("", "de"), '<p lang="de"><i lang="fr">chat</i> N'),
        ('<html lang="en"><p lang="fr">A', ("fr", "de"), '<html lang="de"><p lang="de">N'),
        ('<meta property="og:locale" content="en_GB"><p>A', ("en", "fr"), 'content="fr_FR"><p>N'),
        ('<html lang="en"><p>A', ("en", "ar"), '<html lang="ar" dir="rtl"><p>N'),
        ('<html dir="ltr" lang="en"><p dir="auto">A', ("en", "he"), '<html dir="rtl" lang="he"><p dir="auto">N'),
        ('<html lang="fa" dir="rtl"><p>A <b dir="rtl">B</b>', ("fa", "en"),
         '<html lang="en" dir="ltr"><p><b dir="rtl">N</b>'),
        ('<html lang="sr-Cyrl"><p>A', ("sr-Latn", "de"), '<html lang="de"><p>N'),
        ('<meta http-equiv="content-language" content="en-GB"><p>A', ("en", "fr"), 'content="fr"><p>N'),
        ('<html lang="en"><p translate="no" lang="en">A</p><p>A', ("en", "de"),
         '<p translate="no" lang="en">A</p><p>N'),
        ('<html lang="en"><p>N', ("en", "de"), '<html lang="en"><p>N'),
    ],
)  # fmt: skip
def test_languages_and_directions(source: str, languages: tuple[str, str], expected: str) -> None:
    options = DocumentOptions(source_language=languages[0], target_language=languages[1])
    document = open_document("a.html", source.encode(), options)
    assert expected in document.render([TranslatedSegment("N") for _ in document.segments]).decode()


@pytest.mark.parametrize(
    ("name", "source", "translated_texts"),
    [
        ("a.html", '<html lang="en"><p>A dog</p><div lang="ja"><p title="a">犬は寝る。</p></div>', ["A dog"]),
        ("a.html", '<p>A dog</p><ul><li><a lang="es" title="a" href="/">Español</a></ul>', ["A dog"]),
        ("a.html", '<p>A dog</p><div lang="uk">Собака <p lang="en-GB">sleeps</p> спить</div>', ["A dog", "sleeps"]),
        ("a.html", '<p lang="fr">Un chien</p><p lang="en">A dog</p><p lang="de">Ein Hund</p>', ["A dog"]),
        ("a.html", '<p>A dog</p><p translate="no" lang="la">Canis <b lang="en">dog</b></p>', ["A dog"]),
        ("a.html", '<p>A dog</p><img lang="it" alt="casa"><input lang="it" placeholder="casa">', ["A dog"]),
        ("a.html", '<p lang="">A dog</p><p lang="und">A cat</p><p lang="x-a">A cow</p>', ["A dog", "A cat", "A cow"]),
        ("a.html", '<html lang="fr"><p>A dog</p>', ["A dog"]),
        ("a.html", '<title>A dog</title><body lang="it"><p>A cat</p>', ["A dog", "A cat"]),
        ("a.html", '<p>A dog</p><p class=MsoNormal><span lang=FR>A cat</span></p>', ["A dog", "A cat"]),
        ("a.html", '<meta name="generator" content="LibreOffice 7"><p>A dog<p lang="de-DE">A cat', ["A dog", "A cat"]),
        ("a.xml", '<doc xml:lang="fr"><p>A dog</p><p xml:lang="la">Canis</p></doc>', ["A dog"]),
        ("a.md", '<p>A dog</p>\n\ntext\n\n<p lang="fr">Un chat</p>\n', ["A dog", "text"]),
        ("a.md", '<div><p>A cat</p><p lang="fr">Un chat</p></div>\n', ["A cat"]),
        ("a.xml", '<topic><p>A dog</p><note xml:lang="de">Ein Hund</note></topic>', ["A dog"]),
    ],
)  # fmt: skip
def test_text_in_another_language_is_kept(name: str, source: str, translated_texts: list[str]) -> None:
    options = DocumentOptions(source_language="en", target_language="de")
    document = open_document(name, source.encode(), options)
    assert [segment.text for segment in document.segments] == translated_texts
    written = document.render([TranslatedSegment("N") for _ in document.segments]).decode()
    for text in translated_texts:
        source = source.replace(f">{text}", ">N").replace(f"\n{text}", "\nN")
    assert re.sub(r'lang="[^"]*"|lang=FR', "", written) == re.sub(r'lang="[^"]*"|lang=FR', "", source)


def test_a_foreign_word_within_a_sentence_is_kept() -> None:
    options = DocumentOptions(source_language="de", target_language="en")
    (segment,) = open_document("a.html", b'<p>Der <i lang="fr-CA">petit chien</i> ist alt.', options).segments
    assert [segment.text[begin:end] for begin, end in segment.kept] == ["petit chien"]


def test_languages_of_xml_and_of_an_unchanged_file() -> None:
    options = DocumentOptions(source_language="en", target_language="de")
    content = b'<a xml:lang="en-US"><b>A</b><b xml:lang="fr">C</b></a>'
    document = open_document("a.xml", content, options)
    assert document.render([TranslatedSegment("B")]) == b'<a xml:lang="de"><b>B</b><b xml:lang="fr">C</b></a>'
    assert document.render([TranslatedSegment("A")]) == content


@pytest.mark.parametrize(
    ("languages", "expected"),
    [
        (("en", "de"), '<w:lang w:val="de-DE" w:eastAsia="zh-CN"/>'),
        (("en", "ja"), '<w:lang w:val="en-US" w:eastAsia="ja-JP"/>'),
        (("en", "ar"), '<w:lang w:val="en-US" w:eastAsia="zh-CN" w:bidi="ar-EG"/>'),
        (("zh", "pt-BR"), '<w:lang w:val="pt-BR" w:eastAsia="zh-CN"/>'),
        (("fr", "de"), '<w:lang w:val="en-US" w:eastAsia="zh-CN"/>'),
    ],
)
def test_languages_of_runs(languages: tuple[str, str], expected: str) -> None:
    form = '<w:rPr><w:lang w:val="en-US" w:eastAsia="zh-CN"/></w:rPr>'
    styles = f'<w:styles xmlns:w="{WORD}"><w:rPrDefault>{form}</w:rPrDefault></w:styles>'
    members = members_of(word_file(f"<w:p>{run('A dog', form)}</w:p>", {"word/styles.xml": styles}))
    written = capitals("a.docx", members, DocumentOptions(source_language=languages[0], target_language=languages[1]))
    for member in ("word/document.xml", "word/styles.xml"):
        assert expected in written[member]


def test_the_language_and_the_title_of_an_e_book() -> None:
    book = {
        "content.opf": '<package xml:lang="en"><metadata><dc:title id="t">A dog</dc:title><dc:creator>Ann</dc:creator>'
        '<dc:language>en-GB</dc:language><dc:language>la</dc:language><meta refines="#t">main</meta></metadata>'
        '<manifest><item media-type="text/css"/></manifest></package>',
        "toc.ncx": '<ncx xml:lang="en"><docTitle><text>A dog</text></docTitle></ncx>',
        "c.xml": CHAPTER.replace("<html ", '<html lang="en" xml:lang="en" '),
    }
    written = capitals("a.epub", book, DocumentOptions(source_language="en", target_language="fr"))
    content = book["content.opf"].replace("en-GB", "fr").replace('"en"', '"fr"')
    assert written["content.opf"] == content.replace("A dog", "A DOG")
    assert '<ncx xml:lang="fr">' in written["toc.ncx"]
    assert '<html lang="fr" xml:lang="fr" ' in written["c.xml"]


DOCX = members_of(word_file(f"<w:p>{run('A dog')}</w:p>"))
TEXT = CONTENT.partition("<office:automatic-styles>")[0] + "<text:p>A dog</text:p></office:document-content>"
META = "<office:document-meta xmlns:office='o' xmlns:dc='d'><dc:language>en-US</dc:language></office:document-meta>"
CORE = (
    '<c:coreProperties xmlns:c="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" xmlns:dc="d">'
    "<dc:language>en-US</dc:language></c:coreProperties>"
)


@pytest.mark.parametrize(
    ("name", "content", "before", "after"),
    [
        ("a.arb", '{"@@locale": "en_US", "a": "A dog"}', '"@@locale": "en_US"', '"@@locale": "pt_BR"'),
        ("a.arb", '{"@@locale": "fr", "a": "A dog"}', '"@@locale": "fr"', '"@@locale": "pt_BR"'),
        ("a.arb", '{"@@locale": "pt", "a": "A dog"}', '"@@locale": "pt"', '"@@locale": "pt"'),
        ("a.po", 'msgid ""\nmsgstr "Language: en\\n"\n\nmsgid "A dog"\nmsgstr ""\n', "Language: en", "Language: pt_BR"),
        ("b.po", 'msgid ""\nmsgstr "X: a\\nLanguage: en\\n"\n\nmsgid "A"\nmsgstr ""\n', "Language: en", ": pt_BR"),
        ("a.po", 'msgid ""\nmsgstr ""\n"Language: \\n"\n\nmsgid "A"\nmsgstr ""\n', "Language: ", "Language: pt_BR"),
        ("a.po", 'msgid ""\nmsgstr "Language: fr\\n"\n\nmsgid "A"\nmsgstr "A"\n', "Language: fr", "Language: pt_BR"),
        ("a.po", 'msgid ""\nmsgstr "Language: pt_PT\\n"\n\nmsgid "A"\nmsgstr ""\n', "Language: pt", "Language: pt_PT"),
    ],
)
def test_languages_of_program_texts(name: str, content: str, before: str, after: str) -> None:
    document = open_document(name, content.encode(), DocumentOptions(source_language="en", target_language="pt-BR"))
    assert after + "\\n" * (name == "a.po") in document.render([TranslatedSegment("B")]).decode()
    assert before in document.render([TranslatedSegment(document.segments[0].text)]).decode()


def test_a_template_gets_the_language_and_its_plural_forms() -> None:
    template = (
        'msgid ""\nmsgstr ""\n"Language-Team: LANGUAGE <LL@li.org>\\n"\n%s"Plural-Forms: nplurals=%s;"\n" %s;\\n"\n\n'
        'msgid "A dog"\nmsgid_plural "Dogs"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    )
    source = template % ("", "INTEGER", "plural=EXPRESSION")
    written = translated("a.po", source, options=DocumentOptions(target_language="pl"))
    assert written.count("Language: pl\\n") == 1 and "nplurals=3; plural=(n==1 ? 0 " in written
    assert 'msgstr[0] "A DOG"' in written and 'msgstr[2] "DOGS"' in written
    french = template % ('"Language: fr\\n"\n', "2", "plural=(n > 1)")
    written = translated("a.po", french, options=DocumentOptions(target_language="de"))
    assert "Language: de\\n" in written and "nplurals=2; plural=(n != 1);\\n" in written
    polish = template % ('"Language: pl\\n"\n', "3", "plural=(n==1 ? 0 : 2)") + 'msgstr[2] ""\n'
    written = translated("a.po", polish, options=DocumentOptions(target_language="de"))
    assert 'msgstr[1] "DOGS"' in written and "msgstr[2]" not in written


PO = 'msgid ""\nmsgstr "Language: %s\\n"\n\nmsgid "A dog"\nmsgstr "%s"\n\nmsgid "Two dogs"\nmsgstr ""\n'


@pytest.mark.parametrize("header", [("fr", "Un chien"), ("en_GB", "The dog"), ("", "Ein Hund"), ("de", "A dog")])
def test_a_po_file_with_translations_into_another_language_is_refused(header: tuple[str, str]) -> None:
    content, options = (PO % header).encode(), DocumentOptions(source_language="en", target_language="de")
    if header[0] in ("", "de"):
        assert [segment.text for segment in open_document("a.po", content, options).segments] == ["Two dogs"]
    else:
        with pytest.raises(DocumentError, match=f"a.po has translations into '{header[0]}', not into de; accepted: "):
            open_document("a.po", content, options)


STYLES = (
    "<office:document-styles xmlns:office='o' xmlns:style='s' xmlns:fo='f'><style:text-properties fo:language=\"en\" "
    'fo:country="GB"/><style:text-properties fo:language="it" fo:country="IT"/></office:document-styles>'
)


@pytest.mark.parametrize(("target", "code"), [("fr", 'fo:language="fr" fo:country="FR"'), ("ja", "")])
def test_the_language_of_styles_of_open_document(target: str, code: str) -> None:
    files = {"content.xml": TEXT, "styles.xml": STYLES}
    written = capitals("a.odt", files, DocumentOptions(source_language="en", target_language=target))
    source = 'fo:language="en" fo:country="GB"'
    assert written["styles.xml"] == STYLES.replace(source, code or source)


def test_the_language_of_a_feed() -> None:
    feed = "<rss><channel><title>A dog</title><language>en-us</language></channel></rss>"
    options = DocumentOptions(source_language="en", target_language="pt-BR")
    assert translated("a.xml", feed, options=options) == feed.replace("A dog", "A DOG").replace("en-us", "pt-BR")


def test_the_language_of_metadata() -> None:
    odt, docx = {"content.xml": TEXT, "meta.xml": META}, {**DOCX, "core.xml": CORE}
    for name, member, files in (("a.odt", "meta.xml", odt), ("a.docx", "core.xml", docx)):
        written = capitals(name, files, DocumentOptions(source_language="en", target_language="de"))
        assert written[member] == files[member].replace("en-US", "de")
