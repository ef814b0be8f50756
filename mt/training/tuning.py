"""The model at the beginning of a run: with random weights or, if the recipe has `[tuning]`, a trained model."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import accumulate
from pathlib import Path
from typing import Any

import torch

from mt.bundled import model_directory
from mt.checkpoint import load_model, read_description
from mt.config import ModelSection, Recipe, TokenizerConfig
from mt.description import Description
from mt.errors import MTError, did_you_mean
from mt.model.skip_initialization import SkipInitialization
from mt.model.transformer import Transformer
from mt.recipe import read_values, validate_recipe
from mt.tokenizer import Tokenizer
from mt.training.optimizer import layer_matrices
from mt.vocabulary import load_tokenizer


def read_recipe(path: Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read a recipe. If it has [tuning], values that [model] and [decoding] lack are taken from the model to tune.

    `overrides` replace values of the file. Raises: RecipeError that lists all problems of the recipe and of
    `overrides`, and all values that the model to tune does not support.
    """
    return complete_recipe(path, *read_values(path, overrides))


def complete_recipe(
    path: Path,
    values: Mapping[str, Any],
    known_problems: Sequence[str],
    check: Callable[[Recipe], Iterable[str]] = lambda _: (),
) -> Recipe:
    """Return the recipe that consists of `values` and, with [tuning], of values of the model to tune.

    `path` is the file of the recipe. Raises: RecipeError that lists `known_problems`, invalid values, values that the
    model to tune does not support, and problems that `check` returns.
    """
    tuning = values.get("tuning")
    if not isinstance(tuning, dict) or not isinstance(tuning.get("model"), str):
        return validate_recipe(path, values, known_problems, check)
    folder = model_directory(tuning["model"])
    try:
        description, tokenizer = read_description(folder), load_tokenizer(folder)
    except MTError as error:
        stand_in = {**values, "model": {"size": "base"}}  # any valid model, so that all other problems are reported
        return validate_recipe(path, stand_in, [*known_problems, f"tuning.model: {error}"])
    tuning = {**tuning, "model": str(folder)}
    known_problems = [*known_problems, *_changes_of_the_model(values, description)]
    completed = {
        **values,
        "model": _complete(values.get("model", {}), description.model.model_dump(include={*ModelSection.model_fields})),
        "decoding": _complete(values.get("decoding", {}), description.decoding.model_dump()),
        "tuning": {**tuning, "directions": description.directions, "architecture": description.model},
    }
    return validate_recipe(
        path, completed, known_problems, lambda recipe: [*_tuning_problems(recipe, tokenizer), *check(recipe)]
    )


def new_model(recipe: Recipe, tokenizer: Tokenizer) -> Transformer:
    """Return a new model with random weights, as the recipe describes it."""
    source = source_vocabulary_size(recipe, tokenizer)
    return Transformer(recipe.architecture, len(tokenizer.target), source_vocabulary_size=source)


def source_vocabulary_size(recipe: Recipe, tokenizer: Tokenizer) -> int | None:
    """Return the size of the source vocabulary, or None if source and target have a common embedding matrix."""
    return None if recipe.architecture.tie_source else len(tokenizer)


def first_model(recipe: Recipe, tokenizer: Tokenizer) -> Transformer:
    """Return the model at the beginning of a run, on the CPU: a new model or, with [tuning], the model to tune.

    Parameters are frozen as [tuning] describes. Raises: ModelError or TokenizerError if the model to tune cannot be
    loaded.
    """
    model = new_model(recipe, tokenizer)
    if recipe.tuning:
        model.load_state_dict(load_model(recipe.tuning.model).model.state_dict())
        _freeze(model, recipe)
    return model


def _freeze(model: Transformer, recipe: Recipe) -> None:
    """Freeze parameters of `model`, as [tuning] of the recipe describes."""
    assert recipe.tuning is not None
    for name, parameter in model.named_parameters():
        if any(fnmatchcase(name, pattern) for pattern in recipe.tuning.frozen):
            parameter.requires_grad_(False)


def _complete(section: Any, defaults: Mapping[str, Any]) -> Any:
    """Return `section` with missing values from `defaults`. If `section` is not a mapping, return it unchanged."""
    return {**defaults, **section} if isinstance(section, Mapping) else section


