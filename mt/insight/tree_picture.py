"""Picture of a beam search: a column for each step. The path of the best hypothesis is in bold."""

from collections.abc import Sequence
from itertools import pairwise

from mt.insight.drawing import Box, Drawing, Line, Text, shortened, text_width
from mt.insight.search_record import ALIVE, FINISHED, Node, SearchTree

COLUMN = 140  # pixels
ROW = 20
GAP = 8  # between a token and its number
TOP = 56
LEFT = 14

COLORS = {ALIVE: "high", FINISHED: "accent"}


def beam_tree(tree: SearchTree, pieces: Sequence[str]) -> Drawing:
    """Draw the tree of a beam search. `pieces` are the pieces of the vocabulary by id."""
    columns = _ordered(tree.nodes)
    places = {id(node): (step, row) for step, column in enumerate(columns) for row, node in enumerate(column)}
    rows = max(map(len, columns))
    drawing = Drawing("Beam search", LEFT + COLUMN * len(columns) + 20, TOP + ROW * rows + 14)
    drawing.shapes.append(Text(LEFT, 18, f"Beam search with {tree.beam_size} beams", size=12, bold=True))
    legend = (("kept", "high"), ("finished", "accent"), ("pruned", "line"))
    for number, (name, color) in enumerate(legend):
        x = LEFT + 230.0 + 90 * number
        drawing.shapes += [Box(x, 9, 10, 10, color), Text(x + 15, 18, name, "soft")]
    for step in range(1, len(columns)):
        drawing.shapes.append(Text(LEFT + COLUMN * step, 42, f"step {step}", "soft"))
    for node in tree.nodes[1:]:
        parent = tree.nodes[node.parent]
        drawing.shapes.append(_edge(node, places[id(node)], places[id(parent)], _ends(*_label(parent, pieces))[1]))
    for node in tree.nodes:
        step, row = places[id(node)]
        x, y = LEFT + COLUMN * step, TOP + ROW * row
        name, value = _label(node, pieces)
        color = "ink" if node.fate in COLORS else "soft"
        drawing.shapes += [
            Box(x - 11, y, 8, 8, COLORS.get(node.fate, "line"), tip=f"{name}: {node.reason or 'kept'}"),
            Text(x, y + 8, name, color, bold=node.is_best),
            Text(x + _ends(name, value)[0] + GAP, y + 8, value, "soft", size=10, bold=node.is_best),
        ]
    return drawing


def _ordered(nodes: Sequence[Node]) -> list[list[Node]]:
    """Return the nodes of each step, ordered by parent and then by log-probability, so that no edges cross."""
    columns: list[list[Node]] = [[] for _ in range(nodes[-1].step + 1)]
    for node in nodes:
        columns[node.step].append(node)
    for before, column in pairwise(columns):
        place = {id(node): row for row, node in enumerate(before)}
        column.sort(key=lambda node: (place[id(nodes[node.parent])], -node.total))
    return columns


def _label(node: Node, pieces: Sequence[str]) -> tuple[str, str]:
    """Return the token of a node, and its score or log-probability, as texts."""
    name = shortened(pieces[node.token], 9) if node.step else "<s>"
    return name, f"score {node.score:.3f}" if node.score is not None else f"{node.total:.2f}" if node.step else ""


def _ends(name: str, value: str) -> tuple[float, float]:
    """Return the offsets at which `name` and `value` end, in pixels from the start of `name`."""
    end = text_width(name)
    return end, end + GAP + text_width(value, 10)


def _edge(node: Node, end: tuple[int, int], begin: tuple[int, int], label: float) -> Line:
    """Return the line from a parent to `node`. `begin` and `end` are (step, row) of the parent and of the node.

    The line begins after the label of the parent, which is `label` pixels wide.
    """
    color = "accent" if node.is_best else COLORS.get(node.fate, "line")
    return Line(
        LEFT + COLUMN * begin[0] + label + 2,
        TOP + ROW * begin[1] + 4,
        LEFT + COLUMN * end[0] - 12,
        TOP + ROW * end[1] + 4,
        color if node.is_best or node.fate == ALIVE else "line",
        2 if node.is_best else 1,
    )
