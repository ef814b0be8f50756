"""Pictures of the records of a translation, drawn by matplotlib. Sizes are inches, and 100 pixels are an inch."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import matplotlib
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from mt.insight.record import BLOCKS, AttentionRecord, EmbeddingRecord, NormRecord
from mt.insight.search_record import ALIVE, FINISHED, Node, SearchTree
from mt.insight.translation_record import TranslationRecord
from mt.text.alignment import Link

LIGHT, DARK = {"paper": "#ffffff", "ink": "#1b2230"}, {"paper": "#12161d", "ink": "#e7ebf2"}
HIGH, LOW, ACCENT, SOFT = "#3d7edb", "#d9662b", "#1f9d73", "#7d8798"  # legible on both papers
INK, PAPER = "#010203", "#040506"  # stand for the colours of the reader's theme
COLORS = LinearSegmentedColormap.from_list("weights", [(0, LOW), (0.5, (LOW, 0.0)), (0.5, (HIGH, 0.0)), (1, HIGH)])
"""Colours of values from -1 to 1. A value of 0 is transparent."""

STYLE = matplotlib.rc_context(
    {
        "svg.fonttype": "none",  # the reader's fonts have more characters than matplotlib's
        "svg.hashsalt": "mt",  # equal pictures are equal files
        "font.sans-serif": ["DejaVu Sans"],  # of which matplotlib knows the widths
        "font.size": 8,
        "axes.titlesize": 9,
        "axes.edgecolor": SOFT,
        "axes.facecolor": "none",
        "text.parse_math": False,
        "axes.titleweight": "bold",
        **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
    }
)
NO_METADATA = dict.fromkeys(("Date", "Creator", "Format", "Type"))
WIDTH = 10.0
SIDE = 0.16  # of a cell that has a label
CHARACTER = 0.075  # mean width of a character
LABELLED = 64  # maximum number of rows or columns with a label each


@dataclass(frozen=True)
class HeatMap:
    """Values [rows, columns] from -scale to scale, with a label for each row and column. Columns may have numbers."""

    title: str
    values: Tensor
    rows: Sequence[str]
    columns: Sequence[str] = ()
    scale: float = 1.0

    @classmethod
    def scaled(cls, title: str, values: Tensor, rows: Sequence[str], columns: Sequence[str] = ()) -> "HeatMap":
        """Return a matrix whose largest absolute value has the strongest colour."""
        return cls(title, values, rows, columns, float(values.abs().max()) or 1.0)


@STYLE
def svg(figure: Figure) -> str:
    """Return the SVG of a figure. Its text and background have the colours of the reader's theme, light or dark."""
    file = io.StringIO()
    figure.set_facecolor(PAPER)
    figure.savefig(file, format="svg", bbox_inches="tight", pad_inches=0.1, metadata=NO_METADATA)
    text = file.getvalue()
    head, _, body = text[text.index("<svg") :].partition(">")
    rules = [f"svg{{color:{theme['ink']};fill:{theme['paper']}}}" for theme in (LIGHT, DARK)]
    style = f"{rules[0]}image{{image-rendering:pixelated}}@media(prefers-color-scheme:dark){{{rules[1]}}}"
    body = body.replace(f"fill: {PAPER}", "").replace(INK, "currentColor")
    return f"{head}><style>{style}</style>{body}"


@STYLE
def draw(explanation: TranslationRecord) -> dict[str, Figure]:
    """Return the pictures of an explanation by name."""
    record, positions = explanation.record, explanation.positions
    pictures = {
        "tokens-source": token_boxes("Source tokens", explanation.source, record.source),
        "tokens-target": token_boxes("Target tokens", explanation.target, record.target),
    }
    last = "sum after LayerNorm" if explanation.config.embedding_norm else "sum"
    labels = {"source": explanation.source, "target": explanation.target}
    for (side, rows), embedding in zip(labels.items(), record.embeddings, strict=True):
        pictures[f"embedding-{side}"] = embeddings(f"{side.capitalize()} embeddings", embedding, rows, last)
    pictures["positions"] = position_matrix(positions)
    pictures["positions-by-distance"] = distance_curve(positions @ positions.T)
    pictures["masks"] = masks(explanation)
    for attention in record.attentions:
        name = f"attention-{attention.block}-{attention.layer}"
        pictures[name] = attention_layer(attention, *explanation.labels(attention))
    query, attention = explanation.query, explanation.attention
    pictures["query"] = query_steps(attention, query.head - 1, query.position - 1, explanation.labels(attention)[1])
    pictures["magnitudes"] = magnitude_bars(record.norms)
    steps = [(step.chosen, [(piece, share) for piece, _, share in step.candidates]) for step in explanation.steps]
    pictures["probabilities"] = probability_rows(steps)
    pictures["beam"] = beam_tree(explanation.tree, explanation.vocabulary)
    pictures["alignment"] = word_links(explanation.sentence, explanation.translation, explanation.links)
    return pictures


