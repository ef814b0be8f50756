"""Several models as one: the probabilities that they give the next token are averaged (Sutskever et al. 2014)."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from mt.checkpoint import LoadedModel, load_model
from mt.decoding.scorer import EnsembleScorer, ModelScorer
from mt.engine.batches import Batch, Decoder, SearchDecoder
from mt.engine.precision import Dtype
from mt.errors import ModelError, problems


def load_members(paths: Sequence[Path], device: torch.device) -> list[LoadedModel]:
    """Models of one vocabulary and the same directions; the first says how to decode, the shortest how long a text is.

    Raises ModelError or TokenizerError for one that cannot be loaded, and a ModelError that lists all that do not go
    with the first.
    """
    first, *others = members = [load_model(path, device) for path in paths]
    found, directions = [], first.description.directions
    for path, other in zip(paths[1:], others, strict=True):
        if other.tokenizer.digest != first.tokenizer.digest:
            found.append(f"{path} has another tokenizer")
        if set(other.description.directions) != set(directions):
            found.append(f"{path} translates {', '.join(other.description.directions)}, not {', '.join(directions)}")
    if found:
        raise ModelError(
            problems(f"these do not go with {paths[0]} in an ensemble; accepted: its tokenizer and directions", found)
        )
    longest = min(each.description.model.max_length for each in members)
    shape = first.description.model.model_copy(update={"max_length": longest})
    return [replace(first, description=first.description.model_copy(update={"model": shape})), *others]


def ensemble_decoder(
    members: Sequence[LoadedModel], device: torch.device, dtype: Dtype
) -> tuple[Decoder[Batch], Dtype]:
    """What decodes with all of them, in plain torch, and in which numbers: `choose_decoder` for several models.

    The compiled kernels and the graphs run one model each, so `auto` is float32 on a CPU and bfloat16 elsewhere. Raises
    ModelError for int8, which only the compiled kernels have.
    """
    if dtype is Dtype.INT8:
        raise ModelError("dtype int8 is for one model, and this is an ensemble; accepted: auto, bfloat16, float32")
    if dtype is Dtype.AUTO:
        dtype = Dtype.FLOAT32 if device.type == "cpu" else Dtype.BFLOAT16
    if dtype is Dtype.BFLOAT16:
        for each in members:
            each.model.bfloat16()
    return SearchDecoder(EnsembleScorer(tuple(ModelScorer(each.model, device=device) for each in members))), dtype
