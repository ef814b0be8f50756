"""Generate text with a language model. A recipe with `data.language` trains one.

    mt-service generate runs/characters-de/model --prompt "Wo ist"
    mt-service generate runs/characters-de/model --prompt "Wo ist" --count 5 --temperature 0.7 --top-k 10
    mt-service generate runs/characters-de/model --lines 10 --max-length 1000 --seed 2
    mt-service generate runs/characters-de/model --prompt "Wo ist" --beam-size 5

A text is sampled or, with --beam-size, found by beam search. It begins with the prompt, and ends after --lines lines
(default: 1) or at --max-length. A single text is printed token by token. Several texts are generated in one batch.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from mt.cli.command import CommandParser, command, count
from mt.decoding.options import SearchOptions
from mt.pipeline.generation import GenerationOptions, TextGenerator


@command
def main(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    options = generation_options(arguments)
    generator = TextGenerator.load(arguments.model, arguments.device)
    if options.count == 1:
        for text in generator.stream(options):
            sys.stdout.write(text)
            sys.stdout.flush()
        print()
    else:
        print(("\n" if options.lines == 1 else "\n\n").join(generator.generate(options)))
    return 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser("generate", __doc__)
    parser.add_argument("model", type=Path, help="model directory of a language model")
    add = parser.common.add_argument
    add("--prompt", default="", metavar="TEXT", help="beginning of the text (default: none)")
    add("--count", type=count, default=1, metavar="N", help="number of texts (default: %(default)s)")
    add("--lines", type=count, default=1, metavar="N", help="lines of a text (default: %(default)s)")
    add(
        "--max-length",
        type=count,
        default=200,
        metavar="N",
        help="maximum number of tokens after the prompt (default: %(default)s)",
    )
    add("--temperature", type=float, default=1.0, metavar="X", help="below 1, probable tokens are drawn more often")
    add("--top-k", type=int, default=0, metavar="N", help="draw among the N most probable tokens (default: all)")
    add(
        "--top-p",
        type=float,
        default=1.0,
        metavar="X",
        help="draw among the most probable tokens whose probabilities add up to X (default: 1, all)",
    )
    add("--seed", type=int, default=0, metavar="N", help="equal seeds give equal texts (default: %(default)s)")
    parser.add_device()
    parser.more.add_argument(
        "--beam-size", type=count, metavar="N", help="beam search with N hypotheses instead of sampling; 1 is greedy"
    )
    return parser.parse_args(argv)


def generation_options(arguments: argparse.Namespace) -> GenerationOptions:
    """Convert the arguments of the command line. Raises: RequestError if values are invalid or cannot be combined."""
    search = SearchOptions(
        sample=arguments.beam_size is None,
        beam_size=arguments.beam_size or 1,
        temperature=arguments.temperature,
        top_k=arguments.top_k,
        top_p=arguments.top_p,
        seed=arguments.seed,
    )
    return GenerationOptions(arguments.prompt, search, arguments.count, arguments.lines, arguments.max_length)
