"""The stages of a build, for each combination of techniques."""

from pathlib import Path

import pytest

import mt.bundled
from mt.build.config import BuildConfig, read_build_recipe
from mt.build.plan import Machine, make_plan
from mt.build.stage import Stage
from mt.config import Recipe
from mt.errors import RecipeError

RECIPE = """
name = "x"
[data]
root = "corpora"
directions = ["en-de"]
train = ["train.{language}"]
valid = ["valid.{language}"]
test = ["test.{language}"]
[model]
size = "tiny"
[build]
"""


def read(folder: Path, build: str, *overrides: str) -> tuple[Recipe, BuildConfig]:
    path = folder / "recipe.toml"
    path.write_text(RECIPE + build, encoding="utf-8")
    return read_build_recipe(path, overrides)


def plan(folder: Path, build: str, *overrides: str) -> list[Stage]:
    return make_plan(*read(folder, build, *overrides), Machine())


def trained(stages: list[Stage], name: str) -> list[tuple[str, list[str], str]]:
    """Path, directions and source tag of each training corpus of a stage."""
    recipe = next(stage.recipe for stage in stages if stage.name == name)
    assert recipe is not None
    return [(c["path"], c["directions"], c.get("source_tag", "")) for c in recipe["data"]["train"]]


def weights(stages: list[Stage], name: str) -> dict[str, float]:
    """Weight of each training corpus of a stage, by the path of the corpus without `stages/` and the languages."""
    recipe = next(stage.recipe for stage in stages if stage.name == name)
    assert recipe is not None
    return {
        c["path"].removeprefix("stages/text/").removeprefix("stages/").removesuffix(".{language}"): c["weight"]
        for c in recipe["data"]["train"]
    }


STARTER = Path(mt.bundled.__file__).with_name("starter")
BASE = ["text", "base-en-de-1", "score-base-en-de-1-en-de"]
TEACHER = ["model-en-de-teacher", "test1-en-de-teacher-en-de", "test1-en-de-teacher-en-de-float32"]
BOTH = [*BASE, "base-de-en-1"]
DIVERSE = ["translate-1-en-de", "corpus-1-en-de", "translate-1-de-en", "corpus-1-de-en"]
ROUND = ["round1-en-de-1", "score-round1-en-de-1-en-de"]
BACK = ["translate-1-de-en-monolingual1", "corpus-1-de-en-monolingual1"]
FORWARD = ["translate-1-en-de-monolingual1", "corpus-1-en-de-monolingual1"]
STUDENT = [
    *("translate-student-en-de", "corpus-student-en-de", "shrink-student1-en-de", "student1-en-de"),
    *("model-en-de-student1", "test1-en-de-student1-en-de", "test1-en-de-student1-en-de-float32"),
]
MONOLINGUAL = 'diversify = false\nmonolingual = [{ path = "captions.de", columns = ["de"] }]'


@pytest.mark.parametrize(
    ("build", "names"),
    [
        ("diversify = false", [*BASE, *TEACHER]),
        ("", [*BOTH, *DIVERSE, *ROUND, *TEACHER]),
        (MONOLINGUAL, [*BOTH, *BACK, *ROUND, *TEACHER]),
        ("diversify = false\nstudent = [{ decoder_layers = 1 }]", [*BASE, *TEACHER, *STUDENT]),
        ("diversify = false\nseeds = 2", [*BASE, "base-en-de-2", "score-base-en-de-2-en-de", *TEACHER]),
        ("filter = 0.1", [*BOTH, *DIVERSE, *ROUND, *TEACHER]),
        (MONOLINGUAL.replace("de", "en") + "\nfilter = 0.1", [*BOTH, *FORWARD, *ROUND, *TEACHER]),
        ("filter = 0.1\ndiversify = false", [*BASE, *TEACHER]),  # nothing to filter
    ],
)
def test_stages_of_techniques(tmp_path: Path, build: str, names: list[str]) -> None:
    assert [stage.name for stage in plan(tmp_path, build)] == names


def test_a_stage_comes_after_the_stages_that_it_needs(tmp_path: Path) -> None:
    build = "seeds = 2\nrounds = 3\nfilter = 0.1\n"
    build += "student = [{ encoder_layers = 2 }, {}]\n"
    build += 'monolingual = [{ path = "a.de", columns = ["de"] }, { path = "a.en", columns = ["en"] }]'
    stages = plan(tmp_path, build)
    known: set[str] = set()
    written = {"stages/text/text"}
    for stage in stages:
        assert stage.name not in known
        assert set(stage.sources) <= known, stage.name
        read = [part for part in stage.argv if part.startswith(("stages/", "models/"))]
        made = {*written, stage.output, stage.folder, f"{stage.folder}/stage.toml", f"{stage.folder}/corpus"}
        unknown = {path for path in read if path not in made and not path.startswith("stages/text/text/")}
        assert {path for path in unknown if not path.startswith("stages/corpus-")} == set(), stage.name
        known.add(stage.name)
        written.add(stage.output)


