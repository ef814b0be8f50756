"""Reading and writing of recipes as TOML.

A recipe is read once, at the start of a run. `key=value` overrides are applied before the recipe is validated. One
error lists all problems, each with its key, its value and what is accepted.
"""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import tomli_w
from pydantic import ValidationError

from mt.config import ModelSection, Recipe, Size
from mt.errors import RecipeError, did_you_mean, problems
from mt.section import Section


def load_recipe(path: Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read a recipe and apply overrides of the form `section.key=value`. A value is TOML, or a string without quotes.

    Recipes with [tuning] are read by `read_recipe` of mt/training/tuning.py.

    Raises:
        RecipeError: The file or an override is wrong. The message lists all problems.
    """
    return validate_recipe(path, *read_values(path, overrides))


def read_values(path: Path, overrides: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the values of a recipe with `overrides` applied, and the problems of the overrides.

    Raises:
        RecipeError: The file is missing or not TOML.
    """
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RecipeError(f"{path}: there is no such recipe") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RecipeError(f"{path}: not a TOML file: {error}") from error
    return values, [problem for override in overrides if (problem := _apply(values, override))]


def validate_recipe(
    path: Path,
    values: Mapping[str, Any],
    known_problems: Sequence[str],
    check: Callable[[Recipe], Iterable[str]] = lambda _: (),
) -> Recipe:
    """Return the recipe that consists of `values`. `path` is its file, for messages.

    Raises:
        RecipeError: There are `known_problems`, invalid values, or problems that `check` returns.
    """
    try:
        recipe = Recipe.model_validate(values)
    except ValidationError as error:
        invalid = [problem for cause in _causes(error) for problem in _explain(cause)]
        raise RecipeError(problems(str(path), [*known_problems, *invalid])) from error
    if all_problems := [*known_problems, *check(recipe)]:
        raise RecipeError(problems(str(path), all_problems))
    return recipe


def save_recipe(recipe: Recipe, path: Path) -> None:
    """Write a recipe with all default values, so that it keeps its meaning if a default changes."""
    values = recipe.model_dump(mode="json", exclude_none=True)
    if recipe.tuning:  # all other keys of [tokenizer] are taken from the model that is tuned
        values["tokenizer"] = {"dropout": recipe.tokenizer.dropout}
    path.write_text(tomli_w.dumps(values), encoding="utf-8")


def recipe_changes(before: Recipe, after: Recipe) -> list[str]:
    """Return a line for each key whose values differ, such as "training.learning_rate: 0.003 -> 0.001"."""
    old, new = (dict(_flat(recipe.model_dump(mode="json", exclude_none=True))) for recipe in (before, after))
    return [
        f"{key}: {old.get(key, 'not set')} -> {new.get(key, 'not set')}"
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]


def _flat(values: Mapping[str, Any], section: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (key, value) for each value of a recipe. The key contains the names of its sections."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{section}{key}.")
        else:
            yield f"{section}{key}", value


def _apply(values: dict[str, Any], override: str) -> str:
    """Apply an override to `values`. Return a message if the override is wrong, otherwise an empty string."""
    key, separator, text = override.partition("=")
    if not separator:
        return f"{override!r} is not an override; accepted: key=value, such as training.max_updates=100"
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    *sections, last = key.strip().split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            return f"{override!r}: {section} is not a section of the recipe"
    values[last] = value
    return ""


def _causes(error: ValidationError) -> list[Any]:
    """Return pydantic's errors. The error of a list or section is left out if one of its items or keys has an error."""
    errors = [cause for cause in error.errors() if cause["type"] != "default_factory_not_called"]
    containers = {cause["loc"][:length] for cause in errors for length in range(len(cause["loc"]))}
    return [cause for cause in errors if cause["loc"] not in containers]


def _explain(cause: Any) -> Iterator[str]:
    """Yield the messages to the user about one error of pydantic."""
    *sections, name = [part for part in cause["loc"] if isinstance(part, str)] or [""]
    key = "".join(f".{part}" if isinstance(part, str) else f"[{part}]" for part in cause["loc"]).removeprefix(".")
    if (sections, name) == (["model"], "size"):
        yield f"{key} = {cause['input']!r}; accepted: {', '.join(get_args(Size))}"
    elif key == "build":
        yield "build is a section for `mt-service build`; accepted: a recipe without this section"
    elif cause["type"] == "extra_forbidden":
        yield f"{key} is unknown{did_you_mean(name, keys_of(sections))}"
    elif cause["type"] == "missing":
        yield f"{key} is missing"
    elif cause["type"] == "value_error":
        heading, *items = cause["msg"].removeprefix("Value error, ").split("\n  - ")
        yield from (f"{key}: {problem}".removeprefix(": ") for problem in items or [heading])
    else:
        yield f"{key} = {cause['input']!r}: {cause['msg']}"


def keys_of(sections: Sequence[str]) -> list[str]:
    """Return the keys of the recipe section at the path `sections`, such as ["data", "train"]."""
    model: Any = Recipe
    for section in sections:
        annotation = model.model_fields[section].annotation
        types = (part for part in (annotation, *get_args(annotation)) if isinstance(part, type))
        model = next((part for part in types if issubclass(part, Section)), Section)
    keys = [name for name, field in model.model_fields.items() if not field.exclude]
    return [*keys, "size"] if model is ModelSection else keys
