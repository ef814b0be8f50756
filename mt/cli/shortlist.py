"""Create the vocabulary shortlist of a model.

    mt-service shortlist models/opus-mt-en-de --corpus corpus.tsv en,de
    mt-service shortlist models/opus-mt-en-de --lex lex.50.50.ende.s2t

A shortlist makes decoding on a CPU faster: a translation may contain only frequent tokens, likely translations of the
tokens of the source, and these tokens themselves. It pays for large vocabularies; some translations change. The
translations are learned from parallel text, or read from a lexical table of Marian with this model's pieces.

The shortlist is written to shortlist.safetensors in the model directory, and CPUs use it from then on.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from mt.checkpoint import load_model
from mt.cli.command import CommandParser, command, count, own_model, stderr_console, tell
from mt.data.shortlist import corpus_tables, lexical_table, make_shortlist
from mt.errors import ModelError
from mt.kernels.shortlist import save_shortlist

TRANSLATIONS, FREQUENT = 50, 200


@command
def main(argv: Sequence[str]) -> int:
    options, console = parse(argv), stderr_console()
    loaded = load_model(options.model)
    tokenizer, directions = loaded.tokenizer, loaded.description.directions
    if tokenizer.target.pieces(range(len(tokenizer.target))) != tokenizer.pieces(range(len(tokenizer))):
        raise ModelError(f"{options.model} has two vocabularies; accepted: one vocabulary for source and target")
    if options.lex:
        learned, tables = list(directions), [lexical_table(tokenizer, path) for path in options.lex]
    else:
        with console.status("aligning"):
            learned, tables = corpus_tables(tokenizer, options.corpus, directions)
    tags = [tokenizer.source_tag_id(tag) for tag in tokenizer.source_tags]
    tags += [id for one in learned for id in tokenizer.source_prefix(one.source, one.target, directions)]
    shortlist = make_shortlist(tokenizer, tags, tables, options.translations, options.frequent)
    save_shortlist(options.model, shortlist, tokenizer.digest)
    tell(
        console,
        f"{options.model}, {', '.join(map(str, learned))}: {len(shortlist.always):,} of {len(tokenizer):,} tokens are "
        f"always allowed; a token of the source allows {len(shortlist.allowed) / len(tokenizer):,.0f} more on average",
    )
    return 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser("shortlist", __doc__)
    parser.add_argument("model", type=own_model, help="model directory; gets shortlist.safetensors")
    text = parser.common.add_mutually_exclusive_group(required=True)
    text.add_argument(
        "--corpus",
        nargs=2,
        action="append",
        metavar=("PATH", "LANGUAGES"),
        help="a .tsv, or a path as in a recipe, such as train.{language}.gz or memory.tmx; and its languages, those of "
        "the columns of a .tsv: en,de. Other directions keep the whole vocabulary; can be repeated",
    )
    text.add_argument(
        "--lex",
        type=Path,
        action="append",
        metavar="FILE",
        help="a lexical table with lines TARGET SOURCE PROBABILITY; repeated for each direction of the model",
    )
    numbers = (
        ("--translations", TRANSLATIONS, "tokens that a source token allows in each direction (%(default)s)"),
        ("--frequent", FREQUENT, "frequent tokens of each direction that are always allowed (%(default)s)"),
    )
    for name, default, help in numbers:
        parser.more.add_argument(name, type=count, default=default, metavar="N", help=help)
    return parser.parse_args(argv)