def _changes_of_the_model(values: Mapping[str, Any], description: Description) -> Iterator[str]:
    """Yield a message for each value of a recipe that would change the model to tune, described by `description`.

    The dropout rate can be changed. The rest of the architecture, the tokenizer and the known directions cannot.
    """
    section, actual = values.get("model", {}), description.model.model_dump(include={*ModelSection.model_fields})
    for key, value in section.items() if isinstance(section, Mapping) else ():
        if key == "size" or (key in actual and key != "dropout" and value != actual[key]):
            hint = f"but the model to tune has {actual[key]!r}" if key in actual else "but tuning keeps the size"
            yield f"model.{key} = {value!r}, {hint}; accepted: only changes of dropout"
    section = values.get("tokenizer", {})
    for key in section if isinstance(section, Mapping) else ():
        if key in TokenizerConfig.model_fields and key != "dropout":
            yield f"tokenizer.{key} is set, but the model to tune has a tokenizer; accepted: only tokenizer.dropout"
    for key in ("directions", "architecture"):
        if key in values["tuning"]:
            yield f"tuning.{key} is read from the directory of the model to tune; remove it"


def forgetting_warning(recipe: Recipe) -> str:
    """Return a warning of what a tuned model may have forgotten, and nothing has measured; "" if there is nothing."""
    tuning = recipe.tuning
    if tuning is None:
        return ""
    others = [str(direction) for direction in recipe.directions if direction not in recipe.data.directions]
    warnings = [f"only {recipe.data.directions} was trained: {', '.join(others)} may be worse now"] if others else []
    warnings += [] if tuning.monitor else ["without tuning.monitor, nothing shows what the model forgot"]
    return "; ".join(warnings)


def _tuning_problems(recipe: Recipe, tokenizer: Tokenizer) -> Iterator[str]:
    """Yield a message for each value of `recipe` that the model to tune does not support.

    `tokenizer` is the tokenizer of the model to tune.
    """
    tuning = recipe.tuning
    assert tuning is not None
    known = tokenizer.tagged_languages
    wrong = [str(one) for one in recipe.data.directions if one not in tuning.directions and one.target not in known]
    if wrong:
        tags = ", ".join(known)
        others = f", or directions into {tags}, for which its tokenizer has tags" if tags else ""
        yield f"data.directions: {', '.join(wrong)}; accepted: the model's directions, {tuning.directions}{others}"
    if tokenizer.tags_each_side:
        yield (
            f"tuning.model = {str(tuning.model)!r}, whose translations begin with a token of the target language; "
            "training does not support such tokens; accepted: a model without them"
        )
    lacking = [tag for tag in recipe.data.source_tags if tag not in tokenizer.source_tags]
    if lacking:
        names = ", ".join(tokenizer.source_tags)
        accepted = f"source tags of the model to tune, {names}" if names else "none"
        yield f"data.train: source_tag {', '.join(lacking)}, which the model's tokenizer lacks; accepted: {accepted}"
    if recipe.tokenizer.dropout and not (tokenizer.is_bpe and tokenizer.target.is_bpe):
        yield f"tokenizer.dropout = {recipe.tokenizer.dropout}, but the model's tokenizer is not BPE; accepted: 0"
    with torch.device("meta"), SkipInitialization():
        model = new_model(recipe, tokenizer)
        _freeze(model, recipe)
    weights = [name for name, _ in model.named_parameters()]
    unknown = [pattern for pattern in tuning.frozen if not any(fnmatchcase(name, pattern) for name in weights)]
    for pattern in unknown:
        hint = did_you_mean(pattern, _patterns(weights))
        hint = hint or f" (parameters begin with {', '.join(dict.fromkeys(name.split('.')[0] for name in weights))})"
        yield f"tuning.frozen: {pattern!r} matches no parameter{hint}"
    if not any(parameter.requires_grad for parameter in model.parameters()):
        yield f"tuning.frozen = {list(tuning.frozen)}, but no parameter is left to train; accepted: fewer patterns"
    elif recipe.training.optimizer == "muon" and not layer_matrices(model):
        yield "training.optimizer = 'muon', but tuning.frozen leaves no layer matrix to train; accepted: 'adam'"


def _patterns(names: Iterable[str]) -> list[str]:
    """Return the parameter `names`, and a pattern such as "encoder.layers.*" for each module with parameters."""
    patterns = dict.fromkeys(names)
    for name in names:
        *modules, _ = name.split(".")
        patterns |= dict.fromkeys(f"{module}.*" for module in accumulate(modules, "{}.{}".format))
    return list(patterns)
