"""The embedded corpus, as `mt-service fetch phrasebook` writes it."""

from collections import Counter
from pathlib import Path

from mt.cli.fetch import main
from mt.data.demo import SPLITS


def test_the_pairs_of_the_phrasebook(tmp_path: Path) -> None:
    """A sentence has one translation and one file, and training has every construction of the test."""
    assert main(["phrasebook", "--out", str(tmp_path)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["test.tsv", "train.tsv", "valid.tsv"]
    files = {split: (tmp_path / f"{split}.tsv").read_text(encoding="utf-8").splitlines() for split in SPLITS}
    splits = {split: [tuple(line.split("\t")) for line in lines] for split, lines in files.items()}
    assert {split: len(rows) for split, rows in splits.items()} == {"train": 23_956, "valid": 1_000, "test": 2_000}
    sentences = {split: {row[0] for row in rows} for split, rows in splits.items()}
    different = len(set.union(*sentences.values()))
    assert sum(map(len, sentences.values())) == different == len({row[:2] for rows in splits.values() for row in rows})
    trained = Counter(row[2] for row in splits["train"])
    assert all(trained[construction] >= 100 for _, _, construction in splits["test"])
