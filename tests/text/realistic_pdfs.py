"""Ten realistic PDF files, written by reportlab, and the blocks that a reader sees in each."""

from collections.abc import Callable
from io import BytesIO
from random import Random
from typing import Any

from reportlab.lib import colors
from reportlab.lib.enums import TA_CENTER, TA_JUSTIFY
from reportlab.lib.pagesizes import A4, LETTER, landscape
from reportlab.lib.styles import ParagraphStyle, getSampleStyleSheet
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import (
    BaseDocTemplate,
    Frame,
    ListFlowable,
    PageBreak,
    PageTemplate,
    Paragraph,
    SimpleDocTemplate,
    Spacer,
    Table,
)

Blocks = list[tuple[str, str]]
"""Kind and text of each block, in reading order; running titles first."""

STYLES = getSampleStyleSheet()
NORMAL, BODY = STYLES["Normal"], STYLES["BodyText"]
WORDS = """house river machine garden teacher winter music letter window bridge engine valley kitchen market doctor
island paper school forest ticket camera village button ladder"""
NOUNS = WORDS.split()
SENTENCES = (
    "The {} near the {} was closed for a week, and nobody could reach the {}.",
    "Our {} needs a new {}, which costs more than the old {} and the {} together.",
    "If the {} does not move, check the {} and the {} before you open the {}.",
    "Visitors find the {} behind the {}, next to the well-known {} of the {}.",
)


def prose(random: Random, sentences: int) -> str:
    """Return a paragraph that differs from all others."""
    drawn = (random.choice(SENTENCES) for _ in range(sentences))
    return " ".join(sentence.format(*random.choices(NOUNS, k=4)) for sentence in drawn)


def report(random: Random) -> tuple[bytes, Blocks]:
    """A report with headings of three sizes."""
    story, blocks = [Paragraph("Annual Report", STYLES["Title"])], [("heading 1", "Annual Report")]
    for title in ("1. Introduction", "2. Results"):
        story.append(Paragraph(title, STYLES["Heading1"]))
        story.append(Paragraph("Overview", STYLES["Heading2"]))
        blocks += [("heading 1", title), ("heading 2", "Overview")]
        for text in [prose(random, 3) for _ in range(3)]:
            story.append(Paragraph(text, BODY))
            blocks.append(("paragraph", text))
    return built(SimpleDocTemplate, story), blocks


def columns(random: Random) -> tuple[bytes, Blocks]:
    """A journal with two columns of justified paragraphs, which begin with an indent and go over columns and pages."""
    style = ParagraphStyle("j", parent=NORMAL, alignment=TA_JUSTIFY, firstLineIndent=12)
    width = (A4[0] - 164) / 2
    frames = [Frame(72, 72, width, 650), Frame(92 + width, 72, width, 650)]

    def titles(canvas: Canvas, _: object) -> None:
        canvas.setFont("Helvetica", 8)
        canvas.drawString(72, 800, "Journal of Examples, volume 12")
        canvas.drawCentredString(300, 30, str(canvas.getPageNumber()))

    story: list[Any] = []
    blocks = [("header", "Journal of Examples, volume 12")]
    for number in range(30):
        if number % 8 == 0:
            story.append(Paragraph(f"{number} Methods and Materials", STYLES["Heading2"]))
            blocks.append(("heading 1", f"{number} Methods and Materials"))
        text = prose(random, 3)
        story.append(Paragraph(text, style))
        blocks.append(("paragraph", text))
    out = BytesIO()
    template = BaseDocTemplate(out, pagesize=A4)
    template.addPageTemplates(PageTemplate(frames=frames, onPage=titles))
    template.build(story)
    return out.getvalue(), blocks


def book(random: Random) -> tuple[bytes, Blocks]:
    """A novel: a running title, page numbers with text, indented paragraphs without space between them."""
    body = ParagraphStyle("b", fontName="Times-Roman", fontSize=11, leading=14, alignment=TA_JUSTIFY)
    body.firstLineIndent = 14
    title = ParagraphStyle("t", fontName="Times-Bold", fontSize=18, leading=24, alignment=TA_CENTER, spaceAfter=20)
    story: list[Any] = []
    blocks = [("header", "The House by the River")]
    for chapter in range(1, 5):
        story.append(Paragraph(f"Chapter {chapter}", title))
        blocks.append(("heading 1", f"Chapter {chapter}"))
        for text in [prose(random, 4) for _ in range(14)]:
            story.append(Paragraph(text, body))
            blocks.append(("paragraph", text))
        story.append(PageBreak())

    def running(canvas: Canvas, _: object) -> None:
        canvas.setFont("Times-Italic", 9)
        canvas.drawString(72, 800, "The House by the River")
        canvas.drawCentredString(300, 40, f"Page {canvas.getPageNumber()}")

    out = BytesIO()
    SimpleDocTemplate(out, pagesize=A4).build(story, onFirstPage=running, onLaterPages=running)
    return out.getvalue(), blocks


def manual(random: Random) -> tuple[bytes, Blocks]:
    """A manual with lists, and headings that are only bold."""
    bullets, steps = [prose(random, 2) for _ in range(3)], [prose(random, 2) for _ in range(3)]
    story = [
        Paragraph("User manual", STYLES["Title"]),
        ListFlowable([Paragraph(text, NORMAL) for text in bullets], bulletType="bullet"),
        Paragraph("<b>Before you begin</b>", NORMAL),
        ListFlowable([Paragraph(text, NORMAL) for text in steps], bulletType="1", bulletFormat="%s."),
    ]
    numbered = [("paragraph", f"{number}. {text}") for number, text in enumerate(steps, 1)]
    listed = [("bullet", text) for text in bullets]
    return built(SimpleDocTemplate, story), [
        ("heading 1", "User manual"),
        *listed,
        ("heading 2", "Before you begin"),
        *numbered,
    ]


