"""Where a run begins: random weights or, with `[tuning]`, those of a trained model, all or a part of which change."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mt.checkpoint import Description, load_model, read_description
from mt.config import Recipe, TokenizerConfig
from mt.errors import MTError, did_you_mean
from mt.model.transformer import AnyModel, LanguageModel, Transformer
from mt.recipe import checked, read_values
from mt.tokenizer import Tokenizer, load_tokenizer
from mt.training.adapters import adapt, folded
from mt.training.optimizer import layer_matrices

RATES = ("dropout", "attention_dropout", "activation_dropout")


def read_recipe(path: Path, overrides: Sequence[str] = ()) -> Recipe:
    """`load_recipe`, for recipes that tune a model, too: what they leave out is filled in from that model.

    Raises RecipeError with every problem of the recipe, the overrides, and what the model cannot do.
    """
    values, found = read_values(path, overrides)
    tuning = values.get("tuning")
    if not isinstance(tuning, dict) or not isinstance(tuning.get("model"), str):
        return checked(path, values, found, _nothing_for_a_language_model)
    folder = Path(tuning["model"])
    try:
        description, tokenizer = read_description(folder), load_tokenizer(folder)
    except MTError as error:
        told = {**values, "model": {"size": "base"}}  # in its place, so that what else is wrong is told, too
        return checked(path, told, [*found, f"tuning.model: {error}"])
    found += _not_the_models(values, description)
    completed = {
        **values,
        "model": _filled_in(values.get("model", {}), description.model.model_dump()),
        "decoding": _filled_in(values.get("decoding", {}), description.decoding.model_dump()),
        "tuning": {**tuning, "directions": description.directions},
    }
    return checked(path, completed, found, lambda recipe: _impossible(recipe, tokenizer))


def new_model(recipe: Recipe, tokenizer: Tokenizer) -> AnyModel:
    """An ordinary model with random weights: one that translates, or a language model."""
    if recipe.data.language:
        return LanguageModel(recipe.model, len(tokenizer))
    source = source_vocabulary_size(recipe, tokenizer)
    return Transformer(recipe.model, len(tokenizer.target), source_vocabulary_size=source)


def source_vocabulary_size(recipe: Recipe, tokenizer: Tokenizer) -> int | None:
    """Of the source, where it has a matrix of its own."""
    return None if recipe.model.tie_source else len(tokenizer)


def first_model(recipe: Recipe, tokenizer: Tokenizer) -> AnyModel:
    """What a run begins with, on the CPU; what is frozen asks for no gradient.

    Raises ModelError or TokenizerError if the model that is to be tuned cannot be loaded.
    """
    model = new_model(recipe, tokenizer)
    if recipe.tuning:
        model.load_state_dict(load_model(recipe.tuning.model, torch.device("cpu")).model.state_dict())
        _prepare(model, recipe)
    return model


def plain_weights(weights: Mapping[str, Tensor], recipe: Recipe) -> dict[str, Tensor]:
    """Those of an ordinary model, from those of one that may have adapters."""
    return folded(weights, recipe.tuning.adapter_scale) if recipe.tuning else dict(weights)


def _prepare(model: AnyModel, recipe: Recipe) -> None:
    """Adapters, and what is frozen."""
    assert recipe.tuning is not None
    if recipe.tuning.adapter_rank:
        adapt(model, recipe.tuning.adapter_rank, recipe.tuning.adapter_scale)
    for name, parameter in model.named_parameters():
        if any(fnmatchcase(name, pattern) for pattern in recipe.tuning.frozen):
            parameter.requires_grad_(False)


def _filled_in(own: Any, theirs: Mapping[str, Any]) -> Any:
    """A section with the model's values where it has none; what is no section is left for the recipe's own check."""
    return {**theirs, **own} if isinstance(own, Mapping) else own


def _not_the_models(values: Mapping[str, Any], description: Description) -> Iterator[str]:
    """Keys that would change what the model is."""
    own, theirs = values.get("model", {}), description.model.model_dump()
    for key, value in own.items() if isinstance(own, Mapping) else ():
        if key == "size" or (key in theirs and key not in RATES and value != theirs[key]):
            there = f"which is {theirs[key]!r} in the model to tune" if key in theirs else "but the model has its own"
            yield f"model.{key} = {value!r}, {there}; accepted: that, and other values of {', '.join(RATES)}"
    own = values.get("tokenizer", {})
    for key in own if isinstance(own, Mapping) else ():
        if key in TokenizerConfig.model_fields and key != "dropout":
            yield f"tokenizer.{key}: the model to tune brings its tokenizer; accepted: only tokenizer.dropout"
    directions = values["tuning"].get("directions")
    if directions is not None and tuple(directions) != description.directions:
        yield f"tuning.directions = {directions!r}; accepted: those of the model, {list(description.directions)}"


def _impossible(recipe: Recipe, tokenizer: Tokenizer) -> Iterator[str]:
    """What the model cannot be tuned to."""
    tuning = recipe.tuning
    assert tuning is not None
    if recipe.data.language:
        yield from _nothing_for_a_language_model(recipe)
        return
    wrong = [each for each in recipe.data.directions if not _possible(each, tuning.directions, tokenizer)]
    if wrong:
        tags = ", ".join(tokenizer.tagged)
        others = f", or others into {tags}, of which it has tags" if tags else "; it has no tags for others"
        known = ", ".join(tuning.directions)
        yield f"data.directions: {', '.join(wrong)}; accepted: those of the model, {known}{others}"
    lacking = [mark for mark in recipe.data.marks if mark not in tokenizer.marks]
    if lacking:
        known = f"marks of the model to tune, {', '.join(tokenizer.marks)}" if tokenizer.marks else "none"
        yield f"data.train: mark {', '.join(lacking)}, which the model's tokenizer lacks; accepted: {known}"
    if recipe.tokenizer.dropout and not (tokenizer.merges and tokenizer.target.merges):
        yield f"tokenizer.dropout = {recipe.tokenizer.dropout}, but the model's tokenizer is not BPE; accepted: 0"
    if tuning.adapter_rank > recipe.model.d_model:
        yield f"tuning.adapter_rank = {tuning.adapter_rank}; accepted: at most d_model, {recipe.model.d_model}"
    with torch.device("meta"):
        model = new_model(recipe, tokenizer)
        _prepare(model, recipe)
    names = [name for name, _ in model.named_parameters()]
    unknown = [pattern for pattern in tuning.frozen if not any(fnmatchcase(name, pattern) for name in names)]
    for pattern in unknown:
        hint = did_you_mean(pattern, _patterns(names)) or f" (they begin with {', '.join(_firsts(names))})"
        yield f"tuning.frozen: {pattern!r} matches no parameter{hint}"
    if not any(parameter.requires_grad for parameter in model.parameters()):
        yield f"tuning.frozen = {list(tuning.frozen)}, which leaves nothing to train"
    elif recipe.training.optimizer == "muon" and not layer_matrices(model):
        yield "training.optimizer = 'muon', but tuning.frozen leaves it no matrix of a layer; accepted: 'adam'"


def _nothing_for_a_language_model(recipe: Recipe) -> Iterator[str]:
    """What only a model that translates can have, if the recipe is for another."""
    if recipe.data.language is None:
        return
    what = f"a language model, which data.directions = {list(recipe.data.directions)} asks for"
    if recipe.tuning:
        yield f"tuning: {what}, begins with random weights; accepted: no [tuning], or directions such as 'en-de'"
    if recipe.data.marks:
        yield f"data.train: mark {', '.join(recipe.data.marks)}, but {what}, has no sources to mark; accepted: none"
    if not recipe.model.tie_source:
        yield f"model.tie_source = false, but {what}, has no source; accepted: true"


def _possible(direction: str, known: Sequence[str], tokenizer: Tokenizer) -> bool:
    """Whether the model translates this, or can be asked for it by a tag."""
    return direction in known or direction.split("-")[1] in tokenizer.tagged


def _patterns(names: Iterable[str]) -> list[str]:
    """Names, and patterns for all that stands in a module: encoder.*, encoder.layers.*, ..."""
    found = dict.fromkeys(names)
    for name in names:
        *modules, _ = name.split(".")
        found |= dict.fromkeys(f"{module}.*" for module in accumulate(modules, "{}.{}".format))
    return list(found)


def _firsts(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(name.split(".")[0] for name in names))
