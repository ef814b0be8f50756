from pathlib import Path

import numpy as np
import pytest

from mt.arrays import save_arrays
from mt.checkpoint import load_model
from mt.errors import ModelError
from mt.source_bigrams import BIGRAMS_FILE, SourceBigrams, load_source_bigrams, save_source_bigrams
from tests.conftest import FROZEN


def texts(*rows: list[int]) -> list[np.ndarray]:
    return [np.array(row, np.uint16) for row in rows]


REPEATED = [[5, 6, 7], [5, 6, 7]]
LANGUAGES = [[5, 6, 7], [5, 6, 7], [8, 9], [8, 9], [8, 9]]


@pytest.mark.parametrize(
    ("rows", "directions", "language", "tokens", "expected"),
    [
        (REPEATED, [0, 0], "en", [5, 6, 7], 0),
        (REPEATED, [0, 0], "en", [5, 6], 1 / 3),  # one end is new
        (REPEATED, [0, 0], "en", [6, 5, 7], 3 / 4),  # another order
        (REPEATED, [0, 0], "en", [5, 6, 9, 6, 7], 2 / 6),
        (REPEATED, [0, 0], "en", [], 1),
        ([[5, 6], [5, 6], [5, 7]], [0, 0, 0], "en", [5, 7], 2 / 3),  # a pair that occurs once is new
        (LANGUAGES, [0, 1, 2, 2, 2], "en", [5, 6, 7], 0),  # once in each of two directions
        (LANGUAGES, [0, 1, 2, 2, 2], "de", [8, 9], 0),
        (LANGUAGES, [0, 1, 2, 2, 2], "de", [5, 6, 7], 1),
        (LANGUAGES, [0, 1, 2, 2, 2], "en", [8, 9], 1),
    ],
)
def test_novelty_is_the_share_of_new_pairs(
    rows: list[list[int]], directions: list[int], language: str, tokens: list[int], expected: float
) -> None:
    bigrams = SourceBigrams.build(texts(*rows), np.array(directions), ["en", "en", "de"])
    assert bigrams.novelty(language, tokens) == pytest.approx(expected)


@pytest.mark.parametrize(("first", "second"), [(2, 3000), (3000, 2), (3000, 3000)])
def test_a_set_contains_the_known_one(first: int, second: int) -> None:
    """Sets of both orders of size: a model that is tuned on little text, or on more than it was trained on."""
    random = np.random.default_rng(1)
    old, new = ([*rows, *rows] for rows in (random.integers(4, 8000, (count, 12)) for count in (first, second)))
    known = SourceBigrams.build(old, np.zeros(len(old), int), ["en"])
    both = SourceBigrams.build(new, np.zeros(len(new), int), ["en"], known)
    assert all(both.novelty("en", row.tolist()) == 0 for row in (*old, *new))
    assert len(both.bits) == max(len(known.bits), len(SourceBigrams.build(new, np.zeros(len(new), int), ["en"]).bits))
    assert np.mean([both.novelty("en", row) for row in random.integers(4, 8000, (500, 12)).tolist()]) > 6 / 8


def test_a_large_text_is_sampled() -> None:
    rows = texts(*([number, number + 1] for number in range(4, 404) for _ in range(2)))
    bigrams = SourceBigrams.build(rows, np.zeros(len(rows), int), ["en"], max_tokens=100)  # one text in 16
    assert np.mean([bigrams.novelty("en", [number, number + 1]) for number in range(4, 404)]) > 0.9


def test_files(tmp_path: Path) -> None:
    tokenizer = load_model(FROZEN).tokenizer
    bigrams = SourceBigrams.build(texts([5, 6], [5, 6]), np.array([0, 0]), ["en"])
    assert load_source_bigrams(tmp_path, tokenizer) is None
    save_source_bigrams(tmp_path, bigrams, tokenizer)
    loaded = load_source_bigrams(tmp_path, tokenizer)
    assert loaded and loaded.novelty("en", [5, 6]) == 0
    tokenizer = load_model(FROZEN).tokenizer
    save_arrays(tmp_path / BIGRAMS_FILE, {"bits": np.zeros(3, np.uint8)})
    with pytest.raises(ModelError, match="power of two") as caught:
        load_source_bigrams(tmp_path, tokenizer)
    assert "another tokenizer" in str(caught.value)
