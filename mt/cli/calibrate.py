"""Fit the confidence of a model on parallel text, and store text for comparing its int8 weights with float32.

    mt-service calibrate runs/multi30k-en-de/model --source-file val.en --reference-file val.de
    mt-service calibrate runs/mine/model --tsv dev.tsv en,de --other-tsv news.tsv en,de

`mt-service train` calibrates a model on its validation set. Use this command for imported models, and for models that
translate text of another kind than their training text. Give about a thousand sentence pairs (at least 200) that are
not training data. With --other-tsv, the confidence also holds for text of other kinds, such as news for a model of
captions. On a CPU, `--dtype auto` then selects int8, unless the probabilities of this text in int8 differ too much from
those in float32.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from mt.checkpoint import CALIBRATION_PAIRS, save_calibration, save_confidence
from mt.cli.command import CommandParser, command, own_model, stderr_console, tell, warn
from mt.data.corpus import SentencePair, read_parallel, read_tsv
from mt.data.language_check import SAMPLE, check_languages
from mt.description import CalibrationPair
from mt.engine.backends.cpu import store_loss
from mt.errors import DataError
from mt.languages import Direction, DirectionSet
from mt.pipeline.translator import Translator
from mt.training.confidence import CONFIDENCE_PAIRS, fit_confidence

LEAST_PAIRS = 200  # with fewer, the line that is fitted says more about the sentences than about the model


@command
def main(argv: Sequence[str]) -> int:
    calibrate(parse(argv), stderr_console())
    return 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser("calibrate", __doc__)
    parser.add_argument(
        "model", type=own_model, help="model directory; gets confidence.json, calibration.json, int8.json"
    )
    add = parser.common.add_argument
    parser.add_test_files("parallel text")
    tsv: dict[str, Any] = {"nargs": 2, "action": "append", "default": [], "metavar": ("FILE", "LANGUAGES")}
    add("--tsv", **tsv, help="a tab-separated file for all directions, and the languages of its columns, such as en,de")
    add("--other-tsv", **tsv, help="the same, with text of another kind than the training text; can be repeated")
    parser.add_languages()
    parser.add_device()
    options = parser.parse_args(argv)
    if len({options.source_file is None, options.reference_file is None, bool(options.tsv)}) > 1:
        parser.error("give --source-file FILE and --reference-file FILE, or --tsv FILE LANGUAGES")
    if (options.source or options.target) and options.tsv:
        parser.error("--source and --target require --source-file; --tsv uses all directions of the model")
    return options


def calibrate(options: argparse.Namespace, console: Console) -> None:
    """Write `confidence.json`, `calibration.json` and `int8.json` into the model directory.

    Raises: MTError if the model or the text cannot be used.
    """
    translator = Translator.load(options.model, options.device)
    if options.source_file is None:
        pairs = _read_tsvs(options.tsv, translator.directions)
    else:
        direction = translator.directions.choose(options.source, options.target)
        pairs = _pairs(direction, read_parallel(options.source_file, options.reference_file))
    others = _read_tsvs(options.other_tsv, translator.directions)
    for direction in dict.fromkeys(pair.direction for pair in pairs):
        sample = [(pair.source, pair.target) for pair in pairs if pair.direction == direction][:SAMPLE]
        for warning in check_languages("the parallel text", (), sample, direction.languages):
            warn(console, warning)
    texts = [pair for pair in pairs if pair.source.strip()]
    if len(texts) < LEAST_PAIRS:
        raise DataError(
            f"the text has {len(texts):,} pairs with a source, too few to fit the confidence of the model; accepted: "
            f"at least {LEAST_PAIRS}, better {CONFIDENCE_PAIRS:,}, that are not training data. Nothing is written"
        )
    save_calibration(options.model, texts[:: max(1, -(-len(texts) // CALIBRATION_PAIRS))])
    store_loss(options.model)
    translator = Translator.load(options.model, options.device)  # in int8 if the calibration text allows it
    with console.status(f"translating {len(pairs) + len(others):,} sentences in {translator.dtype}"):
        confidence = fit_confidence(translator, pairs, others)
    save_confidence(options.model, confidence)
    tell(
        console,
        f"{options.model / 'confidence.json'}: chrF / 100 = {confidence.intercept:.3f} + {confidence.slope:.3f} x "
        f"(mean token probability)^{confidence.exponent} + {confidence.token_length:.3f} x ln(characters per token), "
        f"fitted on {confidence.sentences:,} sentences in {translator.dtype}",
    )


def _read_tsvs(files: Sequence[tuple[str, str]], directions: DirectionSet) -> list[CalibrationPair]:
    """Read tab-separated files in all of `directions` that their languages form.

    Each file has a path and the languages of its columns, such as "en,de".

    Raises: DataError if a file cannot be read, or its languages form none of `directions`.
    """
    pairs = []
    for path, languages in files:
        columns = languages.split(",")
        chosen = [pair for pair in directions if pair.source in columns and pair.target in columns]
        if not chosen:
            raise DataError(f"{path}: the languages are {languages}; accepted: the languages of one of {directions}")
        for direction in chosen:
            source, target = columns.index(direction.source), columns.index(direction.target)
            pairs += _pairs(direction, read_tsv(Path(path), source, target))
    return pairs


def _pairs(direction: Direction, pairs: Iterable[SentencePair]) -> list[CalibrationPair]:
    return [CalibrationPair(direction=direction, source=pair.source, target=pair.target) for pair in pairs]
