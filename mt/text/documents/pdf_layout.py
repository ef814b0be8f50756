"""Reconstruction of headings, list items and paragraphs from the lines of a PDF file."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from mt.text.documents.pdf_lines import SOFT_HYPHEN, PdfLine, PdfText
from mt.text.word_tables import read_tables

MAX_LEVEL = 4
_HEADING_SIZE = 1.12  # smallest font size of a heading, relative to that of the body text
_MAX_HEADING, _MAX_BOLD_HEADING = 200, 100  # characters
_SAME_SIZE = 0.08  # largest relative difference between the font sizes of lines in one paragraph
_INDENT = 0.8  # smallest indent of a new paragraph, in font sizes
_DEFAULT_LEADING, _MAX_LEADING = 1.25, 2.6  # distance between baselines, in font sizes
_LOOSE = 1.2  # largest distance between two lines of one paragraph, relative to the usual distance
_NEAR = 4  # number of lines before and after a line that determine the right edge of its column
_MARGIN = 0.12  # height of the area with running titles, relative to the height of the page
_MIN_RUNNING_PAGES = 2
_BULLET, _NUMBERED, _FIELD, _NUMBER, _SENTENCE_END, _NO_HEADING_END, _HYPHENATED, _EDGE_NUMBER, _UNSPACED = (
    re.compile(pattern) for pattern in read_tables("documents/patterns.toml")["pdf"].values()
)
_LAST_WORD, _FIRST_WORD = re.compile(r"[^\W\d_]+-$"), re.compile(r"[^\W\d_]+")
_SUSPENDING = frozenset("and or to und oder bzw sowie bis et ou".split())  # words after a hyphen: Haus- und Gartentür
_END = 60  # number of characters that are searched at the end of a line
_DIGITS = re.compile(r"\d+")


class BlockKind(Enum):
    """Kind of a block of text."""

    HEADING = "heading"
    PARAGRAPH = "paragraph"
    BULLET = "bullet"
    HEADER = "header"  # running title of the pages
    FOOTER = "footer"


@dataclass(frozen=True, slots=True)
class Block:
    """A heading, a paragraph, a list item without its bullet, or a running title.

    `level` is the level of a heading, from 1, or 0 for other blocks.
    """

    kind: BlockKind
    text: str
    level: int = 0
    bold: bool = False


def read_blocks(text: PdfText) -> list[Block]:
    """Return the blocks of a PDF file: first the running titles, each once, then the other blocks in reading order.

    Consecutive lines form a paragraph if they have the same font size and weight, the usual line distance and no
    indent, and if each line is full: the first word of the next line would not fit into it. A hyphen at the end of a
    line is removed, unless the word has a hyphen elsewhere in the file. Page numbers are dropped.
    """
    running, lines = _split_running_titles(text)
    body = _usual_size(lines)
    paragraphs = list(_paragraphs(lines))
    sizes = sorted({size for paragraph in paragraphs if (size := _heading_size(paragraph, body))}, reverse=True)
    levels = {size: min(level, MAX_LEVEL) for level, size in enumerate(sizes, 1)}
    hyphenated = {word.lower() for line in lines for word in _HYPHENATED.findall(line.text)}
    return [*running, *(_block(paragraph, body, levels, hyphenated) for paragraph in paragraphs)]


def _usual_size(lines: Iterable[PdfLine]) -> float:
    """Return the font size that most characters have, or 1 if there are no lines."""
    counts: Counter[float] = Counter()
    for line in lines:
        counts[line.size] += len(line.text)
    return counts.most_common(1)[0][0] if counts else 1.0


def _split_running_titles(text: PdfText) -> tuple[list[Block], list[PdfLine]]:
    """Return the running titles, each once, and all lines that are neither running titles nor page numbers.

    A line is a running title if it meets all of these conditions:

    - It is near the upper or lower edge of a page, in one of the two outermost rows.
    - Its font is not larger than that of most of the text. The title of a chapter is larger.
    - The same text, except for numbers, is at the same height on at least two pages and on a third of all pages.

    Page numbers are removed from the titles, and titles such as "Page 3 of 5" are dropped.
    """
    largest = _HEADING_SIZE * _usual_size(text.lines)
    rows: defaultdict[int, set[int]] = defaultdict(set)
    for line in text.lines:
        rows[line.page].add(round(line.baseline))
    outermost = {page: {*heights[:2], *heights[-2:]} for page, heights in ((p, sorted(r)) for p, r in rows.items())}
    keys: list[tuple[str, int] | None] = []
    pages: defaultdict[tuple[str, int], set[int]] = defaultdict(set)
    for line in text.lines:
        height = text.page_sizes[line.page][1]
        at_edge = not _MARGIN * height < line.baseline < (1 - _MARGIN) * height
        candidate = at_edge and line.size < largest and round(line.baseline) in outermost[line.page]
        key = (_DIGITS.sub("#", line.text), round(line.baseline / 2)) if candidate else None
        keys.append(key)
        if key is not None:
            pages[key].add(line.page)
    least = max(_MIN_RUNNING_PAGES, len(text.page_sizes) / 3)
    running = {key for key, numbers in pages.items() if len(numbers) >= least}
    titles: dict[tuple[str, int], tuple[BlockKind, set[str]]] = {}
    lines: list[PdfLine] = []
    for line, key in zip(text.lines, keys, strict=True):
        if key is None or key not in running:
            lines.append(line)
        else:
            upper = line.baseline > text.page_sizes[line.page][1] / 2
            titles.setdefault(key, (BlockKind.HEADER if upper else BlockKind.FOOTER, set()))[1].add(line.text.strip())
    named = ((kind, _without_page_number(texts)) for kind, texts in titles.values())
    return [Block(kind, title) for kind, title in named if any(map(str.isalpha, title))], lines


def _without_page_number(texts: set[str]) -> str:
    """Return a running title without its page number. `texts` are the different texts of the title on all pages.

    Return "" if only one word remains, or if a number remains, as in "Page 3 of".
    """
    title = min(texts)
    if len(texts) == 1:
        return title
    title = _EDGE_NUMBER.sub("", title)
    return title if " " in title and not _DIGITS.search(title) else ""


def _paragraphs(lines: Sequence[PdfLine]) -> Iterator[list[PdfLine]]:
    leading = _leading(lines)
    edges = _right_edges(lines)
    paragraph: list[PdfLine] = []
    for number, line in enumerate(lines):
        if paragraph and not _continues(paragraph, line, leading, edges[number - 1]):
            yield paragraph
            paragraph = []
        paragraph.append(line)
    if paragraph:
        yield paragraph


def _leading(lines: Sequence[PdfLine]) -> dict[float, float]:
    """Return, for each font size, the most frequent distance between two baselines, divided by the font size."""
    counts: defaultdict[float, Counter[float]] = defaultdict(Counter)
    for before, line in pairwise(lines):
        ratio = (before.baseline - line.baseline) / line.size
        if before.page == line.page and before.size == line.size and 0.8 < ratio < _MAX_LEADING:
            counts[line.size][round(ratio, 1)] += 1
    return {size: ratios.most_common(1)[0][0] for size, ratios in counts.items()}


def _right_edges(lines: Sequence[PdfLine]) -> list[float]:
    """Return, for each line, the right edge of the column that contains the line.

    The column consists of the lines nearby that have the same left edge and font size. If it is less than half as wide
    as the space up to the right edge of lines that begin further left, it has this edge, as nested items have.
    """
    edges = []
    for number, line in enumerate(lines):
        near = lines[max(0, number - _NEAR) : number + _NEAR + 1]
        near = [other for other in near if other.page == line.page and other.size == line.size]
        edge = max(other.right for other in near if abs(other.left - line.left) < line.size)
        outer = max((other.right for other in near if other.left < line.left and line.alone), default=edge)
        edges.append(outer if 2 * (edge - line.left) < outer - line.left else edge)
    return edges


def _continues(paragraph: Sequence[PdfLine], line: PdfLine, leading: dict[float, float], right_edge: float) -> bool:
    """Return whether `line` continues `paragraph`.

    `leading` maps each font size to the usual distance between baselines, divided by the font size. `right_edge` is the
    right edge of the column that contains the last line of the paragraph.
    """
    last = paragraph[-1]
    if abs(line.size - last.size) > _SAME_SIZE * last.size or line.bold != last.bold or _marked(line):
        return False
    if _FIELD.match(last.text) and _FIELD.match(line.text):
        return False
    word = (line.right - line.left) * (len(line.text.split(None, 1)[0]) + 1) / len(line.text)
    fits = last.right + word < right_edge - 0.5 * line.size
    distance = last.baseline - line.baseline
    if line.page != last.page or distance < -line.size:  # the top of the next column or page
        unfinished = not fits and not _SENTENCE_END.search(last.text[-_END:])
        within_page = line.page == last.page and len(paragraph) == 1  # such as a cell and the next cell of a row
        return unfinished and line.text[:1].islower() and last.alone and line.alone and not within_page
    if not 0.3 * line.size < distance <= _LOOSE * leading.get(line.size, _DEFAULT_LEADING) * line.size:
        return False
    same_cell = abs(line.left - last.left) < 0.5 * line.size
    if line.left > last.right or line.right < last.left or not ((last.alone and line.alone) or same_cell):
        return False
    if abs(line.left + line.right - last.left - last.right) < line.size and abs(line.left - last.left) > line.size:
        return True  # both lines are centred
    indent = line.left - last.left
    hanging = len(paragraph) == 1 and (indent < 0 or _marked(last) or _NUMBER.match(last.text))
    if abs(indent) > _INDENT * line.size and not hanging:
        return False
    return not fits or line.text[:1].islower()


def _marked(line: PdfLine) -> bool:
    return bool(_BULLET.match(line.text) or _NUMBERED.match(line.text))


def _heading_size(paragraph: Sequence[PdfLine], body: float) -> float:
    """Return the font size of a paragraph that is large and short enough for a heading, or 0 for any other paragraph.

    `body` is the font size of most of the text.
    """
    size = paragraph[0].size
    length = sum(len(line.text) for line in paragraph)
    return size if size >= _HEADING_SIZE * body and length <= _MAX_HEADING else 0.0


def _block(paragraph: Sequence[PdfLine], body: float, levels: dict[float, int], hyphenated: set[str]) -> Block:
    text, first = _join(paragraph, hyphenated), paragraph[0]
    if size := _heading_size(paragraph, body):
        return Block(BlockKind.HEADING, text, levels[size])
    bullet = _BULLET.match(text)
    if bullet:
        return Block(BlockKind.BULLET, text[bullet.end() :], bold=first.bold)
    short = len(paragraph) == 1 and first.alone and len(text) <= _MAX_BOLD_HEADING
    if first.bold and short and not _NO_HEADING_END.search(text) and first.size >= body:
        return Block(BlockKind.HEADING, text, min(len(set(levels.values())) + 1, MAX_LEVEL))
    return Block(BlockKind.PARAGRAPH, text, bold=first.bold)


def _join(lines: Sequence[PdfLine], hyphenated: set[str]) -> str:
    """Return the text of a paragraph, given its lines.

    A hyphen at the end of a line is removed if the next line begins in lower case, unless the word is in `hyphenated`.
    """
    parts: list[str] = []
    for line in lines:
        text = line.text.strip()
        before = parts[-1] if parts else ""
        if before.endswith(SOFT_HYPHEN):
            parts[-1] = before[:-1]
        elif before.endswith("-") and (word := _LAST_WORD.search(before[-_END:])):
            following = _FIRST_WORD.match(text)
            joined = (word[0] + following[0]).lower() if following else ""
            if following and following[0].lower() in _SUSPENDING:
                parts.append(" ")
            elif text[:1].islower() and joined not in hyphenated:
                parts[-1] = before[:-1]
        elif before and not (_UNSPACED.match(before[-1]) and _UNSPACED.match(text[:1])):
            parts.append(" ")
        parts.append(text)
    return "".join(parts).rstrip(SOFT_HYPHEN)
