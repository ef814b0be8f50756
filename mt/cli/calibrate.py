"""Fit the confidence of a model on parallel text, and store text for comparing its int8 weights with float32.

    mt-service calibrate runs/multi30k-en-de/model --source val.en --reference val.de
    mt-service evaluate runs/multi30k-en-de/model --source test.en --reference test.de --reliability plot.png

`mt-service train` calibrates a model on its validation set. Use this command for imported models, and for models that
translate text of another kind than their training text. Give about a thousand sentence pairs that are not training
data. On a CPU, `--dtype auto` then selects int8, unless the probabilities of this text in int8 differ too much from
those in float32.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from mt.checkpoint import CALIBRATION_PAIRS, CalibrationPair, save_calibration, save_confidence
from mt.cli.command import CommandParser, command, stderr_console
from mt.data.corpus import read_parallel
from mt.pipeline.translator import Translator
from mt.training.confidence import fit_confidence


@command
def main(argv: Sequence[str]) -> int:
    calibrate(parse(argv), stderr_console())
    return 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser("calibrate", __doc__)
    parser.add_argument("model", type=Path, help="model directory; receives confidence.json and calibration.json")
    parser.common.add_argument(
        "--source", type=Path, metavar="FILE", required=True, help="one sentence a line; plain, .gz or .xz"
    )
    parser.common.add_argument(
        "--reference", type=Path, metavar="FILE", required=True, help="translations of --source, line by line"
    )
    parser.common.add_argument(
        "--direction", metavar="L-L", help="such as en-de; required if the model has several directions"
    )
    parser.add_device()
    return parser.parse_args(argv)


def calibrate(options: argparse.Namespace, console: Console) -> None:
    """Write `confidence.json` and `calibration.json` into the model directory.

    Raises: MTError if the model or the text cannot be used.
    """
    translator = Translator.load(options.model, options.device)
    direction = translator.directions.choose(options.direction)
    pairs = [
        CalibrationPair(direction=str(direction), source=pair.source, target=pair.target)
        for pair in read_parallel(options.source, options.reference)
    ]
    texts = [pair for pair in pairs if pair.source.strip()]
    save_calibration(options.model, texts[:: max(1, -(-len(texts) // CALIBRATION_PAIRS))])
    translator = Translator.load(options.model, options.device)  # it decodes in int8 if the calibration text allows it
    with console.status(f"translating {len(pairs):,} sentences in {translator.dtype}"):
        confidence = fit_confidence(translator, pairs)
    save_confidence(options.model, confidence)
    console.print(
        f"{options.model / 'confidence.json'}: chrF / 100 = {confidence.intercept:.3f} + {confidence.slope:.3f} x mean "
        f"token probability + {confidence.token_length:.3f} x ln(characters per token), "
        f"fitted on {confidence.sentences:,} sentences in {translator.dtype}",
        soft_wrap=True,
    )