def canvas(title: str, width: float, height: float) -> tuple[Figure, Axes]:
    """Return a figure and its only axes, without ticks and frame, in inches from the upper left corner."""
    figure = Figure((width, height))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    add_title(figure, title)
    return figure, axes


def add_title(figure: Figure, title: str) -> None:
    """Write a title above a figure. `svg` extends the picture to contain it."""
    figure.text(0, 1, f"{title}\n", weight="bold", size=10, va="bottom")


def show(axes: Axes, matrix: HeatMap, square: bool = False) -> None:
    """Draw a matrix as a heat map. Columns have their labels above, or numbers below if they have none."""
    values = (matrix.values / matrix.scale).tolist()
    axes.imshow(values, COLORS, aspect="equal" if square else "auto", vmin=-1, vmax=1, interpolation="none")
    axes.set_title(matrix.title, loc="left")
    axes.tick_params(length=0)
    axes.set_yticks(*_ticks(matrix.rows))
    if matrix.columns:
        axes.set_xticks(*_ticks(matrix.columns), rotation=90)
        axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))


def _ticks(labels: Sequence[str]) -> tuple[list[int], list[str]]:
    """Return places and texts of labels: of all, or of every eighth if there are many."""
    places = list(range(0, len(labels), 1 if len(labels) <= LABELLED else 8))
    return places, [shortened(labels[place]) for place in places]


def shortened(text: str, length: int = 14) -> str:
    """Return `text`. If it has more than `length` characters, it is cut and ends with an ellipsis."""
    return text if len(text) <= length else text[: length - 1] + "…"


def text_width(text: str) -> float:
    """Return the approximate width of a text. Chinese, Japanese and Korean characters are wide."""
    return sum(CHARACTER * (1.6 if "\u2e80" <= character <= "\uffef" else 1) for character in text)


def token_boxes(title: str, pieces: Sequence[str], ids: Sequence[int]) -> Figure:
    places: list[tuple[float, int]] = []
    x, line = 0.0, 0
    widths = [max(text_width(piece), text_width(str(id))) + 0.2 for piece, id in zip(pieces, ids, strict=True)]
    for width in widths:
        if x + width > WIDTH:
            x, line = 0, line + 1
        places.append((x + width / 2, line))
        x += width + 0.06
    figure, axes = canvas(title, WIDTH, 0.6 * (line + 1))
    for (x, line), width, piece, id in zip(places, widths, pieces, ids, strict=True):
        y = 0.25 + 0.6 * line
        axes.barh(y, width, 0.28, left=x - width / 2, color=HIGH, alpha=0.2)
        axes.text(x, y, piece, ha="center", va="center", size=9)
        axes.text(x, y + 0.25, str(id), ha="center", va="center", size=7)
    return figure


