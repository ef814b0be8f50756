"""Realistic OpenDocument files by odfpy, and e-books."""

import zipfile
from collections.abc import Iterable, Mapping
from html import escape
from io import BytesIO
from typing import Any

from odf import dc, draw, office, style, table, teletype, text
from odf.opendocument import OpenDocument, OpenDocumentPresentation, OpenDocumentSpreadsheet, OpenDocumentText

from tests.text.realistic.office_files import picture
from tests.text.realistic.prose import FRENCH, GERMAN, OTHERS, Prose


def _saved(document: OpenDocument) -> bytes:
    out = BytesIO()
    document.write(out)
    return out.getvalue()


def _with(element: Any, *children: Any) -> Any:
    """Append texts and elements to an element, and return it."""
    for child in children:
        if isinstance(child, str):
            teletype.addTextToElement(element, child)
        else:
            element.addElement(child)
    return element


def _style(document: OpenDocument, name: str, family: str = "text", **properties: str) -> str:
    new = style.Style(name=name, family=family)
    new.addElement(style.TextProperties(attributes=properties))
    document.automaticstyles.addElement(new)
    return name


def _paragraph(*children: Any, **attributes: str) -> Any:
    return _with(text.P(**attributes), *children)


def open_text_files(prose: Prose) -> Iterable[bytes]:
    p = prose
    d = OpenDocumentText()
    bold, italic = _style(d, "B", fontweight="bold"), _style(d, "I", fontstyle="italic")
    d.text.addElement(_with(text.H(outlinelevel=1), p.title()))
    for _ in range(4):
        link = _with(text.A(href="https://example.org", type="simple"), "Read the manual")
        words = (
            "This is ",
            _with(text.Span(stylename=bold), "very important"),
            " and this is ",
            _with(text.Span(stylename=italic), "in italics"),
            ". ",
        )
        d.text.addElement(_paragraph(*words, link))
        d.text.addElement(_paragraph(p.paragraph()))
    yield _saved(d)

    d = OpenDocumentText()
    grid = table.Table(name="Table1")
    grid.addElement(table.TableColumn(numbercolumnsrepeated=3))
    for number in range(3):
        row = table.TableRow()
        grid.addElement(row)
        if number == 0:
            row.addElement(_with(table.TableCell(numbercolumnsspanned=3), _paragraph(p.title())))
            row.addElement(table.CoveredTableCell(numbercolumnsrepeated=2))
            continue
        for _ in range(3):
            row.addElement(_with(table.TableCell(), _paragraph(p.label())))
    d.text.addElement(grid)
    d.text.addElement(_paragraph(p.sentence()))
    yield _saved(d)

    d = OpenDocumentText()
    outer = text.List()
    for _ in range(3):
        item = _with(text.ListItem(), _paragraph(p.sentence()))
        item.addElement(_with(text.List(), _with(text.ListItem(), _paragraph(p.sentence()))))
        outer.addElement(item)
    d.text.addElement(outer)
    d.text.addElement(
        _paragraph("A line", text.LineBreak(), "after a break", text.Tab(), "and a tab", text.S(c=3), "and spaces")
    )
    yield _saved(d)

    d = OpenDocumentText()
    note = text.Note(id="n1", noteclass="footnote")
    note.addElement(_with(text.NoteCitation(), "1"))
    note.addElement(_with(text.NoteBody(), _paragraph("The text of the footnote.")))
    d.text.addElement(_paragraph("A paragraph with a footnote", note, " in the middle."))
    comment = office.Annotation()
    comment.addElement(_with(dc.Creator(), "Tom"))
    comment.addElement(_paragraph("Please check this."))
    d.text.addElement(_paragraph("A paragraph with ", comment, "a comment."))
    d.text.addElement(
        _paragraph("A ", text.BookmarkStart(name="b"), "bookmarked word", text.BookmarkEnd(name="b"), " is here.")
    )
    d.text.addElement(
        _paragraph(
            "Page ",
            _with(text.PageNumber(selectpage="current"), "1"),
            " of ",
            _with(text.PageCount(), "2"),
            ", ",
            _with(text.Title(), "A title"),
            ", ",
            _with(text.ModificationDate(), "05/03/2024"),
        )
    )
    yield _saved(d)

    d = OpenDocumentText()
    frame = draw.Frame(width="3cm", height="3cm", anchortype="as-char")
    frame.addElement(
        draw.Image(href=d.addPictureFromString(picture(), "image/png"), type="simple", show="embed", actuate="onLoad")
    )
    d.text.addElement(_paragraph("A picture ", frame, " within the text."))
    box = draw.Frame(width="6cm", height="2cm", anchortype="paragraph")
    box.addElement(_with(draw.TextBox(), _paragraph("Text in a frame."), _paragraph(p.sentence())))
    d.text.addElement(_paragraph("Before the frame ", box, "and after it."))
    d.text.addElement(_with(text.Section(name="S"), _paragraph(p.paragraph())))
    yield _saved(d)

    d = OpenDocumentText()
    ruby = text.Ruby()
    ruby.addElement(_with(text.RubyBase(), "漢字"))
    ruby.addElement(_with(text.RubyText(), "kanji"))
    d.text.addElement(_paragraph("The word ", ruby, " has a reading."))
    for sentence in (*GERMAN, *FRENCH, *OTHERS, 'A & B < C > D "quoted" it\'s'):
        d.text.addElement(_paragraph(sentence))
    master = d.masterstyles
    layout = style.PageLayout(name="L")
    d.automaticstyles.addElement(layout)
    page = style.MasterPage(name="Standard", pagelayoutname=layout)
    page.addElement(_with(style.Header(), _paragraph("The header of the page")))
    page.addElement(_with(style.Footer(), _paragraph("Page ", _with(text.PageNumber(), "1"))))
    master.addElement(page)
    yield _saved(d)