def test_the_model_of_a_filter_and_the_beam_size_of_a_student(tmp_path: Path) -> None:
    build = "filter = 0.1\nseeds = 2\nstudent = [{}, { beam_size = 2 }]\n"
    build += 'monolingual = [{ path = "a.en", columns = ["en"] }]'
    stages = {stage.name: stage for stage in plan(tmp_path, build, "decoding.beam_size=5")}
    dropping = ("--backward", "stages/base-de-en-1/model", "--drop", "0.1", "--device", "cpu")
    for name in ("corpus-1-en-de", "corpus-1-en-de-monolingual1"):
        assert stages[name].argv[-6:] == dropping and "base-de-en-1" in stages[name].inputs
    assert "--drop" not in stages["corpus-student-en-de"].argv
    recipes = [stages[f"student{number}-en-de"].recipe or {} for number in (1, 2)]
    assert [recipe["decoding"]["beam_size"] for recipe in recipes] == [5, 2]


def test_back_translations_are_tagged_and_forward_translations_are_not(tmp_path: Path) -> None:
    build = 'monolingual = [{ path = "a.de", columns = ["de"] }, { path = "a.en", columns = ["en"] }]'
    stages = plan(tmp_path, build)
    assert trained(stages, "round1-en-de-1") == [
        ("stages/text/text/train1.en-de.{language}", ["en-de"], ""),
        ("stages/corpus-1-en-de/corpus.{language}", ["en-de"], ""),
        ("stages/corpus-1-en-de-monolingual2/corpus.{language}", ["en-de"], ""),
        ("stages/corpus-1-de-en/corpus.{language}", ["en-de"], ""),
        ("stages/corpus-1-de-en-monolingual1/corpus.{language}", ["en-de"], "bt"),
    ]
    text = stages[0].recipe
    assert text is not None
    assert text["tokenizer"]["source_tags"] == ["bt"]


def test_student_learns_from_everything_that_its_teacher_can_translate(tmp_path: Path) -> None:
    stages = plan(tmp_path, f"{MONOLINGUAL}\nstudent = [{{}}]")
    assert trained(stages, "student1-en-de") == [
        ("stages/corpus-student-en-de/corpus.{language}", ["en-de"], ""),
        ("stages/corpus-student-en-de-back1/corpus.{language}", ["en-de"], ""),
    ]
    back = next(stage for stage in stages if stage.name == "translate-student-en-de-back1")
    assert back.argv[1:3] == ("models/en-de-teacher", "stages/corpus-1-de-en-monolingual1/corpus.en")


def test_one_model_for_all_directions(tmp_path: Path) -> None:
    stages = plan(tmp_path, "single_model = true", 'data.directions=["en-de", "de-en"]')
    assert [stage.name for stage in stages if stage.kind == "train"] == ["base-all-1", "round1-all-1"]
    assert trained(stages, "round1-all-1")[1] == ("stages/corpus-1-en-de/corpus.{language}", ["en-de", "de-en"], "")
    tests = [stage.name for stage in stages if stage.name.startswith("test1") and "float32" not in stage.name]
    assert tests == ["test1-all-teacher-en-de", "test1-all-teacher-de-en"]


def test_corpora_keep_their_weights(tmp_path: Path) -> None:
    """The synthetic pairs have the weight of the corpus of their sources, and only some of the pairs are translated."""
    build = "translated_pairs = 500\nstudent = [{}]\n"
    build += 'monolingual = [{ path = "a.en", columns = ["en"], weight = 0.1 }]'
    train = '[{ path = "a.tsv", columns = ["en", "de"], weight = 2 }, { path = "b.{language}", weight = 0.25 }]'
    stages = plan(tmp_path, build, f"data.train={train}")
    assert weights(stages, "base-en-de-1") == {"text/train1.en-de": 2.0, "text/train2.en-de": 0.25}
    assert weights(stages, "round1-en-de-1") == {
        "text/train1.en-de": 2.0,
        "text/train2.en-de": 0.25,
        "corpus-1-en-de-corpus1/corpus": 2.0,
        "corpus-1-en-de-corpus2/corpus": 0.25,
        "corpus-1-en-de-monolingual1/corpus": 0.1,
        "corpus-1-de-en-corpus1/corpus": 2.0,
        "corpus-1-de-en-corpus2/corpus": 0.25,
    }
    assert weights(stages, "student1-en-de") == {
        "text/train1.en-de": 2.0,
        "text/train2.en-de": 0.25,
        "corpus-student-en-de-corpus1/corpus": 2.0,
        "corpus-student-en-de-corpus2/corpus": 0.25,
        "corpus-student-en-de-monolingual1/corpus": 0.1,
    }
    by_name = {stage.name: stage for stage in stages}
    assert by_name["text"].argv[-2:] == ("--sample", "500")
    translation, corpus = by_name["translate-1-en-de-corpus2"], by_name["corpus-1-en-de-corpus2"]
    assert translation.argv[2] == "stages/text/text/sample2.en-de.en"
    assert corpus.argv[-2:] == ("--reference-file", "stages/text/text/sample2.en-de.de")


