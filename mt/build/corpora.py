"""The stages that prepare the corpora of a build, and the test sets of a direction."""

from collections.abc import Sequence
from dataclasses import replace

from mt.build.config import BuildConfig, all_directions
from mt.build.recipes import text_recipe
from mt.build.stage import DATA, ORIGINAL, ORIGINAL_FOLDER, ORIGINAL_MODEL, TEXT, TEXT_FOLDER, Stage, folder_of
from mt.config import Recipe
from mt.data_config import CorpusConfig
from mt.languages import Direction

EvaluationText = tuple[str, tuple[str, ...], tuple[str, ...]]
"""Name of a test set, the options of `mt-service evaluate` for it, and its files, relative to the data root."""


def first_stages(recipe: Recipe, build: BuildConfig) -> list[Stage]:
    """Return the stages before all others: `original` copies the model to tune, `text` prepares the text.

    `text` cleans the corpora, splits off the validation set, and trains the tokenizer of all models. Without
    `[tuning]`, there is no stage `original`.
    """
    corpora = (*recipe.data.train, *recipe.data.valid)
    languages = {language for direction in all_directions(recipe, build) for language in direction.languages}
    files = dict.fromkeys(path for corpus in corpora for path in corpus_paths(corpus, sorted(languages)))
    sample = () if build.translated_pairs is None else ("--sample", str(build.translated_pairs))
    text = Stage(
        TEXT,
        "prepare",
        (f"{folder_of(TEXT)}/stage.toml", "--prepared", "prepared", "--text", TEXT_FOLDER, *sample),
        TEXT_FOLDER,
        files=tuple(files),
        recipe=text_recipe(recipe, build),
    )
    if not recipe.tuning:
        return [text]
    model = tuple(f"{ORIGINAL_FOLDER}/{path.name}" for path in sorted(recipe.tuning.model.iterdir()) if path.is_file())
    return [
        Stage(ORIGINAL, "shrink", (ORIGINAL_FOLDER, ORIGINAL_MODEL), ORIGINAL_MODEL, files=model),
        replace(text, inputs=(ORIGINAL,)),
    ]


def test_sets(recipe: Recipe, direction: Direction, pair: Direction) -> list[EvaluationText]:
    """Return the test sets of `direction`, each named by its place in the recipe.

    If the recipe has none, return the validation set with an empty name. `pair` is the direction in the name of its
    file: `direction` or its reverse.
    """
    tests: list[EvaluationText] = []
    for number, corpus in enumerate(recipe.data.test, 1):
        if not corpus.may_have(direction):
            continue
        source, *target = paths = corpus_paths(corpus, direction.languages)
        if target:
            options = ("--source-file", DATA + source, "--reference-file", DATA + target[0])
        else:
            options = ("--tsv", DATA + source, "--columns", ",".join(corpus.columns))
        tests.append((str(number), options, tuple(paths)))
    return tests or [("", validation_options(pair), ())]


def validation_options(pair: Direction) -> tuple[str, ...]:
    """Return the options of `mt-service evaluate` for the validation set of `pair`."""
    return "--tsv", f"{TEXT_FOLDER}/valid.{pair}.tsv", "--columns", ",".join(pair.languages)


def corpus_paths(corpus: CorpusConfig, languages: Sequence[str]) -> list[str]:
    """Return the paths of the files of a corpus in `languages`. The paths are relative to the data root."""
    return list(dict.fromkeys(corpus.path.replace("{language}", language) for language in languages))
