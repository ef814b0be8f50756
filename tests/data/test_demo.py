"""The embedded corpus, as `mt-service fetch phrasebook` writes it."""

from collections import Counter
from pathlib import Path

import pytest

from mt.cli.fetch import main
from mt.data.demo import SPLITS

COPIES = {"everyday": 12, "glossary": 4}


@pytest.fixture
def splits(tmp_path: Path) -> dict[str, list[tuple[str, ...]]]:
    """Return the rows (English, German, construction) of each file."""
    assert main(["phrasebook", "--out", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["test.tsv", "train.tsv", "valid.tsv"]
    files = {split: (tmp_path / f"{split}.tsv").read_text(encoding="utf-8").splitlines() for split in SPLITS}
    return {split: [tuple(line.split("\t")) for line in lines] for split, lines in files.items()}


def test_numbers_of_pairs(splits: dict[str, list[tuple[str, ...]]]) -> None:
    generated = [row for row in splits["train"] if row[2] not in COPIES]
    assert len(generated) == len(set(generated)) == 20_000
    assert {split: len(rows) for split, rows in splits.items()} == {"train": 23_956, "valid": 1_000, "test": 2_000}


def test_copies_of_phrases_without_a_grammar(splits: dict[str, list[tuple[str, ...]]]) -> None:
    counts = Counter(row for row in splits["train"] if row[2] in COPIES)
    assert Counter(row[2] for row in counts) == {"everyday": 79, "glossary": 752}
    assert all(count == COPIES[row[2]] for row, count in counts.items())


def test_each_sentence_has_one_translation_and_one_file(splits: dict[str, list[tuple[str, ...]]]) -> None:
    sentences = {split: {row[0] for row in rows} for split, rows in splits.items()}
    assert sum(map(len, sentences.values())) == len(set.union(*sentences.values()))
    assert len({row[:2] for rows in splits.values() for row in rows}) == len(set.union(*sentences.values()))


def test_every_construction_of_the_test_is_in_training(splits: dict[str, list[tuple[str, ...]]]) -> None:
    trained = Counter(row[2] for row in splits["train"])
    assert all(trained[construction] >= 100 for _, _, construction in splits["test"])
