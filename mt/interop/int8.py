"""Comparison of int8 with float32 for a model directory, and conversion of a model directory to int8 weights."""

from dataclasses import replace
from pathlib import Path

import torch

from mt.checkpoint import FLOAT_WEIGHTS, LoadedModel, load_model, save_int8_check, save_model, without_section
from mt.data.check_sentences import check_sentences
from mt.decoding.scorer import ModelScorer
from mt.description import CalibrationPair, Int8Check
from mt.engine.backends.calibration import accepts
from mt.engine.backends.compiled_scorer import CompiledScorer
from mt.engine.backends.cpu import compile_model
from mt.engine.backends.int8_check import divergence
from mt.errors import ModelError
from mt.files import atomic_file
from mt.interop.output import check_output
from mt.kernels.library import load_library

MAX_DIRECTIONS, MAX_SENTENCES = 8, 64  # of the comparison

HEADING = "## Weights in int8"
CARD = """\
Each row of each matrix was rounded to int8 with a float32 scale. Biases, LayerNorms and positions are float32. {exact}
"""
KEPT = f"The float32 weights are in `{FLOAT_WEIGHTS}`. A CPU that translates in int8 does not need this file."
NOT_KEPT = "The float32 weights are not included: a GPU, `--dtype float32` and tuning use the rounded weights."

CHECK = """
## int8 compared with float32

Along float32 translations of {sentences} sentences that ship with mt-service, the distributions of the next token in \
int8 diverge from those in float32 by {divergence:.5f} nats per token (Kullback-Leibler), and by {worst_decile:.5f} in \
the worst tenth of the sentences. On a CPU, `--dtype auto` {selects}.
"""
PASSED, FAILED = "therefore selects int8", "therefore selects float32, until `mt-service calibrate` has better evidence"


def round_import(folder: Path, keep_float: bool = False) -> Int8Check | None:
    """Compare int8 with float32 for an imported model, and store its weights in int8 if they are close enough.

    Return the result of the comparison. It is also stored in the directory and described in its README.md. `keep_float`
    stores the float32 weights as well. If the compiled kernels are not available, return None and change nothing.

    Raises:
        ModelError: The model cannot be loaded.
    """
    if load_library() is None:
        return None
    loaded = load_model(folder)
    check = measure_int8(loaded)
    path = folder / "README.md"
    selects = PASSED if accepts(check) else FAILED
    card = path.read_text(encoding="utf-8") + CHECK.format(**check.model_dump(), selects=selects)
    if accepts(check):
        _write_int8(folder, loaded, card, keep_float)
    else:
        with atomic_file(path) as file:
            file.write_text(card, encoding="utf-8")
    save_int8_check(folder, check)
    return check


@torch.inference_mode()
def measure_int8(loaded: LoadedModel) -> Int8Check:
    """Compare int8 in the compiled kernels with float32 in torch. The compiled kernels must be available.

    At most `MAX_SENTENCES` sentences are translated, in at most `MAX_DIRECTIONS` of the model's directions.
    """
    directions = sorted(loaded.description.directions, key=str)
    directions = directions[:: -(-len(directions) // MAX_DIRECTIONS)]
    pieces = loaded.tokenizer.pieces(range(len(loaded.tokenizer)))
    pairs = [
        loaded.encode_pair(CalibrationPair(direction=direction, source=sentence, target=""))
        for direction in directions
        for sentence in check_sentences(direction.source, pieces)[: MAX_SENTENCES // len(directions)]
    ]
    rounded = CompiledScorer(compile_model(loaded, int8=True))
    return divergence(ModelScorer(loaded.model), rounded, pairs, loaded.description.model.max_length)


def export_int8(model: Path, out: Path, keep_float: bool = False) -> None:
    """Convert the model directory `model` to a model directory `out` with int8 weights. An existing model is replaced.

    `keep_float` stores the float32 weights as well.

    Raises:
        ModelError: The model cannot be loaded, has no float32 weights to keep, or `out` exists and is not a model.
    """
    check_output(out, model)
    loaded = load_model(model)
    rounded = loaded.description.weights == "int8"
    if keep_float and rounded and not (model / FLOAT_WEIGHTS).is_file():
        raise ModelError(f"{model}: has int8 weights without {FLOAT_WEIGHTS}; accepted: a model with float32 weights")
    path = model / "README.md"
    card = path.read_text(encoding="utf-8") if path.is_file() else f"# {loaded.description.name}\n"
    _write_int8(out, loaded, without_section(card, HEADING), keep_float)  # without the section of an earlier export


def _write_int8(out: Path, loaded: LoadedModel, card: str, keep_float: bool) -> None:
    save_model(
        out,
        replace(loaded, description=loaded.description.with_weights("int8")),
        f"{card.rstrip()}\n\n{HEADING}\n\n" + CARD.format(exact=KEPT if keep_float else NOT_KEPT),
        keep_float,
    )
