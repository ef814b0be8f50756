"""Loading of ensembles. An ensemble averages the next-token probabilities of several models (Sutskever et al. 2014)."""

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from mt.checkpoint import LoadedModel, load_model
from mt.errors import ModelError, problems


def load_ensemble(paths: Sequence[Path], device: str) -> list[LoadedModel]:
    """Load one model, or several models with the same tokenizer and directions.

    The search options are those of the first model, but its `max_length` becomes the smallest `max_length` of all
    models.

    Raises:
        ModelError: A model cannot be loaded, a model differs from the first (the message lists every difference), or
            there are several models and torch is not installed.
        TokenizerError: A tokenizer cannot be loaded.
    """
    first, *others = models = [load_model(path, device) for path in paths]
    if not others:
        return models
    if find_spec("torch") is None:
        raise ModelError("an ensemble needs torch, which is not installed; accepted: one model")
    differences, directions = [], first.description.directions
    for path, other in zip(paths[1:], others, strict=True):
        if other.tokenizer.digest != first.tokenizer.digest:
            differences.append(f"{path} has another tokenizer")
        if set(other.description.directions) != set(directions):
            differences.append(f"{path} translates {other.description.directions}, not {directions}")
    if differences:
        heading = f"these models cannot form an ensemble with {paths[0]}; accepted: the same tokenizer and directions"
        raise ModelError(problems(heading, differences))
    max_length = min(loaded.description.model.max_length for loaded in models)
    shape = first.description.model.model_copy(update={"max_length": max_length})
    return [
        replace(first, weights=first.model, description=first.description.model_copy(update={"model": shape})),
        *others,
    ]
