"""Realistic Office files: .docx by python-docx, .pptx by python-pptx, and .xlsx by openpyxl."""

import datetime
import struct
import zlib
from collections.abc import Iterable
from io import BytesIO
from typing import Any

import docx
import openpyxl
import pptx
from docx.enum.section import WD_ORIENT
from docx.enum.text import WD_BREAK
from docx.oxml import OxmlElement, parse_xml
from docx.oxml.ns import nsdecls, qn
from docx.shared import Pt, RGBColor
from openpyxl.cell.rich_text import CellRichText, TextBlock
from openpyxl.cell.text import InlineFont
from openpyxl.chart import BarChart, PieChart, Reference
from openpyxl.comments import Comment
from openpyxl.drawing.image import Image
from openpyxl.formatting.rule import CellIsRule
from openpyxl.styles import Alignment, Font, PatternFill
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.table import Table
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.enum.shapes import MSO_SHAPE
from pptx.util import Inches
from pptx.util import Pt as SlidePt

from tests.text.realistic.prose import FRENCH, GERMAN, OTHERS, Prose


def picture(side: int = 40) -> bytes:
    """Return a PNG image: a red square."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\xc0\x20\x20" * side) * side
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def _saved(document: Any) -> bytes:
    out = BytesIO()
    document.save(out)
    return out.getvalue()


def _link(paragraph: Any, text: str, address: str) -> None:
    part = paragraph.part.relate_to(
        address, "http://schemas.openxmlformats.org/officeDocument/2006/relationships/hyperlink", is_external=True
    )
    link = OxmlElement("w:hyperlink")
    link.set(qn("r:id"), part)
    run = paragraph.add_run(text)
    run.font.underline = True
    run.font.color.rgb = RGBColor(0, 0, 200)
    link.append(run._r)
    paragraph._p.append(link)


def _field(paragraph: Any, code: str, text: str) -> None:
    for xml in (
        '<w:r {}><w:fldChar w:fldCharType="begin"/></w:r>', f'<w:r {{}}><w:instrText xml:space="preserve"> {code} </w:instrText></w:r>',
        '<w:r {}><w:fldChar w:fldCharType="separate"/></w:r>', f"<w:r {{}}><w:t>{text}</w:t></w:r>", '<w:r {}><w:fldChar w:fldCharType="end"/></w:r>',
    ):  # fmt: skip
        paragraph._p.append(parse_xml(xml.format(nsdecls("w"))))


def word_files(prose: Prose) -> Iterable[bytes]:
    p = prose
    d = docx.Document()
    d.add_heading(p.title(), 0)
    for _ in range(3):
        d.add_heading(p.title(), 1)
        d.add_paragraph(p.paragraph())
        mixed = d.add_paragraph("This is ")
        mixed.add_run("very important").bold = True
        mixed.add_run(" and this is ")
        mixed.add_run("in italics").italic = True
        mixed.add_run(". ")
        _link(mixed, "Read the manual", "https://example.org/manual")
    yield _saved(d)

    d = docx.Document()
    table = d.add_table(rows=4, cols=3, style="Light Grid Accent 1")
    for row in table.rows:
        for cell in row.cells:
            cell.text = p.label()
    table.cell(0, 0).merge(table.cell(0, 2)).text = p.title()
    table.cell(1, 0).merge(table.cell(2, 0))
    nested = table.cell(3, 2).add_table(1, 2)
    nested.cell(0, 0).text, nested.cell(0, 1).text = "Inner cell", p.sentence()
    d.add_paragraph(p.paragraph())
    yield _saved(d)

    d = docx.Document()
    section = d.sections[0]
    section.different_first_page_header_footer = True
    section.header.paragraphs[0].text = "The header\twith a\ttab"
    section.first_page_header.paragraphs[0].text = "Only on the first page"
    footer = section.footer.paragraphs[0]
    footer.add_run("Page ")
    _field(footer, "PAGE", "1")
    footer.add_run(" of ")
    _field(footer, "NUMPAGES", "2")
    d.add_paragraph(p.paragraph())
    d.add_page_break()
    new = d.add_section()
    new.orientation, new.page_width, new.page_height = WD_ORIENT.LANDSCAPE, new.page_height, new.page_width
    new.header.is_linked_to_previous = False
    new.header.paragraphs[0].text = "Another header"
    d.add_paragraph(p.paragraph())
    yield _saved(d)

    d = docx.Document()
    for style, count in (
        ("List Bullet", 3),
        ("List Bullet 2", 2),
        ("List Number", 3),
        ("List Number 2", 2),
        ("Intense Quote", 1),
    ):
        for _ in range(count):
            d.add_paragraph(p.sentence(), style=style)
    run = d.add_paragraph("A line").add_run()
    run.add_break()
    run.add_text("after a line break")
    run.add_break(WD_BREAK.PAGE)
    run.add_tab()
    run.add_text("after a page break and a tab")
    yield _saved(d)

    d = docx.Document()
    d.core_properties.title, d.core_properties.author = p.title(), "Anna Miller"
    d.add_picture(BytesIO(picture()))
    inline = d.add_paragraph("A picture ")
    inline.add_run().add_picture(BytesIO(picture(12)))
    inline.add_run(" within the text. ")
    inline.add_run("Small").font.size = Pt(7)
    inline.add_run(" and ")
    high = inline.add_run("LARGE")
    high.font.size, high.font.color.rgb = Pt(24), RGBColor(200, 0, 0)
    inline.add_run(" letters, H")
    inline.add_run("2").font.subscript = True
    inline.add_run("O.")
    commented = d.add_paragraph("A paragraph with ")
    run = commented.add_run("a comment")
    commented.add_run(" by a reviewer.")
    d.add_comment(run, text="Please check this.", author="Tom")
    yield _saved(d)

    d = docx.Document()
    d.add_paragraph(p.sentence())
    _field(d.add_paragraph("Contents: "), 'TOC \\o "1-3"', "Update the field")
    d.add_paragraph()._p.append(
        parse_xml(f'<w:ins {nsdecls("w")} w:id="1" w:author="Tom"><w:r><w:t>inserted words</w:t></w:r></w:ins>')
    )
    control = f'<w:sdt {nsdecls("w")}><w:sdtPr><w:alias w:val="Name"/></w:sdtPr><w:sdtContent><w:p><w:r><w:t>Text in a content control.</w:t></w:r></w:p></w:sdtContent></w:sdt>'
    d.element.body.insert(1, parse_xml(control))
    split = d.add_paragraph()
    for part in ("Run", "s that ", "Word spl", "it at ran", "dom pla", "ces."):
        split.add_run(part)
    for text in (*GERMAN, *FRENCH, *OTHERS):
        d.add_paragraph(text)
    d.add_paragraph("  Two spaces before, \u00a0a hard space, a soft\u00adhyphen and a no‑break hyphen  ")
    yield _saved(d)


def slide_files(prose: Prose) -> Iterable[bytes]:
    p = prose

    def deck(*layouts: int) -> tuple[Any, list[Any]]:
        presentation = pptx.Presentation()
        return presentation, [presentation.slides.add_slide(presentation.slide_layouts[number]) for number in layouts]

    deck_, (first, second) = deck(0, 1)
    first.shapes.title.text, first.placeholders[1].text = p.title(), p.plain()
    second.shapes.title.text = p.title()
    frame = second.placeholders[1].text_frame
    frame.text = p.sentence()
    for level in (1, 2, 0):
        paragraph = frame.add_paragraph()
        paragraph.text, paragraph.level = p.sentence(), level
    second.notes_slide.notes_text_frame.text = p.paragraph()
    yield _saved(deck_)

    deck_, (slide,) = deck(5)
    slide.shapes.title.text = p.title()
    table = slide.shapes.add_table(3, 3, Inches(1), Inches(2), Inches(8), Inches(2)).table
    for row in range(3):
        for column in range(3):
            table.cell(row, column).text = p.label() if row else f"Column {column + 1}"
    table.cell(1, 0).merge(table.cell(1, 1))
    yield _saved(deck_)

    deck_, (slide,) = deck(5)
    slide.shapes.title.text = p.title()
    data = CategoryChartData()
    data.categories = ["East", "West", "North"]
    data.add_series("First quarter", (19.2, 21.4, 16.7))
    data.add_series("Second quarter", (22.3, 28.6, 15.2))
    chart = slide.shapes.add_chart(
        XL_CHART_TYPE.COLUMN_CLUSTERED, Inches(1), Inches(2), Inches(7), Inches(4), data
    ).chart
    chart.has_title, chart.has_legend = True, True
    chart.chart_title.text_frame.text = "Sales of the year"
    chart.value_axis.has_title = True
    chart.value_axis.axis_title.text_frame.text = "Millions of euros"
    yield _saved(deck_)

    deck_, (slide,) = deck(6)
    box = slide.shapes.add_textbox(Inches(1), Inches(1), Inches(6), Inches(1)).text_frame
    paragraph = box.paragraphs[0]
    for text, bold, address in (
        ("A text with ", False, ""),
        ("bold", True, ""),
        (" words and ", False, ""),
        ("a link", False, "https://example.org"),
        (".", False, ""),
    ):
        run = paragraph.add_run()
        run.text, run.font.bold = text, bold
        if address:
            run.hyperlink.address = address
    paragraph.add_line_break()
    last = paragraph.add_run()
    last.text, last.font.size = "After a line break", SlidePt(30)
    shape = slide.shapes.add_shape(MSO_SHAPE.RIGHT_ARROW, Inches(1), Inches(3), Inches(3), Inches(1))
    shape.text_frame.text = "Next step"
    yield _saved(deck_)

    deck_, slides = deck(1, 3, 8)
    for slide in slides:
        for holder in slide.placeholders:
            if (
                holder.placeholder_format.type is not None
                and holder.has_text_frame
                and holder.placeholder_format.idx < 10
            ):
                holder.text_frame.text = p.plain()
    slides[2].placeholders[1].insert_picture(BytesIO(picture()))
    group = slides[0].shapes.add_group_shape()
    for number in range(2):
        group.shapes.add_textbox(Inches(1 + 3 * number), Inches(6), Inches(3), Inches(1)).text_frame.text = p.label()
    yield _saved(deck_)

    deck_, slides = deck(*(1 for _ in range(12)))
    for number, slide in enumerate(slides):
        slide.shapes.title.text = f"{number + 1}. {p.title()}"
        slide.placeholders[1].text_frame.text = "\n".join(
            [p.sentence(), p.random.choice(OTHERS), "first line\vsecond line"]
        )
    yield _saved(deck_)


def sheet_files(prose: Prose) -> Iterable[bytes]:
    p = prose
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Prices"
    sheet.append(["Name", "Price", "Count", "Sum"])
    for row in range(2, 8):
        sheet.append([p.label(), p.number() / 10, p.number(20), f"=B{row}*C{row}"])
    sheet.append(["Total", None, None, "=SUM(D2:D7)"])
    for cell in sheet[1]:
        cell.font, cell.fill = Font(bold=True, color="FFFFFF"), PatternFill("solid", fgColor="336699")
    sheet.freeze_panes, sheet.auto_filter.ref = "A2", "A1:D8"
    sheet["B2"].number_format = '#,##0.00 "euros"'
    yield _saved(book)

    book = openpyxl.Workbook()
    sheet = book.active
    sheet["A1"], sheet["A3"] = p.title(), p.paragraph()
    sheet.merge_cells("A1:D1")
    sheet["A3"].alignment = Alignment(wrap_text=True)
    sheet["A5"], sheet["A5"].hyperlink = "Our page", "https://example.org"
    sheet["A6"] = "A cell with a comment"
    sheet["A6"].comment = Comment("Please check this.", "Tom")
    sheet["A7"], sheet["B7"], sheet["C7"] = datetime.date(2024, 5, 3), datetime.datetime(2024, 5, 3, 12, 30), True
    sheet["A8"] = "First line\nsecond line\n\nlast line"
    sheet["A9"], sheet["B9"] = "  Spaces around  ", "<b>no tag</b> & more"
    yield _saved(book)

    book = openpyxl.Workbook()
    sheet = book.active
    bold, red = InlineFont(b=True), InlineFont(color="FF0000", i=True)
    sheet["A1"] = CellRichText("A text with ", TextBlock(bold, "bold"), " and ", TextBlock(red, "red"), " words.")
    sheet["A2"] = CellRichText(TextBlock(bold, "Note: "), p.sentence())
    for row, text in enumerate((*GERMAN, *FRENCH, *OTHERS), 3):
        sheet.cell(row, 1, text)
    yield _saved(book)

    book = openpyxl.Workbook()
    sheet = book.active
    for cells in (["Region", "Sales", "Costs"], ["East", 10, 4], ["West", 14, 5], ["North", 7, 3]):
        sheet.append(cells)
    bars = BarChart()
    bars.title, bars.x_axis.title, bars.y_axis.title = "Sales of the year", "Region", "Millions"
    bars.add_data(Reference(sheet, min_col=2, max_col=3, min_row=1, max_row=4), titles_from_data=True)
    bars.set_categories(Reference(sheet, min_col=1, min_row=2, max_row=4))
    sheet.add_chart(bars, "E2")
    pie = PieChart()
    pie.title = "Shares"
    pie.add_data(Reference(sheet, min_col=2, min_row=1, max_row=4), titles_from_data=True)
    sheet.add_chart(pie, "E20")
    sheet.add_image(Image(BytesIO(picture())), "A10")
    yield _saved(book)

    book = openpyxl.Workbook()
    sheet = book.active
    for cells in (
        ["Task", "Owner", "State"],
        *([p.plain(), "Anna", p.random.choice(["open", "done"])] for _ in range(6)),
    ):
        sheet.append(cells)
    sheet.add_table(Table(displayName="Tasks", ref="A1:C7"))
    choice = DataValidation(
        type="list", formula1='"open,done"', showInputMessage=True, promptTitle="State", prompt="Choose a state"
    )
    sheet.add_data_validation(choice)
    choice.add("C2:C7")
    sheet["E1"] = '=IF(C2="open","Still open","Done")'
    sheet["E2"] = '=CONCATENATE(A2," and ",A3)'
    sheet.conditional_formatting.add(
        "C2:C7", CellIsRule(operator="equal", formula=['"open"'], fill=PatternFill("solid", bgColor="FFCC00"))
    )
    sheet.oddHeader.center.text, sheet.oddFooter.right.text = "List of tasks", "Page &P of &N"
    yield _saved(book)

    book = openpyxl.Workbook()
    for number in range(3):
        sheet = book.create_sheet(f"Sheet {number + 2}")
        for row in range(1, 40):
            sheet.cell(row, 1, p.sentence())
            sheet.cell(row, 2, p.number())
            sheet.cell(row, 3, f"ID-{p.number()}")
        sheet.column_dimensions["A"].width, sheet.sheet_state = 50, "hidden" if number == 2 else "visible"
    book["Sheet 2"]["E1"] = "='Sheet 3'!B1*2"
    yield _saved(book)
