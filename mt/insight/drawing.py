"""Drawings of texts, lines, boxes and heat-map cells, and their SVG. Lengths are pixels, y grows downwards.

The colour of a shape is a name such as "ink", which each theme maps to a colour. Thus one drawing serves light and dark
backgrounds.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import groupby

LIGHT: Mapping[str, str] = {
    "paper": "#ffffff",
    "ink": "#1b2230",
    "soft": "#5d6778",
    "line": "#c3cad5",
    "high": "#1657c4",
    "low": "#c2480c",
    "accent": "#0a7d5a",
}
DARK: Mapping[str, str] = {
    "paper": "#12161d",
    "ink": "#e7ebf2",
    "soft": "#9da8b9",
    "line": "#3c4656",
    "high": "#7fb0ff",
    "low": "#ff9c66",
    "accent": "#4fd1a1",
}
THEMES: Mapping[str, Mapping[str, str]] = {"light": LIGHT, "dark": DARK}
"""Themes by name. A theme has colours for background, text, secondary text, lines, positive values, negative values
and emphasis.
"""

LEVELS = 32  # shades of a colour in a heat map
FONT = "system-ui, sans-serif"
CHARACTER = 0.62  # mean width of a character, as a fraction of the font size


@dataclass(frozen=True)
class Text:
    """A line of text. Its start, middle or end (`anchor`) is at (x, y) on the baseline. Vertical text reads upwards."""

    x: float
    y: float
    content: str
    color: str = "ink"
    anchor: str = "start"  # start, middle or end
    size: float = 11
    vertical: bool = False
    bold: bool = False


@dataclass(frozen=True)
class Line:
    """A straight line from (x1, y1) to (x2, y2)."""

    x1: float
    y1: float
    x2: float
    y2: float
    color: str = "line"
    width: float = 1
    dashed: bool = False


@dataclass(frozen=True)
class Box:
    """A filled rectangle, with a tooltip if `tip` is not empty."""

    x: float
    y: float
    width: float
    height: float
    color: str = "high"
    opacity: float = 1
    tip: str = ""


@dataclass(frozen=True)
class Cells:
    """A heat map of `values`, a matrix with the labels `rows` and `columns`.

    The opacity of a cell is |value| / scale. Negative values have another colour.
    """

    x: float
    y: float
    cell: tuple[float, float]  # width and height
    values: Sequence[Sequence[float]]
    rows: Sequence[str]
    columns: Sequence[str]
    scale: float = 1

    @property
    def width(self) -> float:
        return self.cell[0] * len(self.columns)

    @property
    def height(self) -> float:
        return self.cell[1] * len(self.rows)

    def level(self, value: float) -> int:
        """Return the signed shade of a value, from -LEVELS to LEVELS."""
        return round(max(-1.0, min(value / self.scale, 1.0)) * LEVELS)


GraphicElement = Text | Line | Box | Cells


@dataclass
class Drawing:
    """A picture: its size, its title for readers that cannot see it, and its shapes from back to front."""

    title: str
    width: float = 0
    height: float = 0
    shapes: list[GraphicElement] = field(default_factory=list)

    def svg(self, theme: Mapping[str, str] | None = None) -> str:
        """Return an SVG file with the colours of `theme` or, if `theme` is None, an SVG element for an HTML page.

        The element gets its colours from the CSS of the page. It contains the values of the heat maps as data for the
        script of the page.
        """
        body = "".join(_element(shape, data=theme is None) for shape in self.shapes)
        return f"<svg {self._head}{body}</svg>" if theme is None else _file(self._head, css(theme), body)

    def adaptive_svg(self) -> str:
        """Return an SVG file that has the colours of the reader's theme, light or dark."""
        style = f"{css(LIGHT)}@media (prefers-color-scheme:dark){{{css(DARK)}}}"
        return _file(self._head, style, "".join(_element(shape, data=False) for shape in self.shapes))

    @property
    def _head(self) -> str:
        size = f'width="{self.width:g}" height="{self.height:g}" viewBox="0 0 {self.width:g} {self.height:g}"'
        return f'{size} role="img" aria-label="{escape(self.title)}">'