def test_a_build_can_begin_with_a_model(tmp_path: Path, small_model: Path) -> None:
    """Every teacher begins with a copy of the model, whose files are part of the digest of the first stage."""
    stages = plan(tmp_path, "diversify = false", f"tuning.model={small_model}", "model={}")
    first, text, base = stages[:3]
    assert (first.name, first.kind, first.argv) == ("original", "shrink", ("{original}", "stages/original/model"))
    assert {"{original}/config.json", "{original}/model.safetensors", "{original}/tokenizer.model"} <= {*first.files}
    assert text.inputs == ("original",)
    assert text.recipe is not None
    assert (text.recipe["tokenizer"], "tuning" in text.recipe) == ({"model": "stages/original/model"}, False)
    assert base.recipe is not None
    assert (base.recipe["tuning"]["model"], base.recipe["tokenizer"]) == ("stages/original/model", {"dropout": 0.0})
    choice = next(stage for stage in stages if stage.kind == "choose")
    assert [(candidate.model, candidate.scores) for candidate in choice.candidates] == [
        ("stages/base-en-de-1/model", ("score-base-en-de-1-en-de",)),
        ("stages/original/model", ("score-original-en-de",)),
    ]


def test_back_translations_are_tagged_only_if_the_model_knows_the_tag(tmp_path: Path) -> None:
    overrides = ('data.directions=["en-de", "de-en"]', f"tuning.model={STARTER}", "model={}")
    stages = plan(tmp_path, MONOLINGUAL, *overrides)
    path, *_, tag = trained(stages, "round1-en-de-1")[-1]
    assert (path, tag) == ("stages/corpus-1-de-en-monolingual1/corpus.{language}", "")


def test_an_ensemble_translates_the_text_of_the_students(tmp_path: Path) -> None:
    stages = {stage.name: stage for stage in plan(tmp_path, "seeds = 3\nensemble = 2\nstudent = [{}]")}
    first, second = stages["model-en-de-teacher"], stages["model-en-de-teacher2"]
    assert (first.rank, second.rank, first.candidates == second.candidates) == (1, 2, True)
    translation = stages["translate-student-en-de"]
    assert translation.argv[1] == "models/en-de-teacher"
    assert translation.argv[-2:] == ("--ensemble", "models/en-de-teacher2")
    assert {"model-en-de-teacher", "model-en-de-teacher2"} <= {*translation.inputs}
    assert "test1-en-de-ensemble-en-de-float32" not in stages
    assert stages["test1-en-de-ensemble-en-de"].argv[-2:] == ("--ensemble", "models/en-de-teacher2")
    assert not any("--ensemble" in stage.argv for stage in stages.values() if stage.name.startswith("translate-1"))


def test_further_rounds_depend_on_an_improvement(tmp_path: Path) -> None:
    stages = {stage.name: stage for stage in plan(tmp_path, "rounds = 2")}
    gate = stages["translate-2-en-de"].gate
    assert stages["round1-en-de-1"].gate is None
    assert gate is not None
    assert (gate.before, gate.after) == (("score-base-en-de-1-en-de",), ("score-round1-en-de-1-en-de",))
    assert [candidate.model for candidate in stages["model-en-de-teacher"].candidates] == [
        f"stages/{name}-en-de-1/model" for name in ("base", "round1", "round2")
    ]


@pytest.mark.parametrize(
    ("build", "overrides", "message"),
    [
        ("minuts = 3", (), "build.minuts is unknown"),
        ("studnet = [{}]", (), "build.studnet is unknown (did you mean student?)"),
        ("student = [{ beam_sise = 2 }]", (), "build.student.0.beam_sise is unknown (did you mean beam_size?)"),
        ("", ("training.max_minutes=3",), "training.max_minutes is set; accepted with [build]: training.max_updates"),
        ("single_model = true", (), "build.single_model is true and data.directions has one direction; acc"),
        ('monolingual = [{ path = "a.fr", columns = ["fr"] }]', (),
         "build.monolingual: a.fr; accepted: text in de, en"),
        ('monolingual = [{ path = "a.{language}" }]', (), "a.{language}; accepted: only `path`, `weight`, and `col"),
        ("seeds = 2\nensemble = 3", (), "ensemble is 3; accepted: at most 2, the number of `seeds`"),
        ("student = [{ training = { max_updates = 0 } }]", (), "build.student[0].training"),
    ],
)  # fmt: skip
def test_wrong_recipes_are_refused(tmp_path: Path, build: str, overrides: tuple[str, ...], message: str) -> None:
    with pytest.raises(RecipeError) as error:
        plan(tmp_path, build, *overrides)
    assert message in str(error.value)


def test_a_wrong_model_or_no_section_is_refused(tmp_path: Path, small_model: Path) -> None:
    with pytest.raises(RecipeError, match=r"tuning\.model lacks de-en, needed for synthetic text; accepted: a model"):
        plan(tmp_path, "", f"tuning.model={small_model}", "model={}")
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE.replace("[build]", ""), encoding="utf-8")
    with pytest.raises(RecipeError, match=r"the section \[build\] is missing"):
        read_build_recipe(path)
