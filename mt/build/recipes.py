"""Recipes of the stages, as dictionaries that are written as TOML. Paths are relative to the folder of the build."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mt.build.config import BuildConfig, StudentConfig
from mt.build.stage import TEXT_FOLDER
from mt.config import Recipe
from mt.languages import Direction

BACK_TRANSLATED = "bt"  # source tag of text whose sources are back-translations

Values = dict[str, Any]


@dataclass(frozen=True)
class SyntheticCorpus:
    """Source text and its translation by a model of `direction`. The stage `stage` writes the files `path`.LANGUAGE.

    `monolingual` is True if the source text is monolingual, and False if it is training text.
    """

    stage: str
    path: str
    direction: Direction
    monolingual: bool = False


def all_directions(recipe: Recipe, build: BuildConfig) -> tuple[Direction, ...]:
    """Return the directions of the recipe, then the reverse directions whose models are needed for synthetic text."""
    wanted = tuple(recipe.data.directions)
    languages = {corpus.columns[0] for corpus in build.monolingual}
    every = build.diversify or (build.is_synthetic and build.filter)
    needed = [direction.reversed for direction in wanted if every or direction.target in languages]
    return tuple(dict.fromkeys((*wanted, *needed)))


def pair_of(direction: Direction, directions: Iterable[Direction]) -> Direction:
    """Return `direction` or its reverse, whichever comes first in `directions`. The names of text files contain it."""
    return next(known for known in directions if known in (direction, direction.reversed))


def text_recipe(recipe: Recipe, build: BuildConfig) -> Values:
    """Return the recipe of the stage `text`, which prepares the text and the tokenizer of all models of the build."""
    values = _values(recipe)
    values["data"].pop("test", None)
    values["data"]["directions"] = list(map(str, all_directions(recipe, build)))
    if build.monolingual:
        values["tokenizer"]["source_tags"] = sorted({*recipe.tokenizer.source_tags, BACK_TRANSLATED})
    return {**values, "model": {"size": "tiny"}, "training": {}, "decoding": {}}


def teacher_recipe(
    recipe: Recipe,
    build: BuildConfig,
    directions: Sequence[Direction],
    corpora: Sequence[SyntheticCorpus] = (),
    updates: int = 1,
) -> Values:
    """Return the recipe that trains a new model of `directions` on the parallel text and the synthetic `corpora`."""
    values = _values(recipe)
    everything = all_directions(recipe, build)
    pairs = dict.fromkeys(pair_of(direction, everything) for direction in directions)
    train: list[Values] = [
        {
            "path": f"{TEXT_FOLDER}/train.{pair}.{{language}}",
            "directions": [str(d) for d in directions if d in (pair, pair.reversed)],
            "weight": build.parallel_weight if corpora else 1.0,
        }
        for pair in pairs
    ]
    for corpus in corpora:
        here = [d for d in directions if d in (corpus.direction, corpus.direction.reversed)]
        back = [str(d) for d in here if corpus.monolingual and d != corpus.direction]
        plain = [str(d) for d in here if str(d) not in back]
        path = f"{corpus.path}.{{language}}"
        train += [{"path": path, "directions": plain}] if plain else []
        train += [{"path": path, "directions": back, "source_tag": BACK_TRANSLATED}] if back else []
    values["data"] = {
        "directions": list(map(str, directions)),
        "train": train,
        "valid": [{"path": f"{TEXT_FOLDER}/valid.{pair}.tsv", "columns": [pair.source, pair.target]} for pair in pairs],
        "temperature": recipe.data.temperature,
        "max_tokens": recipe.data.max_tokens,
    }
    values["tokenizer"] = {"model": TEXT_FOLDER, "dropout": recipe.tokenizer.dropout}
    values["training"]["max_updates"] = updates
    return values


def student_recipe(
    teacher: Mapping[str, Any], student: StudentConfig, first_model: str, corpora: Sequence[SyntheticCorpus]
) -> Values:
    """Return the recipe that trains a student on `corpora`.

    `teacher` is the recipe of the teacher. `first_model` is the model directory that the stage `shrink` writes.
    """
    return {
        **teacher,
        "data": {
            **teacher["data"],
            "train": [{"path": f"{c.path}.{{language}}", "directions": [str(c.direction)]} for c in corpora],
        },
        "tokenizer": {"dropout": teacher["tokenizer"]["dropout"]},
        "model": {"dropout": student.dropout},
        "training": {**teacher["training"], **student.training},
        "tuning": {"model": first_model},
    }


def _values(recipe: Recipe) -> Values:
    """Return the values of a recipe except `data.root`, which may differ between machines."""
    values: Values = recipe.model_dump(mode="json", exclude_none=True)
    del values["data"]["root"]
    return values
