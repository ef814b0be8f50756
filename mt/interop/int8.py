"""Conversion of a model directory to one with int8 weights."""

from pathlib import Path

import torch

from mt.checkpoint import FLOAT_WEIGHTS, load_model, save_model, save_shortlist
from mt.errors import ModelError
from mt.interop.output import check_output

HEADING = "## Weights in int8"
CARD = """\
`mt-service export --to int8` rounded each row of each matrix to int8 with a float32 scale. Biases, LayerNorms and \
positions are float32. {exact}
"""
KEPT = f"The float32 weights are in `{FLOAT_WEIGHTS}`, which a CPU does not need to translate in int8."
NOT_KEPT = "The float32 weights are not here: a GPU, float32 and tuning use the rounded ones."


def export_int8(model: Path, out: Path, keep_float: bool = False) -> None:
    """Convert the model directory `model` to `out`, a directory with int8 weights; an existing model there is replaced.

    `keep_float` stores the float32 weights as well. Raises: ModelError if the model cannot be loaded, has no float32
    weights to keep, or `out` exists and is not a model.
    """
    check_output(out, model)
    loaded = load_model(model, torch.device("cpu"))
    rounded = loaded.description.weights == "int8"
    if keep_float and rounded and not (model / FLOAT_WEIGHTS).is_file():
        raise ModelError(f"{model}: has int8 weights without {FLOAT_WEIGHTS}; accepted: a model with float32 weights")
    path = model / "README.md"
    card = path.read_text(encoding="utf-8") if path.is_file() else f"# {loaded.description.name}\n"
    card = card.partition(HEADING)[0].rstrip()  # without the section of an earlier export
    save_model(
        out,
        loaded.model.state_dict(),
        loaded.tokenizer,
        loaded.description.with_weights("int8"),
        f"{card}\n\n{HEADING}\n\n" + CARD.format(exact=KEPT if keep_float else NOT_KEPT),
        loaded.calibration,
        loaded.confidence,
        keep_float=keep_float,
    )
    if loaded.shortlist is not None:
        save_shortlist(out, loaded.shortlist, loaded.tokenizer)
