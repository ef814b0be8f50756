"""Make of a trained model a smaller one that begins with its weights, to be trained on what the large one translates.

    python scripts/shrink.py TEACHER runs/student --encoder-layers 6 --decoder-layers 1 --vocabulary-size 3000

The encoder reads a sentence once; the decoder runs for each token of each hypothesis. So a fast model has few decoder
layers, and a small vocabulary if it is small itself. What is written is no good before it has been trained: name it as
the model of a recipe's [tuning], whose corpora are what scripts/distil.py made of the teacher's translations. A number
that is left out is the teacher's.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from rich.console import Console
from shell.command import command

from mt.checkpoint import load_model, save_model
from mt.interop.output import check_output
from mt.training.student import shrink

CARD = """# A student that is still to be trained

`scripts/shrink.py` made it of {teacher}: {encoder} encoder and {decoder} decoder layers, {pieces:,} pieces. It
translates nothing well before a recipe with `[tuning]` and `model = "{folder}"` has trained it.
"""


@command
def main(arguments: Sequence[str]) -> int:
    options = parse(arguments)
    check_output(options.out, options.model)
    teacher = load_model(options.model, torch.device("cpu"))
    there = teacher.description.model
    weights, tokenizer, description = shrink(
        teacher,
        there.encoder_layers if options.encoder_layers is None else options.encoder_layers,
        there.decoder_layers if options.decoder_layers is None else options.decoder_layers,
        len(teacher.tokenizer) if options.vocabulary_size is None else options.vocabulary_size,
    )
    shape = description.model
    card = CARD.format(
        teacher=options.model,
        encoder=shape.encoder_layers,
        decoder=shape.decoder_layers,
        pieces=len(tokenizer),
        folder=options.out,
    )
    save_model(options.out, weights, tokenizer, description, card, teacher.calibration)
    parameters = sum(tensor.numel() for tensor in weights.values())
    before = sum(parameter.numel() for parameter in teacher.model.parameters())
    Console(stderr=True).print(
        f"{options.out}: {parameters:,} parameters of {before:,}, to be trained",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("model", type=Path, help="the teacher's model directory")
    parser.add_argument("out", type=Path, help="the folder to write; a model that is there is replaced")
    parser.add_argument("--encoder-layers", type=int, metavar="N", help="how many to have; there may be more")
    parser.add_argument("--decoder-layers", type=int, metavar="N", help="how many to keep")
    parser.add_argument("--vocabulary-size", type=int, metavar="N", help="how many pieces to keep")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
