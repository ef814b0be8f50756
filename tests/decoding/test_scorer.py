import math
from typing import Any

import pytest
import torch

from mt.decoding.options import SearchOptions
from mt.decoding.scorer import EnsembleScorer, padded, token_mask
from tests.decoding.reference import decode

EOS = 3


def always(probabilities: dict[int, float]) -> Any:
    return lambda source, tokens: [math.log(probabilities.get(token, 1e-30)) for token in range(7)]


def test_an_ensemble_averages_probabilities(table_scorer: Any) -> None:
    members = (table_scorer(always({4: 0.8, EOS: 0.2})), table_scorer(always({5: 0.6, EOS: 0.4})))
    ensemble = EnsembleScorer(members)
    state = ensemble.start([(9, EOS)], 2)
    scores = ensemble.step(state, torch.tensor([2, 2])).exp()
    assert scores[0, 3:6].tolist() == pytest.approx([0.3, 0.4, 0.3], rel=1e-5)


def test_the_members_of_an_ensemble_move_together(random_scorer: Any) -> None:
    one = random_scorer(12)
    options = SearchOptions(beam_size=3, n_best=3, max_length=8)
    sources = [(word, EOS) for word in range(4, 20)]
    alone, twice = decode(one, sources, options), decode(EnsembleScorer((one, one)), sources, options)
    assert [[h.tokens for h in found] for found in alone] == [[h.tokens for h in found] for found in twice]


def test_sources_are_padded_and_masked() -> None:
    sources, device = [[5, 6, EOS], [EOS]], torch.device("cpu")
    assert padded(sources, 9, device).tolist() == [[5, 6, 3], [3, 9, 9]]
    assert token_mask(sources, device).tolist() == [[True] * 3, [True, False, False]]
