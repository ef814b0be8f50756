"""Line chart of several series, with the name of each series beside its end."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from mt.insight.drawing import Drawing, Line, Text, text_width

WIDTH, HEIGHT = 560.0, 300.0  # size of the area of the lines
LEFT, TOP, BELOW = 56.0, 40.0, 46.0
LABEL = 13.0  # smallest distance of two names
COLORS = ("high", "low", "accent", "ink", "soft")  # further series are dashed


@dataclass(frozen=True)
class Series:
    """A line through points (x, y). The lines in `others` are drawn thin in the same colour."""

    name: str
    points: Sequence[tuple[float, float]]
    others: Sequence[Sequence[tuple[float, float]]] = ()


def line_chart(title: str, x_label: str, series: Sequence[Series]) -> Drawing:
    """Draw several series. The x axis begins at 0, and the y axis has round numbers and spans all points."""
    lines = [line for one in series for line in (one.points, *one.others)]
    right = max(x for line in lines for x, _ in line)
    ticks = _ticks(min(y for line in lines for _, y in line), max(y for line in lines for _, y in line))
    low, high = ticks[0], ticks[-1]

    def place(point: tuple[float, float]) -> tuple[float, float]:
        return LEFT + point[0] / right * WIDTH, TOP + (high - point[1]) / (high - low) * HEIGHT

    drawing = Drawing(title, LEFT + WIDTH + max(text_width(one.name) for one in series) + 24, TOP + HEIGHT + BELOW)
    drawing.shapes.append(Text(14, 18, title, size=12, bold=True))
    for tick in ticks:
        y = place((0, tick))[1]
        drawing.shapes += [Line(LEFT, y, LEFT + WIDTH, y), Text(LEFT - 6, y + 4, f"{tick:.4g}", "soft", "end")]
    for tick in _ticks(0, right):
        drawing.shapes.append(Text(place((tick, low))[0], TOP + HEIGHT + 18, f"{tick:g}", "soft", "middle"))
    drawing.shapes.append(Text(LEFT + WIDTH / 2, TOP + HEIGHT + 36, x_label, "soft", "middle"))
    ends = _spread([place(one.points[-1])[1] for one in series], TOP + HEIGHT)
    for number, (one, end) in enumerate(zip(series, ends, strict=True)):
        color, dashed = COLORS[number % len(COLORS)], number >= len(COLORS)
        for width, line in (*((0.6, other) for other in one.others), (2.0, one.points)):
            drawing.shapes += [Line(*place(a), *place(b), color, width, dashed) for a, b in pairwise(line)]
        drawing.shapes.append(Text(LEFT + WIDTH + 8, end + 4, one.name, color))
    return drawing


def _ticks(low: float, high: float) -> list[float]:
    """Return the round numbers of an axis: multiples of 1, 2 or 5 times a power of ten.

    The first number is at most `low`, and the last is at least `high`. There are four to ten numbers.
    """
    span = (high - low) or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span))
    step = next(factor * power for factor in (0.1, 0.2, 0.5, 1, 2) if span / (factor * power) <= 7)
    return [number * step for number in range(math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9) + 1)]


def _spread(heights: Sequence[float], lowest: float) -> list[float]:
    """Move heights apart, so that any two differ by at least LABEL. The order of the heights is preserved.

    Heights are measured downwards, and no result is larger than `lowest`.
    """
    order = sorted(range(len(heights)), key=lambda index: heights[index])
    moved = list(heights)
    for above, below in pairwise(order):
        moved[below] = max(moved[below], moved[above] + LABEL)
    for below in reversed(order):
        moved[below] = min(moved[below], lowest)
        lowest = moved[below] - LABEL
    return moved
