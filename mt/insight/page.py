"""The HTML page of an explanation, in one file: its style and pictures are inside of it, and it has no script."""

import base64
from collections.abc import Iterable, Mapping
from html import escape

from matplotlib.figure import Figure

from mt.insight.pictures import DARK, LIGHT, svg
from mt.insight.record import BLOCKS
from mt.insight.search_record import ALIVE
from mt.insight.translation_record import TranslationRecord

COMPONENTS = 8  # number of components of a vector that tables show

PAGE = """<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
<title>{title}</title><style>{style}</style></head><body><h1>How the model translates a sentence</h1>
<p>{sentence}<br><b>{translation}</b></p><p>{architecture}</p><nav>{links}</nav>{sections}</body></html>
"""
STYLE = f"""
body {{margin: 0 auto; max-width: 72rem; padding: 0 1rem 4rem; font: 1rem/1.5 system-ui, sans-serif;
  background: {LIGHT["paper"]}; color: {LIGHT["ink"]}}}
@media (prefers-color-scheme: dark) {{body {{background: {DARK["paper"]}; color: {DARK["ink"]}}}}}
nav {{display: flex; flex-wrap: wrap; gap: 0.25rem 1rem}}
a {{color: #3d7edb}}
p {{max-width: 48rem}}
figure, .wide {{margin: 1rem 0; overflow-x: auto}}
table {{border-collapse: collapse; font-size: 0.85rem}}
th, td {{padding: 0.2rem 0.9rem 0.2rem 0; border-bottom: 1px solid #7d8798; text-align: left; white-space: nowrap;
  font-variant-numeric: tabular-nums}}
"""


def html_page(explanation: TranslationRecord, pictures: Mapping[str, Figure]) -> str:
    """Return the HTML page of an explanation. `pictures` is the result of `draw`."""
    sections = _sections(explanation, pictures)
    return PAGE.format(
        title=escape(f"{explanation.model}: {explanation.sentence}"),
        style=STYLE,
        sentence=escape(explanation.sentence),
        translation=escape(explanation.translation),
        architecture=escape(_architecture(explanation)),
        links="".join(f'<a href="#{name}">{escape(heading)}</a>' for name, heading, _ in sections),
        sections="".join(
            f'<section id="{name}"><h2>{escape(heading)}</h2>{body}</section>' for name, heading, body in sections
        ),
    )


def _figure(name: str, picture: Figure) -> str:
    data = base64.b64encode(svg(picture).encode()).decode()
    return f'<figure><img id="picture-{name}" alt="{name}" src="data:image/svg+xml;base64,{data}"></figure>'


def _sections(explanation: TranslationRecord, pictures: Mapping[str, Figure]) -> list[tuple[str, str, str]]:
    """Return (id, heading, HTML) of each section of the page."""

    def drawings(*names: str) -> str:
        return "".join(_figure(name, pictures[name]) for name in names)

    layers = {block: [name for name in pictures if name.startswith(f"attention-{block}")] for block in BLOCKS}
    blocks = [(block, name, _text(_BLOCK_TEXTS[block]) + drawings(*layers[block])) for block, name in BLOCKS.items()]
    return [
        ("tokens", "Tokens", _text(_TOKENS) + drawings("tokens-source", "tokens-target")),
        ("embeddings", "Embeddings", _text(_EMBEDDINGS) + drawings("embedding-source", "embedding-target")),
        (
            "positions",
            "Positions",
            _text(_POSITIONS[explanation.config.positions]) + drawings("positions", "positions-by-distance"),
        ),
        ("masks", "Masks", _text(_MASKS) + drawings("masks")),
        ("query", "One query, step by step", _query_table(explanation) + drawings("query")),
        *blocks,
        ("heads", "Heads", _text(_HEADS) + _head_table(explanation)),
        ("magnitudes", "Residual and normalised states", _text(_MAGNITUDES) + drawings("magnitudes")),
        ("probabilities", "Logits and probabilities", _steps(explanation) + drawings("probabilities")),
        ("beam", "Beam search", _search(explanation, drawings("beam"))),
        ("alignment", "Word alignment", _text(_ALIGNMENT) + drawings("alignment")),
    ]


