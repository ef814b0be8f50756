"""The set of source bigrams: members, other languages, sampling, files."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mt.source_bigrams
from mt.arrays import save_arrays
from mt.checkpoint import load_model
from mt.errors import ModelError
from mt.source_bigrams import BIGRAMS_FILE, SourceBigrams, load_source_bigrams, save_source_bigrams

FROZEN = Path(__file__).parent / "frozen" / "model"


def texts(*rows: list[int]) -> list[np.ndarray]:
    return [np.array(row, np.uint16) for row in rows]


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [([5, 6, 7], 0), ([5, 6], 1 / 3), ([6, 5, 7], 3 / 4), ([5, 6, 9, 6, 7], 2 / 6), ([], 1)],
    ids=["all pairs", "one end is new", "another order", "two of six", "an empty text"],
)
def test_novelty_is_the_share_of_new_pairs(tokens: list[int], expected: float) -> None:
    bigrams = SourceBigrams.build(texts([5, 6, 7], [5, 6, 7]), np.array([0, 0]), ["en"])
    assert bigrams.novelty("en", tokens) == pytest.approx(expected)


def test_a_pair_that_occurs_once_is_new() -> None:
    bigrams = SourceBigrams.build(texts([5, 6], [5, 6], [5, 7]), np.array([0, 0, 0]), ["en"])
    assert bigrams.novelty("en", [5, 6]) == 0
    assert bigrams.novelty("en", [5, 7]) == pytest.approx(2 / 3)


def test_pairs_of_another_language_are_new() -> None:
    sources = texts([5, 6, 7], [5, 6, 7], [8, 9], [8, 9], [8, 9])
    bigrams = SourceBigrams.build(sources, np.array([0, 1, 2, 2, 2]), ["en", "en", "de"])
    assert bigrams.novelty("en", [5, 6, 7]) == 0  # once in each of two directions
    assert bigrams.novelty("de", [8, 9]) == 0
    assert bigrams.novelty("de", [5, 6, 7]) == bigrams.novelty("en", [8, 9]) == 1


@given(st.lists(st.lists(st.integers(4, 60_000), max_size=9), min_size=1, max_size=9))
def test_the_training_text_is_familiar(rows: list[list[int]]) -> None:
    bigrams = SourceBigrams.build(texts(*rows, *rows), np.zeros(2 * len(rows), int), ["en"])
    assert all(bigrams.novelty("en", row) == 0 for row in rows)


def test_few_pairs_are_taken_for_members() -> None:
    random = np.random.default_rng(1)
    rows = random.integers(4, 8000, (3000, 12))
    bigrams = SourceBigrams.build([*rows, *rows], np.zeros(6000, int), ["en"])
    others = [bigrams.novelty("en", row) for row in random.integers(4, 8000, (1000, 12)).tolist()]
    assert np.mean(others) > 7 / 8


def test_a_large_text_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = texts(*([number, number + 1] for number in range(4, 404) for _ in range(2)))
    monkeypatch.setattr(mt.source_bigrams, "MAX_TOKENS", 100)  # one text in 16
    bigrams = SourceBigrams.build(rows, np.zeros(len(rows), int), ["en"])
    assert np.mean([bigrams.novelty("en", [number, number + 1]) for number in range(4, 404)]) > 0.9


def test_a_model_directory_holds_the_set(tmp_path: Path) -> None:
    tokenizer = load_model(FROZEN).tokenizer
    bigrams = SourceBigrams.build(texts([5, 6], [5, 6]), np.array([0, 0]), ["en"])
    assert load_source_bigrams(tmp_path, tokenizer) is None
    save_source_bigrams(tmp_path, bigrams, tokenizer)
    loaded = load_source_bigrams(tmp_path, tokenizer)
    assert loaded and loaded.novelty("en", [5, 6]) == 0


def test_a_damaged_file_lists_its_problems(tmp_path: Path) -> None:
    tokenizer = load_model(FROZEN).tokenizer
    save_arrays(tmp_path / BIGRAMS_FILE, {"bits": np.zeros(3, np.uint8)})
    with pytest.raises(ModelError, match="power of two") as caught:
        load_source_bigrams(tmp_path, tokenizer)
    assert "another tokenizer" in str(caught.value)
