"""The lines of the text layer of a PDF file, read by PDFium through pypdfium2.

Other libraries are not used. pypdf reports neither the widths of characters, which are needed to find columns and
paragraphs, nor the hyphens at the ends of lines. pdfminer.six takes twice as long as PDFium, and needs the library
cryptography, which is larger than PDFium.
"""

import ctypes
import math
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass

import pypdfium2
from pypdfium2 import raw

from mt.errors import DocumentError, DocumentLimitExceeded
from mt.text.documents.base import DocumentOptions
from mt.text.markup.rendering import NOT_XML

MAX_PAGES = 5000
SOFT_HYPHEN = "\u00ad"
_CELL_GAP = 2.0  # in a line, a gap of this many font sizes separates cells or columns
_TURNED_GAP = 8.0  # the same from right to left, where PDFium returns some words from their ends
_ROW_SHIFT = 0.5  # a character that is shifted by this many font sizes begins a line; superscripts are shifted less
_BACK = 3.0  # a character this many font sizes to the left of the last one begins a line
_BOLD = re.compile("bold|black|heavy|demi", re.IGNORECASE)
_FORCE_BOLD = 1 << 18  # flag of a font descriptor
_NAME_BYTES = 200
_REPLACED = str.maketrans(
    {
        **dict(zip("ﬀﬁﬂﬃﬄﬅﬆ", ("ff", "fi", "fl", "ffi", "ffl", "st", "st"), strict=True)),
        **dict.fromkeys("\uf0b7\uf0a7\uf076\uf0d8", "•"),  # bullets of the fonts Symbol and Wingdings
        **dict.fromkeys("\x02\ufffe\u2010", "-"),  # the first is PDFium's sign for a hyphen at the end of a line
    }
)
_RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]+")
_LEAST_SPACED, _WORD_GAP = 6, 1.5  # letters of a line with spaced letters, and its gaps between words by that of most
_RAISED, _LOWERED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"), str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_SMALL, _SHIFT = 0.9, 0.1  # largest size and least shift of a raised or lowered digit, by the size of its line
_SPACES = frozenset(" \t\u00a0")
_LINE_BREAKS = frozenset("\r\n\0")


@dataclass(frozen=True, slots=True)
class PdfLine:
    """A line of text. If wide gaps divide a line into parts, each part is a `PdfLine`, and `alone` is False.

    `left`, `right` and `baseline` are in points, measured from the lower left corner of the page. `size` is the font
    size of most characters of the line, and `bold` tells whether most of them are bold. If the line runs from right to
    left, `left` and `right` are mirrored: they are measured from its beginning to the left.
    """

    text: str
    page: int
    left: float
    right: float
    baseline: float
    size: float
    bold: bool
    alone: bool = True


@dataclass(frozen=True, slots=True)
class PdfText:
    """The lines of all pages in the order of the file, and the (width, height) of each page in points."""

    lines: list[PdfLine]
    page_sizes: list[tuple[float, float]]


def read_pdf(name: str, content: bytes, options: DocumentOptions) -> PdfText:
    """Read the text layer of a PDF file.

    Raises: DocumentError if the file is not PDF, is damaged, needs a password, or has no text layer;
    DocumentLimitExceeded if it has too many pages or characters.
    """
    try:
        pdf = pypdfium2.PdfDocument(content)
    except pypdfium2.PdfiumError as error:
        if error.err_code == raw.FPDF_ERR_PASSWORD:
            raise DocumentError(f"{name} is protected by a password; accepted: a file without password") from error
        raise DocumentError(f"{name} is not a PDF file, or is damaged") from error
    try:
        if len(pdf) > MAX_PAGES:
            raise DocumentLimitExceeded(f"{name} has {len(pdf):,} pages; accepted: at most {MAX_PAGES:,}")
        text = PdfText([], [])
        characters = 0
        for number in range(len(pdf)):
            try:
                page = pdf[number]
                layer = page.get_textpage()
            except pypdfium2.PdfiumError as error:
                raise DocumentError(f"{name}: page {number + 1} is damaged") from error
            characters += layer.count_chars()
            if characters > options.max_characters:
                limit = f"{options.max_characters:,}"
                raise DocumentLimitExceeded(f"{name} has too many characters; accepted: at most {limit}")
            text.page_sizes.append(page.get_size())
            text.lines.extend(_LineReader(layer, number).lines())
            layer.close()
            page.close()
    finally:
        pdf.close()
    if not text.lines:
        raise DocumentError(f"{name} has no text layer; accepted: a PDF with text (for a scan: after text recognition)")
    return text


@dataclass(frozen=True, slots=True)
class _Style:
    """Font size and weight of a text, and the cosine and sine of the direction in which the text runs."""

    size: float
    bold: bool
    cosine: float
    sine: float


@dataclass(slots=True)
class _Part:
    """A line, or a part of a line, while its characters are being read."""

    style: _Style
    left: float
    right: float
    baseline: float
    last: float  # left edge of the last character
    text: list[str]
    places: "array[float]"  # the left edge of each character of `text`, and the width of each space
    sizes: dict[float, int]  # number of characters by font size
    bold: int = 0  # number of bold characters
    alone: bool = True