def open_sheet_files(prose: Prose) -> Iterable[bytes]:
    p = prose

    def cell(value: object, formula: str = "") -> Any:
        if formula:
            kind = (
                {"valuetype": "float", "value": str(value)}
                if isinstance(value, (int, float))
                else {"valuetype": "string"}
            )
            return _with(table.TableCell(formula=formula, **kind), _paragraph(str(value)))
        if isinstance(value, (int, float)):
            return _with(table.TableCell(valuetype="float", value=str(value)), _paragraph(str(value)))
        return _with(table.TableCell(valuetype="string"), *(_paragraph(line) for line in str(value).split("\n")))

    def book(*sheets: tuple[str, list[list[Any]]]) -> bytes:
        d = OpenDocumentSpreadsheet()
        for name, rows in sheets:
            grid = table.Table(name=name)
            for row in rows:
                grid.addElement(
                    _with(table.TableRow(), *(item if hasattr(item, "qname") else cell(item) for item in row))
                )
            d.spreadsheet.addElement(grid)
        return _saved(d)

    yield book(
        (
            "Prices",
            [
                ["Name", "Price"],
                *([p.label(), p.number()] for _ in range(6)),
                ["Total", cell(12, "of:=SUM([.B2:.B7])")],
            ],
        )
    )
    yield book(
        ("One", [[p.sentence()], [p.paragraph()], ["First line\nsecond line"]]),
        ("Two", [[text_] for text_ in (*GERMAN, *OTHERS)]),
    )
    yield book(
        (
            "S",
            [
                ["State", "Text"],
                ["open", cell("Still open", 'of:=IF([.A2]="open";"Still open";"Done")')],
                [p.label(), "A & B < C"],
            ],
        )
    )
    date = _with(table.TableCell(valuetype="date", datevalue="2024-05-03"), _paragraph("05/03/24"))
    money = _with(table.TableCell(valuetype="currency", currency="EUR", value="12.5"), _paragraph("12.50 €"))
    part = _with(table.TableCell(valuetype="percentage", value="0.5"), _paragraph("50%"))
    yield book(
        (
            "Values",
            [
                ["Date", date],
                ["Price", money],
                ["Part", part],
                ["Yes", _with(table.TableCell(valuetype="boolean", booleanvalue="true"), _paragraph("TRUE"))],
            ],
        )
    )
    wide = _with(table.TableCell(valuetype="string", numbercolumnsspanned=2), _paragraph(p.title()))
    link = _with(
        table.TableCell(valuetype="string"),
        _paragraph(_with(text.A(href="https://example.org", type="simple"), "Our page")),
    )
    note = office.Annotation()
    note.addElement(_paragraph("Please check this."))
    commented = _with(table.TableCell(valuetype="string"), note, _paragraph("A cell with a comment"))
    yield book(
        (
            "M",
            [
                [wide, table.CoveredTableCell()],
                [link, commented],
                [table.TableCell(numbercolumnsrepeated=3), p.label()],
            ],
        )
    )
    yield book(
        *(
            (f"Sheet{number}", [[p.sentence(), p.number(), f"ID-{p.number()}"] for _ in range(30)])
            for number in range(3)
        )
    )


