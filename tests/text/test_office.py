"""Presentations and workbooks: the texts that are found, and what a translation changes."""

import io
import re
import zipfile
from collections.abc import Callable, Mapping

import pytest

from mt.errors import DocumentError
from mt.text.documents import open_document
from tests.text.documents import archive, capitals, members_of, package
from tests.text.test_word_runs import field, inside, run, word_file

DRAWING = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
SHOW = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
SHEET = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
MASTER = f"""<p:sldMaster {SHOW} {DRAWING}><p:sp><p:nvPr><p:ph type="title"/></p:nvPr><a:p><a:r><a:t>Edit it</a:t></a:r>
</a:p></p:sp><p:sp><p:cNvPr descr="A red dog"/><p:nvPr/><a:p><a:r><a:t>Secret</a:t></a:r></a:p></p:sp></p:sldMaster>"""
PRINTED = f"""<worksheet {SHEET}><dataValidation promptTitle="Size" prompt="A number" sqref="A1"/><headerFooter>
<oddHeader>&amp;L&amp;"Arial,Bold"&amp;12R&amp;&amp;D now&amp;RPage &amp;P of &amp;N</oddHeader></headerFooter>
</worksheet>"""
PRESENTATION, WORKBOOK, INSERTED = (package(name) for name in ("presentation", "workbook", "inserted"))


def test_translated_attributes_headers_and_inserted_files() -> None:
    translated = capitals("a.docx", INSERTED)
    attributes = re.findall('(?:alt|string|descr|w:val|displayText)="(.*?)"', translated["word/document.xml"])
    assert attributes == ["A CAT", "DRAFT", "A DOG", "TWO DOGS", "RED"]
    assert translated["word/a.htm"] == "<html><p>A <b>BIG</b> DOG</p></html>"
    assert translated["b.mht"] == INSERTED["b.mht"].replace("An old dog", "AN OLD DOG")
    header = capitals("a.xlsx", {"a.xml": PRINTED})["a.xml"]
    assert '>&amp;L&amp;"Arial,Bold"&amp;12R&amp;&amp;D NOW&amp;RPAGE &amp;P OF &amp;N<' in header
    relations = INSERTED["word/_rels/document.xml.rels"].replace("a.htm", "a.rtf")
    members = {**INSERTED, "word/_rels/document.xml.rels": relations, "word/a.rtf": "{rtf1}"}
    with pytest.raises(DocumentError, match=r"contains word/a\.rtf, which Word inserts.*; accepted: such files in"):
        open_document("a.docx", archive(members))


@pytest.mark.parametrize(
    "sheet",
    [
        '<sheetData><row><c><f>IF(A1="","",IF(A1="a Dog",1))</f></c></row></sheetData>',
        '<dataValidation type="list"><formula1>"red, a dog"</formula1></dataValidation>',
        '<autoFilter><filterColumn><filters><filter val="A dog"/></filters></filterColumn></autoFilter>',
    ],
)
def test_a_text_that_a_formula_a_list_or_a_filter_names_stays(sheet: str) -> None:
    name = "xl/worksheets/sheet1.xml"
    root = WORKBOOK[name].partition(">")[0] + ">"
    translated = capitals("a.xlsx", {**WORKBOOK, name: f"{root}{sheet}</worksheet>"})
    assert "<si><t>A dog</t></si>" in translated["xl/sharedStrings.xml"]
    assert "FIRST LINE" in translated["xl/sharedStrings.xml"] and sheet in translated[name]


RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
IMAGE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/image"
STRICT = re.compile(r"http://schemas\.openxmlformats\.org/(\w+)/2006/(\w+)")
PARAGRAPH = "<w:p>" + run("A ") + inside("ins", run("big ")) + field("PAGE", run("7")) + "</w:p>"
FILES = {
    "a.docx": members_of(word_file(PARAGRAPH, package("illustrated"))),
    "a.pptx": PRESENTATION,
    "a.xlsx": WORKBOOK,
    "b.xlsx": {
        **WORKBOOK,
        "xl/drawings/drawing1.xml": f'<xdr:wsDr xmlns:xdr="{DRAWING[9:-6]}/spreadsheetDrawing" '
        f"{DRAWING}><a:p><a:r><a:t>A shape</a:t></a:r></a:p></xdr:wsDr>",
    },
}
OTHERS: dict[str, Callable[[dict[str, str]], dict[str, str]]] = {
    "strict": lambda members: {name: STRICT.sub(r"http://purl.oclc.org/ooxml/\1/\2", m) for name, m in members.items()},
    "capitals": lambda members: {name.upper(): member for name, member in members.items()},
    "no folders": lambda members: {name.replace("/", "-"): member for name, member in members.items()},
    "other names": lambda members: {f"part/{n}.bin": members[name] for n, name in enumerate(sorted(members))},
    "long prologs": lambda members: {
        name: re.sub(r"^(<\?xml[^>]*\?>)?(?=<\w)", "<!--" + "license " * 1000 + "-->", member)
        for name, member in members.items()
    },
}


