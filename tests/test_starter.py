"""scripts/starter_data.py: the pack of prepared data, and the data of the student."""

from pathlib import Path

import numpy as np
import pytest

from mt.config import Recipe
from mt.data.dataset import load_prepared
from mt.data.preparation import prepare
from scripts.starter_data import expand, pack, save_translations, student_data, with_dropout

ENGLISH = ["The house is old.", "I see a tree.", "We drink water.", "The house is new.", "You see the old house."]
GERMAN = ["Das Haus ist alt.", "Ich sehe einen Baum.", "Wir trinken Wasser.", "Es ist neu.", "Du siehst das alte Haus."]


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    root = tmp_path_factory.mktemp("starter")
    rows = [f"{source}\t{target}\n" for source, target in zip(ENGLISH, GERMAN, strict=True)]
    (root / "train.tsv").write_text("".join(rows[:4]), encoding="utf-8")
    (root / "rare.tsv").write_text("".join(rows[4:]), encoding="utf-8")
    (root / "valid.tsv").write_text(rows[0], encoding="utf-8")
    corpora = [{"path": f"{name}.tsv", "columns": ["en", "de"]} for name in ("train", "rare", "valid")]
    train = [corpora[0], {**corpora[1], "weight": 4}]
    values = {
        "name": "starter",
        "data": {"root": root, "directions": ["en-de", "de-en"], "train": train, "valid": corpora[2:]},
        "tokenizer": {"vocabulary_size": 330},
        "model": {"size": "tiny"},
    }
    return Recipe.model_validate(values)


@pytest.fixture(scope="module")
def prepared(recipe: Recipe, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare(recipe, tmp_path_factory.mktemp("prepared"))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_expanded_data_are_the_prepared_data(prepared: Path, tmp_path: Path) -> None:
    pack(prepared, tmp_path / "pack")
    expand(tmp_path / "pack", tmp_path / "expanded", threads=2)
    assert contents(tmp_path / "expanded") == contents(prepared)


def test_student_sees_each_pair_as_often_as_before(recipe: Recipe, prepared: Path, tmp_path: Path) -> None:
    data = load_prepared(prepared)
    rows = [0, 4, 5]  # pairs of both corpora and directions
    translations = [(row, data.train.target[row].tolist()) for row in rows]
    (tmp_path / "distilled").mkdir()
    save_translations(tmp_path / "distilled" / "0-0.safetensors", translations)
    dropout = with_dropout(data.train, data.tokenizer, threads=1)
    mixed_recipe, mixed, translated = student_data(recipe, data, dropout, tmp_path)
    assert (translated, len(mixed.train)) == (3, 13)
    assert mixed.train.corpus.tolist() == [*data.train.corpus, *(data.train.corpus[rows] + 2)]
    assert all(np.array_equal(mixed.train.target[10 + n], data.train.target[row]) for n, row in enumerate(rows))
    before = np.array([corpus.weight for corpus in recipe.data.train])[data.train.corpus].sum()
    after = np.array([corpus.weight for corpus in mixed_recipe.data.train])[mixed.train.corpus].sum()
    assert after == pytest.approx(before)