def open_slide_files(prose: Prose) -> Iterable[bytes]:
    p = prose

    def deck(*pages: list[Any]) -> bytes:
        d = OpenDocumentPresentation()
        layout = style.PageLayout(name="L")
        layout.addElement(style.PageLayoutProperties(pagewidth="28cm", pageheight="21cm", printorientation="landscape"))
        d.automaticstyles.addElement(layout)
        master = style.MasterPage(name="M", pagelayoutname=layout)
        d.masterstyles.addElement(master)
        for number, shapes in enumerate(pages):
            page = draw.Page(name=f"page{number}", masterpagename=master)
            d.presentation.addElement(_with(page, *shapes))
        return _saved(d)

    def box(*paragraphs: Any, y: int = 2) -> Any:
        frame = draw.Frame(width="20cm", height="3cm", x="2cm", y=f"{y}cm")
        return _with(
            frame, _with(draw.TextBox(), *(item if hasattr(item, "qname") else _paragraph(item) for item in paragraphs))
        )

    yield deck([box(p.title()), box(p.sentence(), p.sentence(), y=6)], [box(p.title()), box(p.paragraph(), y=6)])
    items = text.List()
    for _ in range(3):
        items.addElement(
            _with(
                text.ListItem(),
                _paragraph(p.sentence()),
                _with(text.List(), _with(text.ListItem(), _paragraph(p.label()))),
            )
        )
    yield deck([box(p.title()), box(items, y=6)])
    shape = _with(draw.Rect(width="8cm", height="3cm", x="3cm", y="12cm"), _paragraph("Next step"))
    yield deck([box(_paragraph("A ", _with(text.Span(), "marked"), " word", text.LineBreak(), "and a break")), shape])
    yield deck(*([box(sentence, y=2 + number)] for number, sentence in enumerate((*GERMAN, *FRENCH, *OTHERS))))
    grid = table.Table()
    grid.addElement(table.TableColumn(numbercolumnsrepeated=2))
    for _ in range(3):
        grid.addElement(_with(table.TableRow(), *(_with(table.TableCell(), _paragraph(p.label())) for _ in range(2))))
    yield deck([box(p.title()), _with(draw.Frame(width="20cm", height="6cm", x="2cm", y="6cm"), grid)])
    link = _paragraph(
        "Read ",
        _with(text.A(href="https://example.org", type="simple"), "the manual"),
        " & more, page ",
        _with(text.PageNumber(), "1"),
    )
    yield deck(
        *([box(f"{number}. {p.title()}"), box(link if number == 0 else p.sentence(), y=6)] for number in range(10))
    )


