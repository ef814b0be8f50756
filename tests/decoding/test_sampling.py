import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mt.decoding.options import SearchOptions
from mt.decoding.sampling import draw
from mt.decoding.scores import best, length_penalty, repeating_ngrams
from tests.decoding.conftest import TableScorer
from tests.decoding.reference import decode

EOS = 3
SAMPLE = SearchOptions(sample=True, n_best=1000, max_length=2, max_length_offset=2)
PROBABILITIES = {4: 0.5, 5: 0.3, 6: 0.15, 7: 0.05}


def one_word(source: tuple[int, ...], tokens: tuple[int, ...]) -> list[float]:
    """A word by PROBABILITIES, then the end."""
    if tokens:
        return [0.0 if token == EOS else -math.inf for token in range(8)]
    return [math.log(PROBABILITIES[token]) if token in PROBABILITIES else -math.inf for token in range(8)]


def shares(scorer: TableScorer, options: SearchOptions) -> dict[int, float]:
    [found] = decode(scorer, [(9, EOS)], options)
    assert len(found) == options.n_best
    counts = Counter(hypothesis.tokens[0] for hypothesis in found)
    return {token: count / options.n_best for token, count in counts.items()}


@pytest.mark.parametrize(
    ("probabilities", "number", "expected"),
    [
        ([0.5, 0.3, 0.2], 1e-10, 0),
        ([0.5, 0.3, 0.2], 0.49, 0),
        ([0.5, 0.3, 0.2], 0.51, 1),
        ([0.5, 0.3, 0.2], 0.81, 2),
        ([0.0, 0.0, 1.0], 1e-10, 2),  # none of no probability
        ([0.0, 1.0, 0.0], 1 - 1e-10, 1),
        ([3.0, 1.0, 0.0], 0.74, 0),  # of four
        ([1e-12, 1.0, 1e-12], 1e-13, 0),
    ],
)
def test_a_number_draws_its_token(probabilities: list[float], number: float, expected: int) -> None:
    scores = torch.tensor([probabilities], dtype=torch.float64).log()
    assert draw(scores, torch.tensor([number], dtype=torch.float64)).tolist() == [expected]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (SAMPLE, PROBABILITIES),
        (replace(SAMPLE, seed=2**31 + 1), PROBABILITIES),
        (replace(SAMPLE, temperature=0.5), {4: 0.25 / 0.365, 5: 0.09 / 0.365, 6: 0.0225 / 0.365, 7: 0.0025 / 0.365}),
        (replace(SAMPLE, temperature=0.01), {4: 1.0}),
    ],
)
def test_words_are_drawn_as_often_as_they_should(options: SearchOptions, expected: dict[int, float]) -> None:
    found = shares(TableScorer(one_word), options)
    assert found.keys() <= expected.keys()
    for token, share in expected.items():
        deviation = math.sqrt(share * (1 - share) / options.n_best)
        assert found.get(token, 0.0) == pytest.approx(share, abs=4 * deviation + 1e-9)


def test_samples_tell_the_probability_that_the_model_gives() -> None:
    options = replace(SAMPLE, n_best=20, temperature=2.0, length_penalty=1.0)
    [found] = decode(TableScorer(one_word), [(9, EOS)], options)
    for hypothesis in found:
        log_probability = math.log(PROBABILITIES[hypothesis.tokens[0]])
        assert hypothesis.token_log_probabilities == pytest.approx((log_probability, 0.0), abs=1e-6)
        assert hypothesis.score == pytest.approx(log_probability / 2)
    scores = [hypothesis.score for hypothesis in found]
    assert scores == sorted(scores, reverse=True) and len(set(scores)) > 1


def test_each_step_draws_anew() -> None:
    """Two words, equally likely at every step: as often the same as before as not."""
    scorer = TableScorer(lambda source, tokens: [-99.0] * 4 + [0.0, 0.0])
    [found] = decode(scorer, [(9, EOS)], SearchOptions(sample=True, n_best=50, max_length=21, max_length_offset=30))
    changes = [one != other for h in found for one, other in pairwise(h.tokens)]
    assert len(changes) == 50 * 19
    assert sum(changes) / len(changes) == pytest.approx(0.5, abs=0.07)  # four standard deviations


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
    scores[0, seed % size] = torch.nan  # the highest value
    k = min(k, size)
    values, ids = best(scores, k)
    expected = scores.sort(dim=1, descending=True)
    torch.testing.assert_close(values, expected.values[:, :k], rtol=0, atol=0, equal_nan=True)
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
