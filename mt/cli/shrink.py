"""Make a smaller model, the student, from some layers and tokens of a trained model, the teacher.

    mt-service shrink TEACHER runs/student --encoder-layers 6 --decoder-layers 1 --vocabulary-size 3000

The encoder runs once per sentence, the decoder once per token and hypothesis. A fast model therefore has few decoder
layers and, if it is small, a small vocabulary. Train the student before use: set `model` in the section [tuning] of a
recipe to the student's directory, and train on a corpus that `mt-service distil` built from the teacher's translations.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from mt.checkpoint import LoadedModel, load_model, save_model, to_arrays
from mt.cli.command import CommandParser, command, count, stderr_console, tell
from mt.interop.catalogue import model_path
from mt.interop.output import check_output
from mt.training.student import shrink

CARD = """# A student that is not trained yet

`mt-service shrink` made this model from {teacher}: {encoder} encoder and {decoder} decoder layers, {pieces:,} pieces.
Before you use the model, train it with a recipe whose section `[tuning]` has `model = "{folder}"`.
"""


@command
def main(argv: Sequence[str]) -> int:
    options = parse(argv)
    check_output(options.out, options.model)
    teacher = load_model(options.model)
    config = teacher.description.model
    weights, tokenizer, description = shrink(
        teacher,
        options.encoder_layers or config.encoder_layers,
        options.decoder_layers or config.decoder_layers,
        options.vocabulary_size or len(teacher.tokenizer),
    )
    card = CARD.format(
        teacher=options.model,
        encoder=description.model.encoder_layers,
        decoder=description.model.decoder_layers,
        pieces=len(tokenizer),
        folder=options.out,
    )
    student = LoadedModel(to_arrays(weights), tokenizer, description, calibration=teacher.calibration)
    save_model(options.out, student, card)
    parameters = sum(tensor.numel() for tensor in weights.values())
    before = sum(parameter.numel() for parameter in teacher.model.parameters())
    tell(stderr_console(), f"{options.out}: {parameters:,} of {before:,} parameters, not trained yet")
    return 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser("shrink", __doc__)
    parser.add_argument("model", type=model_path, help="model directory of the teacher")
    parser.add_argument("out", type=Path, help="model directory to write; an existing model is replaced")
    add = parser.common.add_argument
    add("--encoder-layers", type=count, metavar="N", help="number of encoder layers, also more than the teacher's")
    add("--decoder-layers", type=count, metavar="N", help="number of decoder layers (default: the teacher's)")
    add("--vocabulary-size", type=count, metavar="N", help="number of tokens (default: the teacher's)")
    return parser.parse_args(argv)