def _book(members: Mapping[str, bytes | str]) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip", zipfile.ZIP_STORED)
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def book_files(prose: Prose) -> Iterable[bytes]:
    """Ten e-books of versions 2 and 3."""
    p = prose
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    container = f'{head}<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="OEBPS/content.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'

    def sentence() -> str:
        return escape(p.sentence(), quote=False)

    def chapter(body: str, name: str = "") -> str:
        return f'{head}<!DOCTYPE html>\n<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" xml:lang="en"><head><title>{name or p.title()}</title><link rel="stylesheet" href="style.css"/></head>\n<body>\n{body}\n</body></html>'

    def book(
        chapters: list[str],
        version: str = "3.0",
        more: Mapping[str, bytes | str] | None = None,
        suffix: str = "xhtml",
        title: str = "",
    ) -> bytes:
        title = title or p.title()
        files = {f"chapter{number}.{suffix}": body for number, body in enumerate(chapters, 1)}
        listed = "".join(f'<item id="{name}" href="{name}" media-type="application/xhtml+xml"/>' for name in files)
        spine = "".join(f'<itemref idref="{name}"/>' for name in files)
        points = "".join(
            f'<navPoint id="n{n}" playOrder="{n}"><navLabel><text>Chapter {n}</text></navLabel><content src="{name}"/></navPoint>'
            for n, name in enumerate(files, 1)
        )
        opf = f'{head}<package xmlns="http://www.idpf.org/2007/opf" version="{version}" unique-identifier="id"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="id">urn:x</dc:identifier><dc:title>{title}</dc:title><dc:language>en</dc:language><dc:creator>Anna Miller</dc:creator></metadata><manifest>{listed}<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/></manifest><spine toc="ncx">{spine}</spine></package>'
        ncx = f'{head}<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/" version="2005-1"><head><meta name="dtb:uid" content="urn:x"/></head><docTitle><text>{title}</text></docTitle><docAuthor><text>Anna Miller</text></docAuthor><navMap>{points}</navMap></ncx>'
        members: dict[str, bytes | str] = {
            "META-INF/container.xml": container,
            "OEBPS/content.opf": opf,
            "OEBPS/toc.ncx": ncx,
            "OEBPS/style.css": "p { color: red }",
        }
        return _book({**members, **{f"OEBPS/{name}": body for name, body in files.items()}, **(more or {})})

    yield book([chapter(f"<h1>Chapter {n}</h1>" + "".join(f"<p>{sentence()}</p>" for _ in range(5))) for n in range(3)])
    yield book(
        [
            chapter(f"<h1>{p.title()}</h1><p>{sentence()} <em>{sentence()}</em></p>").replace(
                "<!DOCTYPE html>",
                '<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.1//EN" "http://www.w3.org/TR/xhtml11/DTD/xhtml11.dtd">',
            )
        ],
        "2.0",
        suffix="html",
    )
    yield book(
        [
            chapter(
                f'<p>{sentence()}<a epub:type="noteref" href="#n1"><sup>1</sup></a> {sentence()}</p><aside epub:type="footnote" id="n1"><p>{sentence()}</p></aside>'
            )
        ]
    )
    nav = chapter(
        '<nav epub:type="toc"><h2>Contents</h2><ol><li><a href="chapter1.xhtml">The first chapter</a></li></ol></nav>',
        "Contents",
    )
    yield book([chapter(f"<p>{sentence()}</p>")], more={"OEBPS/nav.xhtml": nav})
    yield book(
        [chapter(f'<figure><img src="a.png" alt="A red square"/><figcaption>{sentence()}</figcaption></figure>')],
        more={"OEBPS/a.png": picture()},
    )
    yield book(
        [
            chapter(
                "<p><ruby>漢<rt>kan</rt>字<rt>ji</rt></ruby></p>"
                + "".join(f"<p>{text_}</p>" for text_ in (*GERMAN, *FRENCH, *OTHERS))
            )
        ]
    )
    rows = "".join(f"<tr><td>{p.label()}</td><td>{sentence()}</td></tr>" for _ in range(4))
    yield book(
        [
            chapter(
                f"<table><caption>{p.title()}</caption>{rows}</table><ul><li>{sentence()}<ul><li>{sentence()}</li></ul></li></ul>"
            )
        ]
    )
    yield book(
        [
            chapter(
                f"<p>Tom &amp; Anna&#160;&#8211; &lt;here&gt;</p><p>{sentence()}<br/>{sentence()}</p><pre>kept  code</pre><blockquote><p>{sentence()}</p></blockquote>"
            )
        ]
    )
    yield book(
        [
            chapter(
                f'<svg xmlns="http://www.w3.org/2000/svg"><text>kept</text></svg><p><span class="first">T</span>he station is behind the <b>old <i>church</i></b>.</p><p>{sentence()}</p>'
            ).replace("\n", "\r\n")
        ]
    )
    yield book(
        [chapter("".join(f"<p>{escape(p.paragraph(6), quote=False)}</p>" for _ in range(10))) for _ in range(8)],
        title="A & B".replace("&", "&amp;"),
    )
