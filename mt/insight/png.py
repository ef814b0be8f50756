"""PNG files of drawings. Needs matplotlib, which the extra `training` installs."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from mt.insight.drawing import LEVELS, Box, Cells, Drawing, GraphicElement, Line, Text

try:
    from matplotlib.axes import Axes
    from matplotlib.colors import to_rgb
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle
except ImportError as error:
    MISSING_PACKAGE = str(error.name)
else:
    MISSING_PACKAGE = ""

PIXELS_PER_INCH = 100
DENSITY = 2  # pixels of the file per pixel of the drawing
MAX_SIDE = 30_000  # pixels of the file; longer drawings have a lower density


def write_png(drawing: Drawing, theme: Mapping[str, str], path: Path) -> None:
    assert not MISSING_PACKAGE
    width, height = drawing.width, drawing.height
    figure = Figure(figsize=(width / PIXELS_PER_INCH, height / PIXELS_PER_INCH), facecolor=theme["paper"])
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    for order, shape in enumerate(drawing.shapes):
        _draw(shape, theme, axes, order)
    axes.set(xlim=(0, width), ylim=(height, 0), aspect="auto")
    axes.axis("off")
    figure.savefig(path, dpi=min(DENSITY, MAX_SIDE / max(width, height)) * PIXELS_PER_INCH)


def _draw(shape: GraphicElement, theme: Mapping[str, str], axes: "Axes", order: int) -> None:
    if isinstance(shape, Text):
        axes.text(
            shape.x,
            shape.y,
            shape.content.replace("$", r"\$"),  # no formula begins
            color=theme[shape.color],
            fontsize=shape.size * 72 / PIXELS_PER_INCH * 0.95,
            ha={"start": "left", "middle": "center", "end": "right"}[shape.anchor],
            va="baseline",
            rotation=90 if shape.vertical else 0,
            rotation_mode="anchor",
            weight="bold" if shape.bold else "normal",
            zorder=order,
        )
    elif isinstance(shape, Line):
        width = shape.width * 72 / PIXELS_PER_INCH
        ends = [shape.x1, shape.x2], [shape.y1, shape.y2]
        axes.plot(*ends, color=theme[shape.color], linewidth=width, zorder=order)
    elif isinstance(shape, Box):
        place, color = (shape.x, shape.y), (theme[shape.color], shape.opacity)
        axes.add_patch(Rectangle(place, shape.width, shape.height, facecolor=color, linewidth=0, zorder=order))
    else:
        _draw_cells(shape, theme, axes, order)


def _draw_cells(cells: Cells, theme: Mapping[str, str], axes: "Axes", order: int) -> None:
    levels = np.array([[cells.level(value) for value in row] for row in cells.values]) / LEVELS
    colors = np.where(levels[:, :, None] < 0, to_rgb(theme["low"]), to_rgb(theme["high"]))
    frame = (cells.x, cells.y), cells.width, cells.height
    axes.add_patch(Rectangle(*frame, facecolor=(theme["line"], 0.25), linewidth=0, zorder=order))
    axes.imshow(
        np.concatenate((colors, np.abs(levels)[:, :, None]), axis=2),
        extent=(cells.x, cells.x + cells.width, cells.y + cells.height, cells.y),
        interpolation="nearest",
        aspect="auto",
        zorder=order,
    )