_TOKENS = (
    "The tokenizer cuts the text into pieces of its vocabulary. ▁ is a space. The number below a piece is its id. The "
    "source ends with </s>; the decoder reads <s> and then each token that it has produced."
)
_EMBEDDINGS = (
    "Each token selects a row of the embedding matrix. The model adds the position encoding to it; the result is the "
    "input of the first layer. Blue is positive, orange is negative. Each picture has its own scale: its strongest "
    "colour is its largest absolute value."
)
_LEARNED = (
    "The vectors of the positions are parameters. The curve is the mean of the dot products of all pairs of positions "
    "with the same distance."
)
_SINUSOIDS = (
    "Position p has sin(p / 10000^(2i/d)) and cos(p / 10000^(2i/d)), for each i. The dot product of two positions "
    "depends on their distance alone, and is largest at distance 0."
)
_POSITIONS = {
    "interleaved": f"{_SINUSOIDS} Sines and cosines alternate, as in the paper.",
    "concatenated": f"{_SINUSOIDS} All sines come first.",
    "tensor2tensor": f"{_SINUSOIDS.replace('2i/d', '2i/(d-2)')} All sines come first.",
    "learned": _LEARNED,
}
_MASKS = (
    "A cell is filled where the query of the row may attend to the key of the column. The forward pass on this page "
    "has padding after the source, as in a batch with a longer sentence: no query may attend to it. In the decoder, no "
    "token may attend to a later one."
)
_HEADS = (
    "Entropy is the mean over the queries: 0 bits if each query attends to one key, log2(n) bits if it attends to n "
    "keys equally. The last column is the difference between the output of the block and the output computed again "
    "from the weights on this page."
)
_MAGNITUDES = (
    "The root mean square over the components of a state, averaged over the tokens. In a pre-norm model, the state "
    "before LayerNorm is the residual stream, to which each sublayer adds; it usually grows from layer to layer. In a "
    "post-norm model, it is the sum of a sublayer's input and output."
)
_ALIGNMENT = (
    "Each target word is linked to the source word that it attends to most, in the mean over the heads of the layer "
    "before the last."
)
_BLOCK_TEXTS = {
    "encoder": "Each source token (row) attends to all source tokens (columns), but not to padding.",
    "decoder": "Each token that the decoder reads (row) attends to itself and to the tokens before it (columns).",
    "cross": (
        "Each token that the decoder reads (row) attends to the source (columns). The state of a row predicts the "
        "token after the row's token."
    ),
}


def _query_table(explanation: TranslationRecord) -> str:
    query, attention = explanation.query, explanation.attention
    head, position = query.head - 1, query.position - 1
    queries, keys = explanation.labels(attention)
    q, k, v = attention.q[head, position], attention.k[head], attention.v[head]
    scores, weights = attention.scores[head, position], attention.weights[head, position]
    allowed = attention.mask[position].tolist()
    text = (
        f"{BLOCKS[query.block]}, layer {query.layer}, head {query.head}, the query of token {query.position}, "
        f"{queries[position]}. d_k is {len(q)}; vectors show their first {min(COMPONENTS, len(q))} components. Each "
        "score is the dot product of q with a key, divided by sqrt(d_k). The softmax of the allowed scores weights the "
        "values. The option --query BLOCK.LAYER.HEAD.POSITION of mt-service explain selects another query."
    )
    rows = [
        (
            f"{number}. {key}",
            _vector(k[number - 1]),
            f"{float(q @ k[number - 1]):.4f}",
            f"{float(scores[number - 1]):.4f}" if allowed[number - 1] else "masked",
            f"{float(weights[number - 1]):.4f}",
            _vector(v[number - 1]),
        )
        for number, key in enumerate(keys, start=1)
    ]
    rows.append(("sum", "", "", "", f"{float(weights.sum()):.4f}", _vector(weights @ v)))
    header = ("key", "k", "q · k", "score", "softmax", "v; last row: result")
    return f"{_text(text)}<p><b>q</b> = <code>{_vector(q)}</code></p>{_table(header, rows)}"


