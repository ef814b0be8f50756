"""Prepared text as plain files, and a tokenizer that several recipes share."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mt.config import Recipe
from mt.data.dataset import load_prepared
from mt.data.export import export_text
from mt.data.preparation import prepare, prepared_folder
from mt.errors import TokenizerError

Build = Callable[..., Recipe]


def test_text_of_both_directions_is_written_once(tmp_path: Path, tiny_recipe: Build) -> None:
    data = load_prepared(prepare(tiny_recipe(("en-de", "de-en")), tmp_path / "prepared"))
    export_text(data, tmp_path / "text")
    assert sorted(path.name for path in (tmp_path / "text").iterdir()) == [
        "tokenizer.model",
        *(f"{part}.en-de.{suffix}" for part in ("train", "valid") for suffix in ("de", "en", "tsv")),
    ]
    assert (tmp_path / "text/valid.en-de.tsv").read_text() == "two\tzwei\n\t\neight eight\tacht acht\n"
    lines = {
        language: (tmp_path / f"text/train.en-de.{language}").read_text().splitlines() for language in ("en", "de")
    }
    assert len(lines["en"]) == len(lines["de"]) == 50
    assert (lines["en"][0], lines["de"][0]) == ("one", "eins")


def test_a_recipe_can_use_the_tokenizer_of_another(tmp_path: Path, tiny_recipe: Build) -> None:
    shared = tiny_recipe(tokenizer={"vocabulary_size": 320, "source_tags": ("bt",)})
    first = load_prepared(prepare(shared, tmp_path / "prepared"))
    assert first.tokenizer.source_tags == ("bt",)
    export_text(first, tmp_path / "text")
    recipe = tiny_recipe(tokenizer={"model": tmp_path / "text"})
    second = load_prepared(prepare(recipe, tmp_path / "prepared"))
    assert second.tokenizer.digest == first.tokenizer.digest
    assert second.folder != first.folder
    (tmp_path / "text/tokenizer.model").write_bytes(b"broken")
    with pytest.raises(TokenizerError):
        prepared_folder(recipe, tmp_path / "prepared")
