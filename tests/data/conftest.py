import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from mt.config import Recipe

NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
ZAHLEN = ("null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun")


def spoken(number: int, words: tuple[str, ...]) -> str:
    return " ".join(words[int(digit)] for digit in str(number))


def counted_pairs(start: int, stop: int) -> list[tuple[str, str]]:
    """English and German numbers, digit by digit: pairs of many lengths, all different."""
    return [(spoken(7**n, NUMBERS), spoken(7**n, ZAHLEN)) for n in range(start, stop)]


@pytest.fixture
def tiny_corpus(tmp_path: Path) -> Path:
    """A folder of 30 plain pairs, 15 in .gz and 5 in .tsv.xz, and a validation set with an empty pair."""
    root = tmp_path / "corpora"
    root.mkdir()
    plain, packed, table = counted_pairs(0, 30), counted_pairs(30, 45), counted_pairs(45, 50)
    for side, language in enumerate(("en", "de")):
        (root / f"plain.{language}").write_text("".join(pair[side] + "\n" for pair in plain), encoding="utf-8")
        with gzip.open(root / f"packed.{language}.gz", "wt", encoding="utf-8") as file:
            file.writelines(pair[side] + "\n" for pair in packed)
    with lzma.open(root / "table.tsv.xz", "wt", encoding="utf-8") as file:
        file.writelines(f"{german}\t{english}\textra\n" for english, german in table)
    (root / "valid.tsv").write_text("zwei\ttwo\n\t\nacht acht\teight eight\n", encoding="utf-8")
    return root


@pytest.fixture
def tiny_recipe(tiny_corpus: Path) -> Callable[..., Recipe]:
    """A recipe over the tiny corpus; keyword arguments replace keys of its sections."""

    def build(directions: tuple[str, ...] = ("en-de",), **sections: dict[str, object]) -> Recipe:
        table = {"path": "table.tsv.xz", "columns": ("de", "en")}
        values: dict[str, dict[str, object]] = {
            "data": {
                "root": tiny_corpus,
                "directions": directions,
                "train": ("plain.{language}", "packed.{language}.gz", table),
                "valid": ({"path": "valid.tsv", "columns": ("de", "en")},),
            },
            "tokenizer": {"vocabulary_size": 320},
            "cleaning": {"max_repetition": 0},
            "model": {"size": "tiny"},
            "training": {"batch_tokens": 64, "update_tokens": 150},
        }
        for name, changes in sections.items():
            values[name] = {**values[name], **changes}
        return Recipe.model_validate({"name": "tiny", **values})

    return build