def _file(head: str, style: str, body: str) -> str:
    paper = f'<style>{style}</style><rect class="paper" width="100%" height="100%"/>'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {head}{paper}{body}</svg>\n'


def css(colors: Mapping[str, str]) -> str:
    rules = (f"svg .{name}{{fill:{color}}}svg line.{name}{{stroke:{color}}}" for name, color in colors.items())
    return f"svg text{{font-family:{FONT}}}" + "".join(rules)


def text_width(text: str, size: float = 11) -> float:
    """Return the approximate width of a text in pixels. Chinese, Japanese and Korean characters are wide."""
    return sum(size * (1 if "\u2e80" <= character <= "\uffef" else CHARACTER) for character in text)


def shortened(text: str, length: int = 14) -> str:
    """Return `text`. If it has more than `length` characters, it is cut and ends with an ellipsis."""
    return text if len(text) <= length else text[: length - 1] + "…"


def _element(shape: GraphicElement, data: bool) -> str:
    if isinstance(shape, Text):
        place = f'x="{shape.x:.1f}" y="{shape.y:.1f}"'
        if shape.vertical:
            place += f' transform="rotate(-90 {shape.x:.1f} {shape.y:.1f})"'
        weight = ' font-weight="600"' if shape.bold else ""
        style = f'class="{shape.color}" font-size="{shape.size:g}" text-anchor="{shape.anchor}"{weight}'
        return f"<text {place} {style}>{escape(shape.content)}</text>"
    if isinstance(shape, Line):
        ends = f'x1="{shape.x1:.1f}" y1="{shape.y1:.1f}" x2="{shape.x2:.1f}" y2="{shape.y2:.1f}"'
        dashes = ' stroke-dasharray="5 3"' if shape.dashed else ""
        return f'<line {ends} class="{shape.color}" stroke-width="{shape.width:g}"{dashes}/>'
    if isinstance(shape, Box):
        size = f'x="{shape.x:.1f}" y="{shape.y:.1f}" width="{shape.width:.1f}" height="{shape.height:.1f}"'
        tip = f"<title>{escape(shape.tip)}</title>" if shape.tip else ""
        return f'<rect {size} class="{shape.color}" fill-opacity="{shape.opacity:g}">{tip}</rect>'
    return _cells_element(shape, data)


def _cells_element(cells: Cells, data: bool) -> str:
    """Return the SVG of a heat map: a frame and, for each shade, one path through all cells of this shade.

    Coordinates are in cells. If `data` is true, attributes contain the values and labels.
    """
    paths: dict[int, list[str]] = {}
    for row, values in enumerate(cells.values):
        for level, begin, length in _runs([cells.level(value) for value in values]):
            if level:
                paths.setdefault(level, []).append(f"M{begin} {row}h{length}v1h-{length}z")
    attributes = ""
    if data:
        rounded = [[round(value, 4) for value in row] for row in cells.values]
        named = {"values": rounded, "rows": list(cells.rows), "columns": list(cells.columns)}
        attributes = "".join(
            f' data-{name}="{escape(json.dumps(value, ensure_ascii=False, separators=(",", ":")))}"'
            for name, value in named.items()
        )
    scale = f"translate({cells.x:.1f} {cells.y:.1f}) scale({cells.cell[0]:g} {cells.cell[1]:g})"
    shades = "".join(
        f'<path class="{"high" if level > 0 else "low"}" fill-opacity="{abs(level) / LEVELS:g}" d="{"".join(path)}"/>'
        for level, path in sorted(paths.items())
    )
    frame = f'<rect class="line" fill-opacity="0.25" width="{len(cells.columns)}" height="{len(cells.rows)}"/>'
    return f'<g class="cells" transform="{scale}" shape-rendering="crispEdges"{attributes}>{frame}{shades}</g>'


def _runs(levels: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield (value, begin, length) of each run of equal values."""
    begin = 0
    for level, run in groupby(levels):
        length = len(list(run))
        yield level, begin, length
        begin += length