class _LineReader:
    """Reader of the lines of one page."""

    def __init__(self, layer: pypdfium2.PdfTextPage, page: int) -> None:
        self._layer, self._page = layer.raw, page
        self._count = layer.count_chars()
        self._x, self._y = ctypes.c_double(), ctypes.c_double()
        self._box, self._matrix = raw.FS_RECTF(), raw.FS_MATRIX()
        self._font = ctypes.create_string_buffer(_NAME_BYTES)
        self._flags = ctypes.c_int()

    def lines(self) -> Iterator[PdfLine]:
        """Yield the lines of the page in the order of the file. Most programs write a PDF file in reading order."""
        part: _Part | None = None
        style, known, space = _Style(1.0, False, 1.0, 0.0), -1, False
        for number in range(self._count):
            code = raw.FPDFText_GetUnicode(self._layer, number)
            character = chr(code) if code < 0x110000 else "\ufffd"
            if character in _LINE_BREAKS:
                continue
            if character in _SPACES:
                space = True
                continue
            handle = raw.FPDFText_GetTextObject(self._layer, number)
            address = ctypes.addressof(handle.contents) if handle else known
            if address != known:
                style, known = self._style(number), address
            place = self._place(number, style)
            if place is None:
                continue
            left, right, baseline = place
            turns = _RIGHT_TO_LEFT.match(character) is not None
            begins = None if part is None else self._begins(part, style, right if turns else left, baseline, turns)
            if part is not None and begins is not None:
                part.alone = part.alone and not begins
                yield from self._line(part)
                part = None
            if part is None:
                part = _Part(style, left, right, baseline, left, [], array("f"), {}, alone=not begins)
            elif space:
                part.text.append(" ")
                part.places.append(left - part.right)
            space = False
            shift = (baseline - part.baseline) / part.style.size
            if style.size < _SMALL * part.style.size and abs(shift) > _SHIFT:
                character = character.translate(_RAISED if shift > 0 else _LOWERED)
            part.text.append(character)
            part.places.append(left)
            part.left, part.right = min(part.left, left), max(part.right, right)
            part.last = part.left if turns else left
            part.sizes[style.size] = part.sizes.get(style.size, 0) + 1
            part.bold += style.bold
        if part is not None:
            yield from self._line(part)

    def _style(self, number: int) -> _Style:
        raw.FPDFText_GetMatrix(self._layer, number, self._matrix)
        matrix = self._matrix
        width = math.hypot(matrix.a, matrix.b)
        size = abs(raw.FPDFText_GetFontSize(self._layer, number)) * math.hypot(matrix.c, matrix.d)
        raw.FPDFText_GetFontInfo(self._layer, number, self._font, _NAME_BYTES, self._flags)
        bold = bool(self._flags.value & _FORCE_BOLD) or _BOLD.search(self._font.value.decode("latin-1")) is not None
        size = round(size, 1) if math.isfinite(size) and size > 0 else 1.0
        if not math.isfinite(width) or width == 0:
            return _Style(size, bold, 1.0, 0.0)
        return _Style(size, bold, matrix.a / width, matrix.b / width)

    def _place(self, number: int, style: _Style) -> tuple[float, float, float] | None:
        """Return (left edge, right edge, baseline) of character `number`, or None if these numbers are not finite.

        The coordinates are rotated so that the lines of `style` are horizontal.
        """
        raw.FPDFText_GetCharOrigin(self._layer, number, self._x, self._y)
        raw.FPDFText_GetLooseCharBox(self._layer, number, self._box)
        x, y, box = self._x.value, self._y.value, self._box
        if not math.isfinite(x + y + box.left + box.right + box.top + box.bottom):
            return None
        cosine, sine = style.cosine, style.sine
        corners = [a * cosine + b * sine for a in (box.left, box.right) for b in (box.top, box.bottom)]
        return min(corners), max(corners), y * cosine - x * sine

    @staticmethod
    def _begins(part: _Part, style: _Style, left: float, baseline: float, turns: bool) -> bool | None:
        """Return True if a character begins another part of the line, False if it begins another line, else None.

        `left` and `baseline` are the place of the character, and `part` contains the characters before it. `turns`
        tells whether the character runs from right to left: `left` is its right edge then.
        """
        size = max(part.style.size, style.size)
        turned = abs(part.style.cosine - style.cosine) + abs(part.style.sine - style.sine) > 0.1
        back = left < part.last - _BACK * size and not turns
        if turned or abs(baseline - part.baseline) > _ROW_SHIFT * size or back:
            return False
        text = part.text  # of a marker of a list, after which a wide gap may follow
        is_marker = len(text) <= 4 and (text[-1] in ".)" or (len(text) == 1 and not text[0].isalnum()))
        wide = left < part.left - _TURNED_GAP * size if turns else left > part.right + _CELL_GAP * size
        return True if wide and (turns or not is_marker) else None

    def _line(self, part: _Part) -> Iterator[PdfLine]:
        text = NOT_XML.sub("", "".join(_characters(part)).translate(_REPLACED))
        text = text.rstrip(SOFT_HYPHEN).replace(SOFT_HYPHEN, "") + SOFT_HYPHEN * text.endswith(SOFT_HYPHEN)
        if text.strip():
            size = max(part.sizes, key=lambda size: part.sizes[size])
            bold = 2 * part.bold > sum(part.sizes.values())
            turned = sum(map(len, _RIGHT_TO_LEFT.findall(text))) > len(text) / 2
            left, right = (-part.right, -part.left) if turned else (part.left, part.right)
            yield PdfLine(text, self._page, left, right, part.baseline, size, bold, part.alone)


def _characters(part: _Part) -> list[str]:
    """Return the characters of a line in order, if its letters are spaced without the spaces between them.

    PDFium returns some words that run from right to left in the order in which they are seen.
    """
    text, gaps = [*part.text], part.places[1::2]
    if len(text) >= 2 * _LEAST_SPACED and set(text[1::2]) == {" "}:
        widest = _WORD_GAP * sorted(gaps)[len(gaps) // 2]
        text[1::2] = [" " * (gap > widest) for gap in gaps]
        return text
    for word in _RIGHT_TO_LEFT.finditer("".join(text)):
        begin, end = word.span()
        if part.places[begin] < part.places[end - 1]:
            text[begin:end] = text[begin:end][::-1]
    return text
