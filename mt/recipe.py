"""A recipe from a TOML file and back.

It is read once, at the start of a run; `key=value` overrides are applied before it is checked. Whatever is wrong is
reported together, each problem with its key, its value and what would be accepted.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import tomli_w
from pydantic import ValidationError

from mt.config import ModelConfig, Recipe, Section, Size
from mt.errors import RecipeError, did_you_mean, problems


def load_recipe(path: Path, overrides: Sequence[str] = ()) -> Recipe:
    """Read a recipe and apply `section.key=value` overrides, whose values are TOML (bare words are strings).

    Raises RecipeError with every problem of the file and the overrides. mt/training/tuning.py reads recipes that tune.
    """
    return checked(path, *read_values(path, overrides))


def read_values(path: Path, overrides: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """What a recipe says, after `overrides`, and what is wrong with those. Raises RecipeError if it is not TOML."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise RecipeError(f"{path}: there is no such recipe") from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise RecipeError(f"{path}: not a TOML file: {error}") from error
    return values, [problem for override in overrides if (problem := _apply(values, override))]


def checked(
    path: Path, values: Mapping[str, Any], found: Sequence[str], also: Callable[[Recipe], Iterable[str]] = lambda _: ()
) -> Recipe:
    """The recipe with these values. Raises RecipeError with its problems, `found` ones and those that `also` names."""
    try:
        recipe = Recipe.model_validate(values)
    except ValidationError as error:
        raise RecipeError(problems(str(path), [*found, *map(_explain, _causes(error))])) from error
    found = [*found, *also(recipe)]
    if found:
        raise RecipeError(problems(str(path), found))
    return recipe


def save_recipe(recipe: Recipe, path: Path) -> None:
    """Write a recipe with every default spelt out, so that a later default cannot change what it means."""
    values = recipe.model_dump(mode="json", exclude_none=True)
    if recipe.tuning:  # the rest of this section is the model's own
        values["tokenizer"] = {"dropout": recipe.tokenizer.dropout}
    path.write_text(tomli_w.dumps(values), encoding="utf-8")


def _apply(values: dict[str, Any], override: str) -> str:
    """Change `values` as an override says; returns what is wrong with the override, or nothing."""
    key, separator, text = override.partition("=")
    if not separator:
        return f"{override!r} is no override; accepted: key=value, such as training.max_updates=100"
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
    """pydantic's problems, without those of a whole (a list too short) that only follow from one of its parts."""
    found = error.errors()
    wholes = {problem["loc"][:length] for problem in found for length in range(len(problem["loc"]))}
    return [problem for problem in found if problem["loc"] not in wholes]


def _explain(problem: Any) -> str:
    """One problem of pydantic's in the words of a recipe."""
    where = [part for part in problem["loc"] if isinstance(part, str)]
    key = "".join(f".{part}" if isinstance(part, str) else f"[{part}]" for part in problem["loc"]).removeprefix(".")
    if where == ["model", "size"]:
        return f"{key} = {problem['input']!r}; accepted: {', '.join(get_args(Size))}"
    if problem["type"] == "extra_forbidden":
        return f"{key} is unknown{did_you_mean(where[-1], _keys_of(where[:-1]))}"
    if problem["type"] == "missing":
        return f"{key} is missing"
    message = problem["msg"].removeprefix("Value error, ")
    return f"{key} = {problem['input']!r}: {message}" if problem["type"] != "value_error" else f"{key}: {message}"


def _keys_of(sections: Sequence[str]) -> list[str]:
    model: Any = Recipe
    for section in sections:
        annotation = model.model_fields[section].annotation
        kinds = (kind for kind in (annotation, *get_args(annotation)) if isinstance(kind, type))
        model = next((kind for kind in kinds if issubclass(kind, Section)), Section)
    keys = list(model.model_fields)
    return [*keys, "size"] if model is ModelConfig else keys
