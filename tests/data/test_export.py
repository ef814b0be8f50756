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
    recipe = tiny_recipe(("en-de", "de-en"))
    data = load_prepared(prepare(recipe, tmp_path / "prepared"))
    export_text(data, recipe.data.train, tmp_path / "text", sample=3)
    numbers = range(1, len(recipe.data.train) + 1)
    assert sorted(path.name for path in (tmp_path / "text").iterdir()) == [
        *(f"sample{number}.en-de.{language}" for number in numbers for language in ("de", "en")),
        "tokenizer.model",
        *(f"train{number}.en-de.{language}" for number in numbers for language in ("de", "en")),
        *("valid.en-de.de", "valid.en-de.en", "valid.en-de.tsv"),
    ]
    assert (tmp_path / "text/valid.en-de.tsv").read_text() == "two\tzwei\n\t\neight eight\tacht acht\n"

    def lines(part: str, language: str) -> list[str]:
        return (tmp_path / f"text/{part}.en-de.{language}").read_text().splitlines()

    for language, first in (("en", "one"), ("de", "eins")):
        train = [lines(f"train{number}", language) for number in numbers]
        assert sum(map(len, train)) == len(data.train) / 2 == 50
        assert train[0][0] == first
        assert lines("sample1", language) == [train[0][index] for index in (0, 14, 29)]


def test_a_recipe_can_use_the_tokenizer_of_another(tmp_path: Path, tiny_recipe: Build) -> None:
    shared = tiny_recipe(tokenizer={"vocabulary_size": 320, "source_tags": ("bt",)})
    first = load_prepared(prepare(shared, tmp_path / "prepared"))
    assert first.tokenizer.source_tags == ("bt",)
    export_text(first, shared.data.train, tmp_path / "text")
    recipe = tiny_recipe(tokenizer={"model": tmp_path / "text"})
    second = load_prepared(prepare(recipe, tmp_path / "prepared"))
    assert second.tokenizer.digest == first.tokenizer.digest
    assert second.folder != first.folder
    (tmp_path / "text/tokenizer.model").write_bytes(b"broken")
    with pytest.raises(TokenizerError):
        prepared_folder(recipe, tmp_path / "prepared")
