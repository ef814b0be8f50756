import re
from pathlib import Path
from typing import Any

import pytest

from mt.build.config import read_build_recipe
from mt.config import Recipe
from mt.errors import RecipeError
from mt.languages import Direction, DirectionSet
from mt.recipe import load_recipe, save_recipe

ALL_RECIPES = sorted((Path(__file__).resolve().parent.parent / "scripts" / "recipes").glob("*.toml"))
BUILD_RECIPES = [path for path in ALL_RECIPES if "\n[build]\n" in path.read_text(encoding="utf-8")]
RECIPES = [path for path in ALL_RECIPES if path not in BUILD_RECIPES]

MINIMAL = """
name = "small"
[data]
directions = ["en-de"]
train = ["train.{language}"]
valid = ["valid.{language}"]
[model]
size = "tiny"
"""

ROWS = (("a", 2, ""), ("b", 0.5, "noised"), ("c", 1.0, "bt"), ("d", 1, "bt"))


def load(folder: Path, text: str, *overrides: str) -> Recipe:
    path = folder / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return load_recipe(path, overrides)


def problems_of(folder: Path, text: str, *overrides: str) -> list[str]:
    with pytest.raises(RecipeError) as caught:
        load(folder, text, *overrides)
    heading, *result = str(caught.value).split("\n  - ")
    assert heading == f"{folder / 'recipe.toml'}:"
    return result


def test_a_minimal_recipe_and_names_of_runs(tmp_path: Path) -> None:
    recipe = load(tmp_path, MINIMAL)
    assert recipe.run_name == "small-en-de"
    assert recipe.data.languages == ("de", "en")
    assert recipe.data.train[0].file(Path("root"), "de") == Path("root/train.de")
    assert (recipe.model.d_model, recipe.model.norm) == (128, "pre")

    def name(*languages: str) -> str:
        directions = [f"{a}-{b}" for a in languages for b in languages if a != b]
        return load(tmp_path, MINIMAL, f"data.directions={directions}").run_name

    assert name("en", "de", "fr").startswith("small-en-de+en-fr+")
    names = {name("aa", "bb", "cc", "dd", "ee", "ff", last) for last in ("gg", "hh")}
    assert len(names) == 2 and all(re.fullmatch("small-42-directions-[0-9a-f]{8}", item) for item in names)


def test_keys_beside_a_size_replace_its_numbers(tmp_path: Path) -> None:
    """The last override counts. Without a size, all numbers must be given."""
    model = load(tmp_path, MINIMAL + "d_ff = 300\nencoder_layers = 6\n", "model.heads=4", "model.heads=8").model
    assert (model.encoder_layers, model.decoder_layers, model.d_model, model.d_ff, model.heads) == (6, 4, 128, 300, 8)
    numbers = "encoder_layers = 1\ndecoder_layers = 2\nd_model = 8\nd_ff = 9\nheads = 2\n"
    assert load(tmp_path, MINIMAL.replace('size = "tiny"\n', numbers)).model.decoder_layers == 2


def test_every_problem_at_once(tmp_path: Path) -> None:
    result = problems_of(
        tmp_path,
        """
        seed = -1
        [data]
        directions = ["en-de", "en", "de-de"]
        train = ["train.{language}", "no-language"]
        valid = 5
        [model]
        size = "huge"
        dropuot = 0.1
        [training]
        learning_rate = "fast"
        clip_norm = inf
        learnig_rate = 1
        """,
        "cleaning.max_length_ratio=-2",
        "nonsense",
        "seed.deeper=1",
    )
    expected = [
        "'nonsense' is not an override; accepted: key=value",
        "'seed.deeper=1': seed is not a section",
        "name is missing",
        "seed = -1: Input should be greater than or equal to 0",
        "data.directions: 'en' is not a direction; accepted: two languages",
        "data.directions: 'de-de' is not a direction; accepted: two languages",
        "data.train[1]: path is 'no-language' and columns []; accepted: a path with {language}",
        "data.valid = 5: Input should be a valid tuple",
        "cleaning.max_length_ratio = -2: Input should be greater than or equal to 0",
        "model.size = 'huge'; accepted: tiny, small, base, big",
        "model.dropuot is unknown (did you mean dropout?)",
        "training.learning_rate = 'fast': Input should be a valid number",
        "training.clip_norm = inf: Input should be a finite number",
        "training.learnig_rate is unknown (did you mean learning_rate?)",
    ]
    assert len(result) == len(expected), result
    for problem in expected:
        assert [line for line in result if line.startswith(problem)], (problem, result)


VALIDATION = "data: data.valid and data.split_validation: {} given; accepted: exactly one of them"


LANGUAGE, ONLY_TRAIN = "{language}", "weight, source_tag, variants and directions can be set only in data.train"
NO_DIRECTION = "is not a direction; accepted: two languages, such as en-de or en-pt-BR"