def invoice(random: Random) -> tuple[bytes, Blocks]:
    """An invoice with a table."""
    rows = [["Item", "Description"], ["Chair", "made of wood"], ["Table", "round and white"]]
    table = Table(rows, colWidths=[100, 240])
    table.setStyle([("GRID", (0, 0), (-1, -1), 0.5, colors.black), ("FONTNAME", (0, 0), (-1, 0), "Helvetica-Bold")])
    text = prose(random, 2)
    story = [Paragraph("Invoice 118", STYLES["Heading1"]), Paragraph(text, NORMAL), Spacer(1, 12), table]
    return built(SimpleDocTemplate, story), [
        ("heading 1", "Invoice 118"),
        ("paragraph", text),
        *(("paragraph", cell) for row in rows for cell in row),
    ]


def letter(_: Random) -> tuple[bytes, Blocks]:
    """A letter with an address and hyphens at the ends of lines, drawn line by line."""
    groups = [
        (["Anna Smith"], "Anna Smith"),
        (["12 Green Street"], "12 Green Street"),
        (["Dear Mr Brown,", ""], "Dear Mr Brown,"),
        (
            [
                "thank you for your letter of 2 May. We are pleased to con-",
                "firm your order. Your well-known shop will get it in a well-",
                "known box on Monday.",
                "",
            ],
            "thank you for your letter of 2 May. We are pleased to confirm your order. Your well-known shop will get "
            "it in a well-known box on Monday.",
        ),
        (["Yours sincerely,"], "Yours sincerely,"),
    ]
    lines = [line for group, _ in groups for line in group]
    return drawn([("Times-Roman", 11, 72, 780 - 14 * row, line) for row, line in enumerate(lines)]), [
        ("paragraph", text) for _, text in groups
    ]


def slides(_: Random) -> tuple[bytes, Blocks]:
    """Slides in landscape format with bullets."""
    out = BytesIO()
    canvas = Canvas(out, pagesize=landscape(A4))
    blocks = []
    for title, items in (("Our goals", ["Reduce the costs", "Hire engineers"]), ("Next steps", ["Open an office"])):
        canvas.setFont("Helvetica-Bold", 30)
        canvas.drawString(60, 470, title)
        canvas.setFont("Helvetica", 18)
        for row, item in enumerate(items):
            canvas.drawString(80, 400 - row * 40, f"• {item}")
        canvas.showPage()
        blocks += [("heading 1", title), *(("bullet", item) for item in items)]
    canvas.save()
    return out.getvalue(), blocks


def turned(_: Random) -> tuple[bytes, Blocks]:
    """A page that is turned, and a note at the edge of a page that is not."""
    out = BytesIO()
    canvas = Canvas(out, pagesize=A4)
    canvas.setPageRotation(90)
    canvas.rotate(90)
    canvas.setFont("Helvetica", 12)
    canvas.drawString(72, -100, "This page is turned by ninety degrees, and its")
    canvas.drawString(72, -115, "lines run from the bottom to the top.")
    canvas.showPage()
    canvas.setFont("Helvetica", 12)
    canvas.drawString(72, 600, "An upright line.")
    canvas.rotate(90)
    canvas.drawString(300, -30, "Draft of May")
    canvas.save()
    turned_text = "This page is turned by ninety degrees, and its lines run from the bottom to the top."
    return out.getvalue(), [("paragraph", text) for text in (turned_text, "An upright line.", "Draft of May")]


def chinese(_: Random) -> tuple[bytes, Blocks]:
    """Chinese text in a font that is not embedded."""
    pdfmetrics.registerFont(UnicodeCIDFont("STSong-Light"))
    lines = ["欢迎使用本系统。本手册介绍如何安装", "和使用翻译服务。"]
    return drawn([("STSong-Light", 14, 72, 700 - 20 * row, line) for row, line in enumerate(lines)]), [
        ("paragraph", "".join(lines))
    ]


def form(_: Random) -> tuple[bytes, Blocks]:
    """A form with labels in two columns below a centred heading."""
    labels = [("First name:", "Date of birth:"), ("Last name:", "Nationality:")]
    texts = [("Helvetica-Bold", 14, 240, 740, "Application form")]
    for row, (left, right) in enumerate(labels):
        texts += [("Helvetica", 10, 72, 700 - 30 * row, left), ("Helvetica", 10, 330, 700 - 30 * row, right)]
    return drawn(texts), [
        ("heading 1", "Application form"),
        *(("paragraph", label) for pair in labels for label in pair),
    ]


def built(template: type[SimpleDocTemplate], story: list[Any]) -> bytes:
    out = BytesIO()
    template(out, pagesize=A4).build(story)
    return out.getvalue()


def drawn(texts: list[tuple[str, int, int, int, str]], **options: Any) -> bytes:
    """Return a page with texts, each given by its font, size, place and characters."""
    out = BytesIO()
    canvas = Canvas(out, pagesize=LETTER, **options)
    for font, size, x, y, text in texts:
        canvas.setFont(font, size)
        canvas.drawString(x, y, text)
    canvas.save()
    return out.getvalue()


FILES: list[Callable[[Random], tuple[bytes, Blocks]]] = [
    *(report, columns, book, manual, invoice, letter, slides, turned, chinese, form)
]
