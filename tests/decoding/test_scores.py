"""Each function against a table that can be checked by hand."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mt.decoding.scores import best, length_penalty, repeating_ngrams

NO = -torch.inf


@pytest.mark.parametrize(
    ("length", "alpha", "gnmt", "expected"),
    [
        (1, 0.6, True, 1.0),  # (5 + 1) / 6
        (7, 1.0, True, 2.0),  # (5 + 7) / 6
        (7, 0.6, True, 1.5157166),  # 2 ** 0.6
        (19, 0.5, True, 2.0),  # sqrt(24 / 6)
        (9, 0.0, True, 1.0),
        (9, 0.0, False, 1.0),
        (9, 1.0, False, 9.0),
        (9, 0.5, False, 3.0),
    ],
)
def test_length_penalty(length: int, alpha: float, gnmt: bool, expected: float) -> None:
    penalty = length_penalty(torch.tensor(length), torch.tensor(alpha).double(), torch.tensor(gnmt))
    assert penalty.dtype is torch.float32
    assert penalty.item() == pytest.approx(expected, rel=1e-6)


@given(st.integers(1, 6), st.integers(4, 2600), st.integers(1, 20), st.integers(0, 2**31))
def test_the_best_are_those_of_a_plain_sort(rows: int, size: int, k: int, seed: int) -> None:
    scores = torch.randn(rows, size, generator=torch.Generator().manual_seed(seed))
    k = min(k, size)
    values, ids = best(scores, k)
    expected = scores.sort(dim=1, descending=True)
    assert torch.equal(values, expected.values[:, :k])
    assert torch.equal(ids, expected.indices[:, :k])


@pytest.mark.parametrize(
    ("said", "n", "banned"),
    [
        ([4, 5, 4, 6, 4], 2, {5, 6}),  # 4 5 and 4 6 were said, and 4 is the last word
        ([4, 5, 4, 6, 4], 1, {4, 5, 6}),
        ([4, 5, 6, 4, 5], 3, {6}),
        ([4, 5, 6, 5, 4], 3, set()),
        ([4, 4, 4], 2, {4}),
        ([4, 4], 3, set()),
        ([4], 2, set()),
        ([], 1, set()),
        ([], 3, set()),
        ([4, 5, 4, 6, 4], 0, set()),
    ],
)
def test_ngrams_that_would_repeat(said: list[int], n: int, banned: set[int]) -> None:
    history = torch.tensor([said + [7] * (6 - len(said))] * 2)  # what follows is not yet said
    repeats = repeating_ngrams(history, torch.tensor([len(said)] * 2), torch.tensor([n, 0]), max(n, 1))
    assert {token for token, hit in zip(history[0].tolist(), repeats[0].tolist(), strict=True) if hit} == banned
    assert not repeats[1].any()