def corpora(key: str, *options: str) -> str:
    """Override `key` by one corpus for each of `options`, the values beside its path."""
    named = zip("abc", options, strict=False)
    listed = ", ".join(f"{{path='{name}.{{language}}'{values and ', '}{values}}}" for name, values in named)
    return f"data.{key}=[{listed}]"


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("modle.size=base", "modle is unknown (did you mean model?)"),
        ("data.valid=[]", VALIDATION.format("neither is")),
        ("data.split_validation=9", VALIDATION.format("both are")),
        (
            "data={split_validation=9, directions=['en-de'], train=[{path='a.{language}', variants=0.1}]}",
            "data: variants with data.split_validation would repeat validation text in training; accepted: data.valid",
        ),
        ("model.heads=5", "model: d_model is 128 and heads 5; accepted: heads that divide d_model"),
        (corpora("train", "colums=['en']"), "data.train[0].colums is unknown (did you mean columns?)"),
        ("data.directions=['en-de', 'en-de']", "data.directions: 'en-de' occurs 2 times; accepted: once"),
        ("data.directions=['en_de']", f"data.directions: 'en_de' {NO_DIRECTION}; did you mean en-de?"),
        (corpora("train", "directions=['de']"), f"data.train[0].directions: 'de' {NO_DIRECTION}"),
        (
            corpora("train", "", "directions=['de-en', 'en-de', 'en-fr']"),
            "data: b.{language} has the direction de-en, b.{language} has the direction en-fr; "
            "accepted: directions of data.directions (en-de)",
        ),
        (
            "data.train=[{path='a.tsv', columns=['en', 'fr'], directions=['en-de', 'fr-en']}]",
            "data.train[0]: a.tsv has the columns ['en', 'fr'], but the directions en-de; "
            "accepted: directions between two of its columns",
        ),
        (
            "data.train=['a.{language}', {path='b.tsv', columns=['en', 'ge']}]",
            "data: b.tsv has the columns ['en', 'ge']; accepted: columns for en-de",
        ),
        (corpora("valid", "", "weight=2", "source_tag='bt'"), f"data.valid: b.{LANGUAGE}, c.{LANGUAGE}: {ONLY_TRAIN}"),
    ],
)
def test_one_problem_is_said_once(tmp_path: Path, override: str, problem: str) -> None:
    assert problems_of(tmp_path, MINIMAL, override) == [problem]


@pytest.mark.parametrize(
    ("override", "section", "key", "value"),
    [
        ("seed=7", None, "seed", 7),
        ("name=bare-word", None, "name", "bare-word"),
        ('name="quoted"', None, "name", "quoted"),
        ("training.learning_rate=1e-3", "training", "learning_rate", 0.001),
        ('data.directions=["de-en", "en-de"]', "data", "directions", DirectionSet.parse(["de-en", "en-de"])),
        ('data.directions=["en-pt-BR"]', "data", "directions", DirectionSet.of([Direction("en", "pt-BR")])),
        ("data.root=/some/where else", "data", "root", Path("/some/where else")),
        ("tokenizer.vocabulary_size = 12_000", "tokenizer", "vocabulary_size", 12000),
    ],
)
def test_overrides_are_toml_or_words(tmp_path: Path, override: str, section: str | None, key: str, value: Any) -> None:
    recipe = load(tmp_path, MINIMAL, override)
    assert getattr(getattr(recipe, section) if section else recipe, key) == value


def test_corpora_are_mixed_only_if_a_recipe_says_so(tmp_path: Path) -> None:
    data = load(tmp_path, MINIMAL).data
    assert (data.train[0].weight, data.train[0].source_tag, data.source_tags, data.temperature) == (1, "", (), 1)
    corpora = (f"{{path='{name}.{{language}}', weight={weight}, source_tag='{mark}'}}" for name, weight, mark in ROWS)
    recipe = load(tmp_path, MINIMAL, f"data.train=[{', '.join(corpora)}]", "data.temperature=5")
    assert recipe.data.source_tags == ("bt", "noised")
    save_recipe(recipe, tmp_path / "saved.toml")
    assert load_recipe(tmp_path / "saved.toml") == recipe


def test_where_corpora_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MT_DATA", raising=False)
    assert load(tmp_path, MINIMAL).data.root == Path("data")
    monkeypatch.setenv("MT_DATA", "/corpora")
    assert load(tmp_path, MINIMAL).data.root == Path("/corpora")
    assert load(tmp_path, MINIMAL, "data.root=here").data.root == Path("here")


@pytest.mark.parametrize(
    ("content", "says"), [(None, "no such recipe"), (b"a = ", "not a TOML"), (b"\xff", "not a TOML")]
)
def test_a_file_that_is_no_recipe(tmp_path: Path, content: bytes | None, says: str) -> None:
    path = tmp_path / "recipe.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RecipeError, match=rf"{re.escape(str(path))}: .*{says}"):
        load_recipe(path)


@pytest.mark.parametrize("path", BUILD_RECIPES, ids=[path.stem for path in BUILD_RECIPES])
def test_our_recipes_of_builds_load(path: Path) -> None:
    recipe, _ = read_build_recipe(path)
    assert recipe.name == path.stem
    with pytest.raises(RecipeError, match="build is a section for `mt-service build`; accepted: a recipe without"):
        load_recipe(path)


@pytest.mark.parametrize("path", RECIPES, ids=[path.stem for path in RECIPES])
def test_our_recipes_load_and_survive_saving(tmp_path: Path, path: Path) -> None:
    tunes = "[tuning]" in path.read_text(encoding="utf-8")  # with the architecture of a model that is not here
    recipe = load_recipe(path, ["model.size=tiny"] if tunes else [])
    save_recipe(recipe, tmp_path / "saved.toml")
    assert load_recipe(tmp_path / "saved.toml") == recipe


def test_a_saved_recipe_spells_out_its_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MT_DATA", "/corpora")
    recipe = load(tmp_path, MINIMAL, "training.max_minutes=1.5", "name=no")
    save_recipe(recipe, tmp_path / "saved.toml")
    monkeypatch.setenv("MT_DATA", "/elsewhere")
    assert load_recipe(tmp_path / "saved.toml") == recipe
    text = (tmp_path / "saved.toml").read_text(encoding="utf-8")
    assert 'root = "/corpora"' in text and "d_model = 128" in text and "clip_norm = 1.0" in text
