"""The section `[build]` of a recipe."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import Field, ValidationError, model_validator

from mt.config import Recipe
from mt.data_config import CorpusConfig
from mt.errors import RecipeError, did_you_mean, problems
from mt.languages import Direction
from mt.recipe import read_values
from mt.section import Section
from mt.training.tuning import complete_recipe


class StudentConfig(Section):
    """A student: a model that is initialised from layers of a larger model and trained on translations by a teacher.

    The first student is initialised from the teacher, each later student from the student before it.
    """

    encoder_layers: int | None = Field(None, ge=1)
    """Number of encoder layers. Left out: the number in the larger model."""
    decoder_layers: int | None = Field(None, ge=1)
    """Number of decoder layers. Left out: the number in the larger model."""
    vocabulary_size: int | None = Field(None, ge=300)
    """Number of pieces in the vocabulary. Left out: the number in the larger model."""
    dropout: float = Field(0.1, ge=0, lt=1)
    """Dropout rate, usually lower than the teacher's."""
    beam_size: int | None = Field(None, ge=1)
    """Hypotheses of the student's beam search. Students need fewer than their teacher, often only one (Kim and Rush
    2016). Left out: `decoding.beam_size`."""
    training: dict[str, Any] = Field(default_factory=dict)
    """Keys and values that replace those of [training] for this student."""


class BuildConfig(Section):
    """Techniques of `mt-service build`. The other sections describe the corpora and the teachers."""

    seeds: int = Field(1, ge=1, le=20)
    """Number of teachers to train with different seeds, for each direction and round. The build publishes the teacher
    with the highest BLEU on the validation set."""
    ensemble: int = Field(1, ge=1, le=20)
    """Number of teachers, the best on the validation set, that translate the text of the students together."""
    single_model: bool = False
    """Train one model for all directions instead of one model for each direction."""
    diversify: bool = True
    """Translate the training text with models of both directions, and add the translations to the training text of
    the next teachers (Nguyen et al. 2020)."""
    monolingual: tuple[CorpusConfig, ...] = ()
    """Monolingual text, such as { path = "captions.de.gz", columns = ["de"] }, with one sentence per line. Text in a
    source language is translated into the target language. Text in a target language is translated back into the source
    language; these pairs get the `source_tag` bt. The `weight` of a corpus applies to its translations."""
    translated_pairs: int | None = Field(None, ge=1)
    """Maximum number of pairs of each parallel corpus whose sources are translated, for `diversify` and for the
    students. They are evenly spaced, and the students are also trained on all original pairs. Left out: all sources
    are translated, and the students are trained on translations only."""
    filter: float = Field(0.0, ge=0, lt=1)
    """Fraction of the synthetic pairs of the teachers to drop: those with the lowest scores. 0 drops none. The score of
    a pair is the log-probability per token of the source given the translation, by a model of the reverse direction."""
    rounds: int = Field(1, ge=1, le=10)
    """Maximum number of rounds. In each round, the current models translate text, and new teachers are trained on it.
    A further round runs only if the round before it improved BLEU on the validation set."""
    student: tuple[StudentConfig, ...] = ()
    """Students to train. The first is initialised from the teacher, each later student from the student before it."""

    @model_validator(mode="after")
    def _monolingual_corpora_have_one_language(self) -> Self:
        wrong = [
            corpus.path
            for corpus in self.monolingual
            if len(corpus.columns) != 1 or corpus.variants or corpus.source_tag or len(corpus.directions)
        ]
        if wrong:
            raise ValueError(
                f"monolingual: {', '.join(wrong)}; accepted: only `path`, `weight`, and `columns` with one language"
            )
        return self

    @model_validator(mode="after")
    def _ensemble_has_enough_teachers(self) -> Self:
        if self.ensemble > self.seeds:
            raise ValueError(f"ensemble is {self.ensemble}; accepted: at most {self.seeds}, the number of `seeds`")
        return self

    @property
    def is_synthetic(self) -> bool:
        """True if teachers are also trained on synthetic text, that is, on translations by other models."""
        return self.diversify or bool(self.monolingual)


