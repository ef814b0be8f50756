"""Pictures of the records of a forward pass and of a translation."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from torch import Tensor

from mt.insight.drawing import Box, Cells, Drawing, GraphicElement, Line, Text, shortened, text_width
from mt.insight.record import BLOCKS, AttentionRecord, NormRecord
from mt.text.alignment import Link

MARGIN = 14
GAP = 28  # between two pictures of a drawing
PAGE_WIDTH = 1080  # a drawing begins a new line of heat maps at this width
LABELLED = 64  # maximum number of keys with a label each; with more, the cells of attention are too small
TICKS = 8  # rows or columns that are too small for labels have a label only at every TICKS-th one


def token_boxes(title: str, pieces: Sequence[str], ids: Sequence[int]) -> Drawing:
    drawing = Drawing(title, MARGIN + text_width(title, 12) + MARGIN, 0)
    drawing.shapes.append(Text(MARGIN, 18, title, size=12, bold=True))
    x, y = float(MARGIN), 28.0
    for piece, id in zip(pieces, ids, strict=True):
        width = max(text_width(piece, 13), text_width(str(id), 10)) + 12
        if x + width > PAGE_WIDTH - MARGIN:
            x, y = MARGIN, y + 52
        drawing.shapes += [
            Box(x, y, width, 26, "high", 0.16),
            Text(x + width / 2, y + 18, piece, anchor="middle", size=13),
            Text(x + width / 2, y + 40, str(id), "soft", "middle", 10),
        ]
        x += width + 6
        drawing.width = max(drawing.width, x + MARGIN - 6)
    drawing.height = y + 52
    return drawing


def heat_map(
    title: str,
    values: Sequence[Sequence[float]],
    rows: Sequence[str],
    columns: Sequence[str],
    cell: tuple[float, float] = (16, 16),
    scale: float = 1,
) -> Drawing:
    """Draw a matrix with labels for its rows and columns.

    If the cells are small, or if the labels of the columns are numbers, only some rows or columns have a label.
    """
    names = [shortened(name) for name in columns]
    wide = cell[0] >= 9 and not all(name.isdecimal() for name in names)
    left = MARGIN + max((text_width(shortened(row)) for row in rows), default=0) + 6
    top = 34 + (max((text_width(name) for name in names), default=0) if wide else 12)
    cells = Cells(left, top, cell, values, rows, columns, scale)
    drawing = Drawing(title, max(left + cells.width, MARGIN + text_width(title, 12)) + MARGIN, top + cells.height + 8)
    drawing.shapes += [Text(MARGIN, 18, title, size=12, bold=True), cells]
    for number, row in enumerate(rows):
        if cell[1] >= 9 or number % TICKS == 0:
            drawing.shapes.append(Text(left - 6, top + (number + 0.5) * cell[1] + 4, shortened(row), "soft", "end"))
    for number, name in enumerate(names):
        middle = left + (number + 0.5) * cell[0]
        if wide:
            drawing.shapes.append(Text(middle + 4, top - 5, name, "soft", vertical=True))
        elif number % (TICKS if cell[0] >= 4 else 4 * TICKS) == 0:
            drawing.shapes.append(Text(middle, top - 5, name, "soft", "middle", 10))
    return drawing


def arranged(title: str, drawings: Sequence[Drawing]) -> Drawing:
    """Arrange drawings below a title, in lines from left to right."""
    whole = Drawing(
        title, MARGIN + text_width(title, 14) + MARGIN, shapes=[Text(MARGIN, 20, title, size=14, bold=True)]
    )
    x, y, line = 0.0, 30.0, 0.0
    for drawing in drawings:
        if x and x + drawing.width > PAGE_WIDTH:
            x, y, line = 0, y + line + GAP, 0
        whole.shapes += [_moved(shape, x, y) for shape in drawing.shapes]
        x, line = x + drawing.width, max(line, drawing.height)
        whole.width, whole.height = max(whole.width, x), y + line
    whole.height += MARGIN
    return whole


def attention_layer(record: AttentionRecord, queries: Sequence[str], keys: Sequence[str]) -> Drawing:
    """Draw the attention weights of each head of a layer, and the mean over the heads.

    The last row of each picture is the mean over the queries.
    """
    side = max(13.0, min(16.0, 260 / len(keys))) if len(keys) <= LABELLED else 6.0
    mean = record.weights.mean(0, keepdim=True)
    titles = [f"head {head}: {bits:.2f} bits" for head, bits in enumerate(record.entropy.tolist(), start=1)]
    maps = []
    for name, weights in zip([*titles, "mean of the heads"], [*record.weights, *mean], strict=True):
        values = [*weights.tolist(), weights.mean(0).tolist()]
        maps.append(heat_map(name, values, [*queries, "mean"], keys, (side, side)))
    return arranged(f"{BLOCKS[record.block]}, layer {record.layer}", maps)


def query_steps(record: AttentionRecord, head: int, query: int, keys: Sequence[str]) -> Drawing:
    """Draw the attention of one query: q, k, weights, v and the weighted sum of v. `head` and `query` count from 0."""
    q, k, v = record.q[head, query], record.k[head], record.v[head]
    weights = record.weights[head, query]
    scores = record.scores[head, query].masked_fill(~record.mask[query], 0)
    d_k = len(q)
    side = max(4.0, min(12.0, 300 / d_k))
    dimensions = [str(number) for number in range(d_k)]

    def matrix(title: str, values: Tensor, rows: Sequence[str]) -> Drawing:
        size = float(values.abs().max()) or 1.0
        return heat_map(title, values.tolist(), rows, dimensions, (side, 14), size)

    largest = float(scores.abs().max()) or 1.0
    scored = heat_map("scores q k / sqrt(d_k)", scores[:, None].tolist(), keys, [""], (48, 14), largest)
    softmax = heat_map("softmax", weights[:, None].tolist(), keys, [""], (48, 14))
    parts = [
        matrix("q of the query", q[None], ["q"]),
        matrix("k of every key", k, keys),
        scored,
        softmax,
        matrix("v of every key", v, keys),
        matrix("result: sum of softmax times v", (weights @ v)[None], ["z"]),
    ]
    return arranged("One query, step by step", parts)


def distance_curve(products: Sequence[float], title: str) -> Drawing:
    """Draw the dot product of two positions against their distance. `products[d]` is the product at distance d."""
    width, height, left, top = 620.0, 220.0, 64.0, 40.0
    low, high = min(0.0, *products), max(products)
    span = (high - low) or 1.0

    def point(distance: float, product: float) -> tuple[float, float]:
        return left + distance * width / max(len(products) - 1, 1), top + (high - product) * height / span

    drawing = Drawing(title, left + width + MARGIN + 10, top + height + 46)
    drawing.shapes.append(Text(MARGIN, 18, title, size=12, bold=True))
    for share in (0, 0.25, 0.5, 0.75, 1):
        value = low + share * span
        _, y = point(0, value)
        drawing.shapes += [Line(left, y, left + width, y), Text(left - 6, y + 4, f"{value:.1f}", "soft", "end")]
    for distance in range(0, len(products), TICKS):
        drawing.shapes.append(Text(point(distance, low)[0], top + height + 18, str(distance), "soft", "middle"))
    drawing.shapes.append(Text(left + width / 2, top + height + 38, "distance in tokens", "soft", "middle"))
    for (before, first), (after, second) in pairwise(enumerate(products)):
        drawing.shapes.append(Line(*point(before, first), *point(after, second), "high", 2))
    return drawing


def magnitude_bars(norms: Sequence[NormRecord]) -> Drawing:
    title = "Root mean square of the states before and after each LayerNorm"
    left, width = 210.0, 520.0
    largest = max((max(norm.residual, norm.normalised) for norm in norms), default=1.0) or 1.0
    drawing = Drawing(title, left + width + 70, 48 + 34 * len(norms) + MARGIN)
    drawing.shapes.append(Text(MARGIN, 18, title, size=12, bold=True))
    legend = (("before: residual", "high", left), ("after: normalised", "accent", left + 150))
    for name, color, x in legend:
        drawing.shapes += [Box(x, 28, 10, 10, color), Text(x + 15, 37, name, "soft")]
    for number, norm in enumerate(norms):
        y = 48.0 + 34 * number
        drawing.shapes.append(Text(left - 8, y + 16, norm.name, "ink", "end"))
        for value, color, offset in ((norm.residual, "high", 0), (norm.normalised, "accent", 13)):
            length = value / largest * width
            drawing.shapes += [
                Box(left, y + offset, length, 11, color),
                Text(left + length + 5, y + offset + 10, f"{value:.3g}", "soft", size=10),
            ]
    return drawing


def probability_rows(steps: Sequence[tuple[str, Sequence[tuple[str, float]]]]) -> Drawing:
    """Draw the most probable tokens of each decoding step, with their probabilities.

    A step is a pair: the chosen token, and pairs (token, probability).
    """
    title = "Probabilities of the next token, by decoding step"
    most = max((len(candidates) for _, candidates in steps), default=0)
    drawing = Drawing(title, 170 + 178 * most, 34 + 26 * len(steps) + MARGIN)
    drawing.shapes.append(Text(MARGIN, 18, title, size=12, bold=True))
    for number, (chosen, candidates) in enumerate(steps):
        y = 34.0 + 26 * number
        drawing.shapes.append(Text(MARGIN, y + 14, f"{number + 1}. {shortened(chosen)}", "ink"))
        for place, (piece, probability) in enumerate(candidates):
            x = 160.0 + 178 * place
            is_chosen = piece == chosen
            drawing.shapes += [
                Box(x, y, 168, 20, "line", 0.25),
                Box(x, y, 168 * probability, 20, "accent" if is_chosen else "high", 0.45),
                Text(x + 5, y + 14, shortened(piece), "ink", bold=is_chosen),
                Text(x + 163, y + 14, f"{probability:.4f}", "ink", "end", 10),
            ]
    return drawing


def word_links(source: str, target: str, links: Sequence[Link]) -> Drawing:
    """Draw the words of a sentence above the words of its translation, and a line for each link."""
    drawing = Drawing("Word alignment", 0, 150)
    middles: list[dict[int, float]] = []
    for side, (text, y) in enumerate(((source, 30.0), (target, 130.0))):
        x, place, centers = float(MARGIN), 0, {}
        for begin, end in sorted({link[side] for link in links}):
            for part, color in ((text[place:begin], "soft"), (text[begin:end], "ink")):
                width = text_width(part.strip(), 15)
                drawing.shapes.append(Text(x + width / 2, y, part.strip(), color, "middle", 15))
                if color == "ink":
                    centers[begin] = x + width / 2
                x += width + 14 if part.strip() else 0
            place = end
        drawing.shapes.append(Text(x, y, text[place:].strip(), "soft", size=15))
        drawing.width = max(drawing.width, x + text_width(text[place:], 15) + MARGIN)
        middles.append(centers)
    for (source_begin, _), (target_begin, _) in links:
        drawing.shapes.append(Line(middles[0][source_begin], 38, middles[1][target_begin], 112, "high", 2))
    return drawing


def _moved(shape: GraphicElement, x: float, y: float) -> GraphicElement:
    if isinstance(shape, Line):
        return replace(shape, x1=shape.x1 + x, y1=shape.y1 + y, x2=shape.x2 + x, y2=shape.y2 + y)
    return replace(shape, x=shape.x + x, y=shape.y + y)