@pytest.mark.parametrize(
    ("name", "members", "texts"),
    [
        ("a.docx", INSERTED, ["a cat", "Draft", "A dog", "Two dogs", "red", "A big dog", "An old dog…"]),
        ("a.pptx", {"a.xml": MASTER, **PRESENTATION},
         ["A red house", "Cell one below", "Old Street", "Rome", "Page 7", "Last", "A note", "A red dog", "Secret",
          "East", "Sales"]),
        ("a.xlsx", {"a.xml": PRINTED}, ["R&&D now", "Page &P of &N", "Size", "A number"]),
        ("a.docx", FILES["a.docx"], ["A big 7", "The header", "East", "Sales", "Steps", "First", "A box"]),
        ("a.xlsx", WORKBOOK, ["A dog", "First line", "second line", "This is very good", "Inline"]),
    ],
)  # fmt: skip
def test_texts(name: str, members: Mapping[str, str], texts: list[str]) -> None:
    document = open_document(name, archive(members))
    assert [segment.text for segment in document.segments] == texts


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("name", FILES)
def test_parts_are_found_by_their_content(name: str, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
    expected = [segment.text for segment in open_document(name, archive(FILES[name])).segments]
    changed = change(dict(FILES[name]))
    assert changed != FILES[name] and len(changed) == len(FILES[name])
    assert sorted(segment.text for segment in open_document(name, archive(changed)).segments) == sorted(expected)
    translated = capitals(name, changed)
    written = "".join(translated.values())
    assert [text for text in expected if not set(text.upper().split()) <= set(re.split(r"[<>\s]", written))] == []


@pytest.mark.parametrize("target", ["NULL", "../gone/picture.png", "http://[bad", "mailto:a@b;c d@e", ""])
@pytest.mark.parametrize("mode", ["Internal", "External"])
def test_relationships_that_lead_nowhere_are_ignored(target: str, mode: str) -> None:
    relation = f'<Relationship Id="rId99" Type="{IMAGE}" Target="{target}" TargetMode="{mode}"/>'
    relations = {"word/_rels/document.xml.rels": f'<Relationships xmlns="{RELATIONS}">{relation}</Relationships>'}
    translated = capitals("a.docx", FILES["a.docx"] | relations)
    assert translated["word/document.xml"] == capitals("a.docx", FILES["a.docx"])["word/document.xml"]


def test_other_prefixes_of_namespaces_and_utf16() -> None:
    header = FILES["a.docx"]["word/header1.xml"]
    members = {"a.xml": re.sub(r"\bw:|(?<=xmlns:)w\b", lambda w: w[0].replace("w", "ns0"), header)}
    members |= {"b.xml": members["a.xml"].replace(":hdr", ":document")}
    assert members["a.xml"] == header.replace("w:", "ns0:").replace("xmlns:w=", "xmlns:ns0=")
    assert len(open_document("a.docx", archive(members)).segments) == 2
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        texts = WORKBOOK["xl/sharedStrings.xml"].replace('"1.0"', '"1.0" encoding="UTF-16"')
        file.writestr("xl/SharedStrings.xml", texts.encode("utf-16"))
    assert len(open_document("a.xlsx", out.getvalue()).segments) == 5


def test_formats_with_a_relative_namespace() -> None:
    """A canonical form of XML does not exist for such names, which damaged files have."""
    form = '<a:r><a:rPr><p:x b="{}"/></a:rPr><a:t>{}</a:t></a:r>'
    runs = form.format(1, "A ") + form.format(1, "dog ") + form.format(2, "ran")
    slide = f"<p:sld {SHOW} {DRAWING}><a:p>{runs}</a:p></p:sld>"
    document = open_document("a.pptx", archive({"ppt/slides/slide1.xml": slide}))
    assert [(segment.text, len(segment.marks)) for segment in document.segments] == [("A dog ran", 1)]


def test_the_form_of_a_paragraph_is_written_where_it_belongs() -> None:
    """Some programs write it behind the runs, or its end between them."""
    form, runs, end = '<a:pPr lvl="1"/>', "<a:r><a:t>%s</a:t></a:r>", '<a:endParaRPr sz="9"/>'
    slide = f"<p:sld {SHOW} {DRAWING}><a:p>{runs % 'A dog'}{end}{runs % ' ran.'}{form}</a:p></p:sld>"
    written = capitals("a.pptx", {"ppt/slides/slide1.xml": slide})["ppt/slides/slide1.xml"]
    assert f"<a:p>{form}{runs % 'A DOG RAN.'}{end}</a:p>" in written


def test_a_language_is_no_form_and_spaces_are_preserved() -> None:
    (mark,) = open_document("a.pptx", archive(PRESENTATION)).segments[0].marks
    assert (mark.begin, mark.end) == (2, 5)  # runs in other languages than the first have no marks
    assert 'xml:space="preserve">A ' in capitals("a.docx", FILES["a.docx"])["word/document.xml"]
