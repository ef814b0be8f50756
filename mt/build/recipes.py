"""Recipes of the stages, as dictionaries that are written as TOML.

Paths are relative to the folder of the build, or begin with `{data}/`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mt.build.config import BuildConfig, StudentConfig, all_directions
from mt.build.stage import DATA, ORIGINAL_MODEL, TEXT_FOLDER
from mt.config import Recipe
from mt.languages import Direction
from mt.vocabulary import load_tokenizer

BACK_TRANSLATED = "bt"  # source tag of text whose sources are back-translations

Values = dict[str, Any]


@dataclass(frozen=True)
class SyntheticCorpus:
    """Source text and its translation by a model of `direction`. The stage `stage` writes the files `path`.LANGUAGE.

    `weight` is the weight of the corpus of the source text. `monolingual` is True if the source text is monolingual,
    and False if it is training text.
    """

    stage: str
    path: str
    direction: Direction
    weight: float = 1.0
    monolingual: bool = False


def training_texts(recipe: Recipe, pair: Direction, part: str = "train") -> list[tuple[str, float]]:
    """Return the path of the text of each training corpus that has the languages of `pair`, and the corpus's weight.

    The stage `text` writes the files `path`.LANGUAGE. `part` is `train` for all pairs of a corpus, and `sample` for
    those that are translated (`translated_pairs`).
    """
    return [
        (f"{TEXT_FOLDER}/{part}{number}.{pair}", corpus.weight)
        for number, corpus in enumerate(recipe.data.train, 1)
        if corpus.may_have(pair)
    ]


def pair_of(direction: Direction, directions: Iterable[Direction]) -> Direction:
    """Return `direction` or its reverse, whichever comes first in `directions`. The names of text files contain it."""
    return next(known for known in directions if known in (direction, direction.reversed))


def text_recipe(recipe: Recipe, build: BuildConfig) -> Values:
    """Return the recipe of the stage `text`, which prepares the text and the tokenizer of all models of the build."""
    values = _values(recipe)
    values["data"].pop("test", None)
    values["data"]["directions"] = list(map(str, all_directions(recipe, build)))
    for corpus in (*values["data"]["train"], *values["data"]["valid"]):
        corpus["path"] = DATA + corpus["path"]
    if recipe.tuning:
        values["tokenizer"] = {"model": ORIGINAL_MODEL}
        del values["tuning"]
    elif build.monolingual:
        values["tokenizer"]["source_tags"] = sorted({*recipe.tokenizer.source_tags, BACK_TRANSLATED})
    return {**values, "model": {"size": "tiny"}, "training": {}, "decoding": {}}


def teacher_recipe(
    recipe: Recipe,
    build: BuildConfig,
    directions: Sequence[Direction],
    corpora: Sequence[SyntheticCorpus] = (),
) -> Values:
    """Return the recipe that trains a model of `directions` on the parallel text and the synthetic `corpora`."""
    values = _values(recipe)
    everything = all_directions(recipe, build)
    pairs = dict.fromkeys(pair_of(direction, everything) for direction in directions)
    train: list[Values] = [
        {
            "path": f"{path}.{{language}}",
            "directions": [str(d) for d in directions if d in (pair, pair.reversed)],
            "weight": weight,
        }
        for pair in pairs
        for path, weight in training_texts(recipe, pair)
    ]
    tag = {"source_tag": BACK_TRANSLATED} if has_back_translation_tag(recipe) else {}
    for corpus in corpora:
        covered = [d for d in directions if d in (corpus.direction, corpus.direction.reversed)]
        back = [str(d) for d in covered if corpus.monolingual and d != corpus.direction]
        plain = [str(d) for d in covered if str(d) not in back]
        common = {"path": f"{corpus.path}.{{language}}", "weight": corpus.weight}
        train += [{**common, "directions": plain}] if plain else []
        train += [{**common, "directions": back, **tag}] if back else []
    values["data"] = {
        "directions": list(map(str, directions)),
        "train": train,
        "valid": [{"path": f"{TEXT_FOLDER}/valid.{pair}.tsv", "columns": [pair.source, pair.target]} for pair in pairs],
        "temperature": recipe.data.temperature,
        "max_tokens": recipe.data.max_tokens,
    }
    values["tokenizer"] = {"dropout": recipe.tokenizer.dropout}
    if recipe.tuning:
        values["tuning"] = {**values["tuning"], "model": ORIGINAL_MODEL}
    else:
        values["tokenizer"]["model"] = TEXT_FOLDER
    return values


def has_back_translation_tag(recipe: Recipe) -> bool:
    """Return whether the tokenizer of the build has a source tag for back-translated text.

    A new tokenizer gets the tag. The tokenizer of a model to tune has it if that model was trained with it.
    """
    return recipe.tuning is None or BACK_TRANSLATED in load_tokenizer(recipe.tuning.model).source_tags


def student_recipe(
    teacher: Mapping[str, Any],
    student: StudentConfig,
    model: str,
    corpora: Sequence[SyntheticCorpus],
    with_parallel_text: bool,
) -> Values:
    """Return the recipe that trains a student on `corpora` and, on request, on the parallel text of its teacher.

    `teacher` is the recipe of the first teachers, which learn from parallel text only. `model` is the model
    directory that the stage `shrink` writes.
    """
    parallel = teacher["data"]["train"] if with_parallel_text else []
    return {
        **teacher,
        "tokenizer": {"dropout": teacher["tokenizer"]["dropout"]},
        "tuning": {"model": model},
        "data": {
            **teacher["data"],
            "train": parallel
            + [
                {"path": f"{corpus.path}.{{language}}", "directions": [str(corpus.direction)], "weight": corpus.weight}
                for corpus in corpora
            ],
        },
        "model": {"dropout": student.dropout},
        "decoding": {**teacher["decoding"], "beam_size": student.beam_size or teacher["decoding"]["beam_size"]},
        "training": {**teacher["training"], **student.training},
    }


def _values(recipe: Recipe) -> Values:
    """Return the values of a recipe except `data.root`, which may differ between machines."""
    values: Values = recipe.model_dump(mode="json", exclude_none=True)
    del values["data"]["root"]
    return values