def all_directions(recipe: Recipe, build: BuildConfig) -> tuple[Direction, ...]:
    """Return the directions of the recipe, then the reverse directions whose models are needed for synthetic text."""
    wanted = tuple(recipe.data.directions)
    languages = {corpus.columns[0] for corpus in build.monolingual}
    every = build.diversify or (build.is_synthetic and build.filter)
    needed = [direction.reversed for direction in wanted if every or direction.target in languages]
    return tuple(dict.fromkeys((*wanted, *needed)))


def read_build_recipe(path: Path, overrides: Sequence[str] = ()) -> tuple[Recipe, BuildConfig]:
    """Read a recipe and its section `[build]`. If it has `[tuning]`, values that it lacks are those of that model.

    Raises: RecipeError that lists all problems of the recipe.
    """
    values, known_problems = read_values(path, overrides)
    section = values.pop("build", None)
    if not isinstance(section, Mapping):
        raise RecipeError(f"{path}: the section [build] is missing; accepted: a recipe with [build], even an empty one")
    try:
        build = BuildConfig.model_validate(section)
    except ValidationError as error:
        build = BuildConfig()
        for cause in error.errors():
            key = ".".join(["build", *map(str, cause["loc"])])
            if cause["type"] == "extra_forbidden":
                inner = {"student": [*StudentConfig.model_fields], "monolingual": [*CorpusConfig.model_fields]}
                keys = inner.get(str(cause["loc"][0]), BuildConfig.model_fields)
                known_problems.append(f"{key} is unknown{did_you_mean(str(cause['loc'][-1]), keys)}")
            else:
                known_problems.append(f"{key} = {cause['input']!r}: {cause['msg'].removeprefix('Value error, ')}")
    recipe = complete_recipe(path, values, known_problems, lambda recipe: _unsuitable(recipe, build))
    return recipe, build


def _unsuitable(recipe: Recipe, build: BuildConfig) -> list[str]:
    """Return a message for each setting of `recipe` or `build` that `mt-service build` does not support."""
    languages = recipe.data.languages
    checks = (
        (recipe.tuning and recipe.tuning.monitor, "tuning.monitor is set; accepted with [build]: [tuning] without it"),
        (recipe.tokenizer.model, "tokenizer.model is set; accepted with [build]: a recipe of a new tokenizer"),
        (recipe.training.max_minutes, "training.max_minutes is set; accepted with [build]: training.max_updates"),
        (
            any(c.source_tag or len(c.directions) for c in recipe.data.train),
            "data.train has source_tag or directions; accepted with [build]: corpora without these keys",
        ),
        (
            len(recipe.data.directions) == 1 and build.single_model and build.is_synthetic,
            "build.single_model is true and data.directions has one direction; accepted: both directions",
        ),
    )
    known = recipe.tuning.directions if recipe.tuning else all_directions(recipe, build)
    lacking = [str(direction) for direction in all_directions(recipe, build) if direction not in known]
    unknown = [c.path for c in build.monolingual if c.columns[0] not in languages]
    wrong = [text for condition, text in checks if condition]
    if lacking:
        wrong.append(
            f"tuning.model lacks {', '.join(lacking)}, needed for synthetic text; accepted: a model with these "
            "directions, or build.diversify = false without build.monolingual and build.filter"
        )
    if unknown:
        wrong.append(f"build.monolingual: {', '.join(unknown)}; accepted: text in {', '.join(languages)}")
    for number, student in enumerate(build.student):
        try:
            type(recipe.training).model_validate({**recipe.training.model_dump(), **student.training})
        except ValidationError as error:
            wrong.append(problems(f"build.student[{number}].training", [cause["msg"] for cause in error.errors()]))
    return wrong
