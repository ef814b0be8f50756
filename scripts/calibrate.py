"""Fit a model's confidence, how good each of its translations is likely to be, and give it text to check int8 with.

    python scripts/calibrate.py runs/multi30k-en-de/model --source val.en --reference val.de
    python scripts/evaluate.py runs/multi30k-en-de/model --source test.en --reference test.de --reliability plot.png

Training does so on its validation set; this is for a model that was imported, or whose texts are of another kind than
those it was trained on. From then on `--dtype auto` takes int8 on a CPU, unless that makes the text less probable. Give
a thousand sentences with translations, none of which the model was trained on.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from shell.command import command

from mt.checkpoint import CALIBRATION_PAIRS, CalibrationPair, save_calibration, save_confidence
from mt.data.corpus import read_parallel
from mt.engine.translator import Translator
from mt.errors import LanguageError
from mt.training.confidence import fit_confidence


@command
def main(arguments: Sequence[str]) -> int:
    run(parse(arguments), Console(stderr=True))
    return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument(
        "model", type=Path, help="a model directory; confidence.json and calibration.json are written into it"
    )
    parser.add_argument(
        "--source", type=Path, metavar="FILE", required=True, help="one sentence a line; maybe .gz, .xz"
    )
    parser.add_argument("--reference", type=Path, metavar="FILE", required=True, help="its translations, line by line")
    parser.add_argument("--direction", metavar="L-L", help="such as en-de; needed where a model translates several")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:1 ... (default: %(default)s)")
    return parser.parse_args(arguments)


def run(options: argparse.Namespace, console: Console) -> None:
    """Raises MTError."""
    translator = Translator.load(options.model, options.device)
    direction = options.direction or (translator.directions[0] if len(translator.directions) == 1 else "")
    if direction not in translator.directions:
        raise LanguageError(f"--direction is {direction!r}; accepted: {', '.join(translator.directions)}")
    pairs = [
        CalibrationPair(direction=direction, source=pair.source, target=pair.target)
        for pair in read_parallel(options.source, options.reference)
    ]
    texts = [pair for pair in pairs if pair.source.strip()]
    save_calibration(options.model, texts[:: max(1, -(-len(texts) // CALIBRATION_PAIRS))])
    translator = Translator.load(options.model, options.device)  # in int8, if that is well
    with console.status(f"translating {len(pairs):,} sentences in {translator.dtype}"):
        confidence = fit_confidence(translator, pairs)
    save_confidence(options.model, confidence)
    console.print(
        f"{options.model / 'confidence.json'}: chrF / 100 is about {confidence.intercept:.3f} + "
        f"{confidence.slope:.3f} x the mean probability of tokens, by {confidence.sentences:,} sentences in "
        f"{translator.dtype}",
        soft_wrap=True,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
