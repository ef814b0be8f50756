"""Planning of the filter of synthetic text: which models score the pairs, and recipes of the language models."""

from collections.abc import Mapping, Sequence

from mt.build.config import BuildConfig, all_directions
from mt.build.recipes import Values, teacher_recipe
from mt.build.stage import DATA, TEXT_FOLDER, Candidate, folder_of
from mt.config import Recipe
from mt.languages import Direction

Scorers = Sequence[tuple[str, str]]
"""Models that score synthetic pairs. Each has an option of `mt-service distil` and the path of the model."""


def filter_models(build: BuildConfig, direction: Direction, models: Mapping[Direction, Sequence[Candidate]]) -> Scorers:
    """Return the models that score translations of `direction`, or () if the build has no filter.

    `models` are the current translation models of each direction.
    """
    if not build.filter:
        return ()
    if build.needs_language_models:
        return [("--language-model", f"{folder_of(language_model_stage(direction.target))}/model")]
    directions = {"--backward": direction.reversed}
    if build.filter_by == "dual cross-entropy":
        directions["--forward"] = direction
    return [(option, models[each][0].model) for option, each in directions.items()]


def scored_languages(build: BuildConfig, directions: Sequence[Direction]) -> list[str]:
    """Return the languages whose language models the filter needs: those into which text is translated.

    `directions` are those of all models of the build.
    """
    if not build.needs_language_models:
        return []
    monolingual = {corpus.columns[0] for corpus in build.monolingual}
    used = [direction for direction in directions if build.diversify or direction.source in monolingual]
    return list(dict.fromkeys(direction.target for direction in used))


def language_model_stage(language: str) -> str:
    """Return the name of the stage that trains the language model of `language`."""
    return f"language-model-{language}"


def language_model_recipe(recipe: Recipe, build: BuildConfig, language: str, updates: int) -> Values:
    """Return the recipe that trains a language model on the parallel and the monolingual text of `language`.

    The model has the tokenizer and the model size of the teachers. It is trained without BPE-dropout, because it scores
    texts in their usual segmentation.
    """
    directions = [each for each in all_directions(recipe, build) if language in (each.source, each.target)]
    teacher = teacher_recipe(recipe, build, directions, updates=updates)
    parallel = [
        {"path": corpus["path"].replace("{language}", language), "weight": corpus["weight"]}
        for corpus in teacher["data"]["train"]
    ]
    monolingual = [
        {"path": DATA + corpus.path, "columns": [language], "weight": corpus.weight}
        for corpus in build.monolingual
        if corpus.columns == (language,)
    ]
    return {
        **teacher,
        "data": {
            "language": language,
            "train": [*parallel, *monolingual],
            "valid": teacher["data"]["valid"],
            "max_tokens": recipe.data.max_tokens,
        },
        "tokenizer": {"model": TEXT_FOLDER},
    }