def _head_table(explanation: TranslationRecord) -> str:
    rows = []
    for attention in (attention for block in BLOCKS for attention in explanation.record.of(block)):
        _, keys = explanation.labels(attention)
        received = attention.weights.mean(1)  # [H, S]
        for head, bits in enumerate(attention.entropy.tolist()):
            key = int(received[head].argmax())
            rows.append(
                (
                    BLOCKS[attention.block],
                    str(attention.layer),
                    str(head + 1),
                    f"{bits:.3f}",
                    f"{float(attention.weights[head].amax(1).mean()):.3f}",
                    f"{key + 1}. {keys[key]}: {float(received[head, key]):.3f}",
                    f"{attention.difference:.1e}",
                )
            )
    header = ("block", "layer", "head", "entropy", "mean of the largest weights", "key with the largest mean weight")
    return _table((*header, "difference"), rows)


def _steps(explanation: TranslationRecord) -> str:
    text = (
        "The decoder's state after the last layer gives a logit for each token of the vocabulary; softmax turns logits "
        "into probabilities. Each step continues the best translation. Green is the token that the translation has."
    )
    rows = [
        (
            f"{number}. {step.chosen}",
            f"{step.logit:.3f}",
            f"{step.probability:.4f}",
            str(step.rank),
            f"{step.entropy:.2f}",
            ", ".join(f"{piece} {logit:.2f}" for piece, logit, _ in step.candidates),
        )
        for number, step in enumerate(explanation.steps, start=1)
    ]
    return _text(text) + _table(("step", "logit", "probability", "rank", "entropy in bits", "highest logits"), rows)


def _search(explanation: TranslationRecord, picture: str) -> str:
    tree = explanation.tree
    text = (
        "Each step ranks all continuations of the live hypotheses by their log-probability, and keeps the best "
        f"{tree.beam_size}. A hypothesis that ends is ranked by its score: the log-probability divided by the length "
        f"penalty. The picture shows the best {tree.beam_size} pruned continuations of each step; the table has the "
        f"reasons. The search ended at step {tree.nodes[-1].step}: {tree.stop}."
    )
    rows = [
        (
            str(node.step),
            " ".join(explanation.vocabulary[token] for token in tree.tokens(node)),
            f"{node.total:.3f}",
            node.fate,
            node.reason,
        )
        for node in tree.nodes[1:]
        if node.fate != ALIVE
    ]
    header = ("step", "hypothesis", "log-probability", "fate", "reason")
    details = f"<details><summary>Every pruned and finished hypothesis</summary>{_table(header, rows)}</details>"
    return _text(text) + picture + details


def _architecture(explanation: TranslationRecord) -> str:
    config = explanation.config
    return (
        f"{explanation.model}: {config.encoder_layers} encoder layers, {config.decoder_layers} decoder layers, "
        f"d_model {config.d_model}, d_ff {config.d_ff}, {config.heads} heads, {config.norm}-norm, "
        f"{len(explanation.vocabulary):,} tokens in the target vocabulary. Computed in float32 on a CPU."
    )


def _text(text: str) -> str:
    return f"<p>{escape(text)}</p>"


def _table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    def line(tag: str, cells: Iterable[str]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line("td", row) for row in rows)
    return f'<div class="wide"><table><thead>{line("th", header)}</thead><tbody>{body}</tbody></table></div>'


def _vector(values: Iterable[float]) -> str:
    numbers = [f"{float(value):.3f}" for value in values]
    return f"[{', '.join(numbers[:COMPONENTS])}{', …' if len(numbers) > COMPONENTS else ''}]"