def heat_maps(title: str, matrices: Sequence[HeatMap], columns: int, cell: tuple[float, float], square: bool) -> Figure:
    """Draw matrices of similar sizes in a grid with `columns` columns. `cell` is the size of a cell."""
    lines = -(-len(matrices) // columns)
    label = max(min(text_width(row), 1.0) for matrix in matrices for row in matrix.rows)
    above = max((min(text_width(column), 1.0) for matrix in matrices for column in matrix.columns), default=0.2)
    height, width = (max(matrix.values.shape[side] for matrix in matrices) for side in (0, 1))
    size = columns * max(label + width * cell[0] + 0.2, 1.8), lines * (above + height * cell[1] + 0.4)
    figure = Figure(size, layout="constrained")
    add_title(figure, title)
    for number, matrix in enumerate(matrices, start=1):
        show(figure.add_subplot(lines, columns, number), matrix, square)
    return figure


def embeddings(title: str, embedding: EmbeddingRecord, rows: Sequence[str], last: str) -> Figure:
    parts = (("tokens, scaled", embedding.tokens), ("positions", embedding.positions), (last, embedding.output))
    matrices = [HeatMap.scaled(name, part, rows) for name, part in parts]
    return heat_maps(title, matrices, 1, (9 / embedding.output.shape[1], SIDE), square=False)


def position_matrix(positions: Tensor) -> Figure:
    title = "Position encoding: a row for each position, a column for each dimension"
    rows = [str(number) for number in range(len(positions))]
    return heat_maps(title, [HeatMap("", positions, rows)], 1, (9 / positions.shape[1], 0.13), square=False)


def masks(explanation: TranslationRecord) -> Figure:
    matrices = []
    for block, name in BLOCKS.items():
        attention = explanation.record.of(block)[0]
        matrices.append(HeatMap(name, attention.mask.float(), *explanation.labels(attention)))
    return _attention_maps("Masks", matrices)


def attention_layer(record: AttentionRecord, queries: Sequence[str], keys: Sequence[str]) -> Figure:
    """Draw the attention weights of each head of a layer, and the mean over the heads.

    The last row of each picture is the mean over the queries.
    """
    titles = [f"head {head}: {bits:.2f} bits" for head, bits in enumerate(record.entropy.tolist(), start=1)]
    weights = [*record.weights, record.weights.mean(0)]
    matrices = [
        HeatMap(name, values.new_tensor([*values.tolist(), values.mean(0).tolist()]), [*queries, "mean"], keys)
        for name, values in zip([*titles, "mean of the heads"], weights, strict=True)
    ]
    return _attention_maps(f"{BLOCKS[record.block]}, layer {record.layer}", matrices)


def _attention_maps(title: str, matrices: Sequence[HeatMap]) -> Figure:
    keys = max(len(matrix.columns) for matrix in matrices)
    side = SIDE if keys <= LABELLED else 0.06
    columns = max(1, min(len(matrices), int(WIDTH / (keys * side + 0.8))))
    return heat_maps(title, matrices, columns, (side, side), square=True)


def query_steps(record: AttentionRecord, head: int, query: int, keys: Sequence[str]) -> Figure:
    """Draw the attention of one query: q, k, weights, v and the weighted sum of v. `head` and `query` count from 0."""
    q, k, v = record.q[head, query], record.k[head], record.v[head]
    weights = record.weights[head, query]
    scores = record.scores[head, query].masked_fill(~record.mask[query], 0)
    matrices = {
        "q": HeatMap.scaled("q of the query", q[None], ["q"]),
        "k": HeatMap.scaled("k of every key", k, keys),
        "s": HeatMap.scaled("q k / sqrt(d_k)", scores[:, None], keys),
        "w": HeatMap("softmax", weights[:, None], keys),
        "v": HeatMap.scaled("v of every key", v, keys),
        "z": HeatMap.scaled("result: sum of softmax times v", (weights @ v)[None], ["z"]),
    }
    rows = (1, len(keys), len(keys), 1)
    figure = Figure((WIDTH, sum(rows) * SIDE + 2), layout="constrained")
    add_title(figure, "One query, step by step")
    grid = figure.subplot_mosaic("q..\nksw\nv..\nz..", height_ratios=rows, width_ratios=(8, 1, 1))
    for name, matrix in matrices.items():
        show(grid[name], matrix)
        grid[name].tick_params(labelbottom=name not in "sw")
    return figure


def distance_curve(products: Tensor) -> Figure:
    """Draw the mean dot product of two positions by their distance. `products` has the dot product of each pair."""
    means = [float(products.diagonal(distance).mean()) for distance in range(len(products))]
    figure = Figure((6.5, 2.8), layout="constrained")
    axes = figure.subplots()
    axes.plot(means, color=HIGH)
    axes.set(title="Dot product of two positions by their distance", xlabel="distance in tokens", xlim=(0, None))
    axes.grid(axis="y", color=SOFT, alpha=0.4)
    return figure


def magnitude_bars(norms: Sequence[NormRecord]) -> Figure:
    figure = Figure((7.5, 0.8 + 0.34 * len(norms)), layout="constrained")
    axes = figure.subplots()
    axes.set_title("Root mean square of the states before and after each LayerNorm")
    before, after = ([getattr(norm, name) for norm in norms] for name in ("residual", "normalised"))
    series = (("before: residual", before, HIGH, -0.2), ("after: normalised", after, ACCENT, 0.2))
    for name, values, color, offset in series:
        bars = axes.barh([number + offset for number in range(len(norms))], values, 0.36, color=color, label=name)
        axes.bar_label(bars, fmt="%.3g", padding=3, size=7)
    axes.set_yticks(range(len(norms)), [norm.name for norm in norms])
    axes.invert_yaxis()
    axes.legend(framealpha=0)
    return figure


def probability_rows(steps: Sequence[tuple[str, Sequence[tuple[str, float]]]]) -> Figure:
    """Draw the most probable tokens of each decoding step, with their probabilities.

    A step is a pair: the chosen token, and pairs (token, probability).
    """
    figure, axes = canvas("Probabilities of the next token, by decoding step", WIDTH, 0.15 + 0.26 * len(steps))
    for number, (chosen, candidates) in enumerate(steps):
        y = 0.25 + 0.26 * number
        axes.text(0, y, f"{number + 1}. {shortened(chosen)}", va="center")
        for place, (piece, probability) in enumerate(candidates):
            x, color = 1.5 + 1.7 * place, ACCENT if piece == chosen else HIGH
            axes.barh(y, 1.6, 0.2, left=x, color=SOFT, alpha=0.2)
            axes.barh(y, 1.6 * probability, 0.2, left=x, color=color, alpha=0.5)
            axes.text(x + 0.05, y, shortened(piece), va="center", weight="bold" if piece == chosen else "normal")
            axes.text(x + 1.55, y, f"{probability:.4f}", va="center", ha="right", size=7)
    return figure


def beam_tree(tree: SearchTree, pieces: Sequence[str]) -> Figure:
    """Draw the tree of a beam search: a column for each step. The path of the best hypothesis is in bold."""
    columns = ordered(tree.nodes)
    places = {id(node): (step, row) for step, column in enumerate(columns) for row, node in enumerate(column)}
    title = f"Beam search with {tree.beam_size} beams. Blue: kept; green: finished; grey: pruned"
    figure, axes = canvas(title, 1.4 * len(columns), 0.2 + 0.2 * max(map(len, columns)))
    colors = {ALIVE: HIGH, FINISHED: ACCENT}
    for node in tree.nodes:
        x, y = (1.4 * places[id(node)][0] + 0.1, 0.2 * places[id(node)][1] + 0.2)
        color, weight = colors.get(node.fate, SOFT), "bold" if node.is_best else "normal"
        name = shortened(pieces[node.token], 9) if node.step else "<s>"
        value = f"score {node.score:.3f}" if node.score is not None else f"{node.total:.2f}" if node.step else ""
        axes.text(x + 0.1, y, f"{name} {value}", va="center", size=7, weight=weight, alpha=0.7 if color is SOFT else 1)
        axes.plot(x, y, "s", color=color, markersize=4)
        if node.step:
            parent, row = places[id(tree.nodes[node.parent])]
            ends = (1.4 * parent + 1.15, x - 0.05), (0.2 * row + 0.2, y)
            axes.plot(*ends, color=ACCENT if node.is_best else color, linewidth=2 if node.is_best else 0.7)
    return figure


def ordered(nodes: Sequence[Node]) -> list[list[Node]]:
    """Return the nodes of each step, ordered by parent and then by log-probability, so that no edges cross."""
    columns: list[list[Node]] = [[] for _ in range(nodes[-1].step + 1)]
    for node in nodes:
        columns[node.step].append(node)
    for before, column in pairwise(columns):
        place = {id(node): row for row, node in enumerate(before)}
        column.sort(key=lambda node: (place[id(nodes[node.parent])], -node.total))
    return columns


def word_links(source: str, target: str, links: Sequence[Link]) -> Figure:
    """Draw the words of a sentence above the words of its translation, and a line for each link."""
    figure, axes = canvas("Word alignment", 1.3 * text_width(max(source, target, key=len)) + 2, 1.4)
    middles: list[dict[int, float]] = []
    for side, (text, y) in enumerate(((source, 0.25), (target, 1.2))):
        x, place, centers = 0.0, 0, {}
        for begin, end in sorted({link[side] for link in links}):
            for part, alpha in ((text[place:begin].strip(), 0.6), (text[begin:end], 1.0)):
                width = 1.3 * text_width(part)
                axes.text(x + width / 2, y, part, ha="center", va="center", size=10, alpha=alpha)
                centers[begin] = x + width / 2
                x += width + 0.12 if part else 0
            place = end
        axes.text(x, y, text[place:].strip(), va="center", size=10, alpha=0.6)
        middles.append(centers)
    for (source_begin, _), (target_begin, _) in links:
        axes.plot((middles[0][source_begin], middles[1][target_begin]), (0.38, 1.07), color=HIGH)
    return figure
