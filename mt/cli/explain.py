"""Show how a model translates a sentence: write an HTML page or a picture, or print a worked example.

    mt-service explain runs/phrasebook-en-de/model "Where is the train station?"
    mt-service explain MODEL "A dog runs." --output dog --query cross.2.1.3
    mt-service explain MODEL "A dog runs." --only masks
    mt-service explain --example

DIR/index.html is one file that needs no network: tokens, embeddings and positions, masks, the attention of every
layer and head, one query step by step, sizes of the states, logits and probabilities, the beam search as a tree,
and word alignment. Its colours follow the reader's theme, light or dark. --only writes one picture as SVG.

The sentence is translated by one beam search in float32 on the CPU. The repairs of `mt-service translate` (numbers,
capitals, repetition) are not applied.

--example prints each matrix of self-attention for three small inputs, with exact and rounded values.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from mt.checkpoint import load_model
from mt.cli.command import CommandParser, command, count, stderr_console, tell
from mt.errors import RequestError
from mt.insight.example import describe_example
from mt.insight.page import html_page
from mt.insight.pictures import draw, svg
from mt.insight.translation_record import Query, explain
from mt.interop.catalogue import model_path
from mt.pipeline.translator import Translator


@command
def main(argv: Sequence[str]) -> int:
    options = parse(argv)
    if options.example:
        print(describe_example())
        return 0
    write_explanation(options, stderr_console())
    return 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser("explain", __doc__)
    parser.add_argument("model", type=model_path, nargs="?", help="model directory, or `starter`")
    parser.add_argument("sentence", nargs="?", help="sentence to translate")
    add = parser.common.add_argument
    add("--output", type=Path, default=Path("explanation"), metavar="DIR", help="folder to write (%(default)s)")
    parser.add_languages()
    add("--example", action="store_true", help="print the worked example; no model is needed")
    add = parser.more.add_argument
    add("--beam-size", type=count, metavar="N", help="hypotheses of beam search; 1 is greedy (default: the model's)")
    add(
        "--query",
        default="encoder.1.1.1",
        metavar="QUERY",
        help="query that is computed step by step: BLOCK.LAYER.HEAD.POSITION from 1; BLOCK is encoder, decoder or "
        "cross (default: %(default)s)",
    )
    add(
        "--only",
        metavar="NAME",
        help="write only DIR/NAME.svg, such as masks or beam; its colours follow the reader's light or dark theme",
    )
    options = parser.parse_intermixed_args(argv)
    if options.sentence is None and not options.example:
        parser.error("MODEL or SENTENCE is missing; accepted: a model directory and a sentence, or --example")
    return options


def write_explanation(options: argparse.Namespace, console: Console) -> None:
    """Write the HTML page or one picture. Raises: MTError if the model or the sentence cannot be used."""
    query = Query.parse(options.query)
    loaded = load_model(options.model)
    search = Translator(loaded).options
    if options.beam_size is not None:
        search = replace(search, beam_size=options.beam_size)
    explanation = explain(
        loaded, options.sentence, source=options.source, target=options.target, query=query, options=search
    )
    pictures = draw(explanation)
    if options.only is not None and options.only not in pictures:
        raise RequestError(f"--only is {options.only!r}; accepted: {', '.join(pictures)}")
    options.output.mkdir(parents=True, exist_ok=True)
    if options.only is not None:
        path, content = options.output / f"{options.only}.svg", svg(pictures[options.only])
    else:
        path, content = options.output / "index.html", html_page(explanation, pictures)
    path.write_text(content, encoding="utf-8")
    tell(console, f"{explanation.sentence} -> {explanation.translation}")
    tell(console, f"{path}: written")
