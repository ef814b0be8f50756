import pytest
import torch

from mt.decoding.constraints import Constraints
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.prefixes import check_prefixes
from mt.errors import RequestError

CPU = torch.device("cpu")
NEVER = torch.tensor([0, 1, 2])


def allowed(log_probs: torch.Tensor) -> list[list[int]]:
    return [row.isfinite().nonzero().flatten().tolist() for row in log_probs]


def test_a_forced_prefix_leaves_one_token_with_log_probability_0() -> None:
    options = [SearchOptions()] * 3
    constraints = Constraints.start([5, 5, 5], options, [[4, 1], [], [5]], CPU)
    scores = torch.arange(-14.0, -7.0).expand(6, 7)
    steps = torch.tensor([1, 1, 1])
    out = constraints.apply(scores.clone(), NEVER, steps, torch.zeros(3, 2, 0, dtype=torch.int64))
    assert allowed(out) == [[1], [1], [3, 4, 5, 6], [3, 4, 5, 6], [3, 4, 5, 6], [3, 4, 5, 6]]
    assert out[0, 1] == 0  # an unknown token that is forced is no longer forbidden


def test_only_what_is_used_is_done() -> None:
    plain, careful = SearchOptions(), SearchOptions(min_length=3, no_repeat_ngram=2)
    constraints = Constraints.start([5], [plain], [[]], CPU)
    assert not (constraints.features.minimum or constraints.features.prefix or constraints.features.history)
    constraints.extend(Constraints.start([5], [careful], [[4]], CPU))
    features = constraints.features
    assert (features.minimum, features.prefix, features.ngram) == (True, True, 2)
    constraints.select(torch.tensor([0]))
    assert not (constraints.features.minimum or constraints.features.prefix or constraints.features.history)


@pytest.mark.parametrize(
    ("options", "prefix", "first_end", "last"),
    [
        (SearchOptions(), [], 0, 19),
        (SearchOptions(min_length=3), [], 2, 19),  # three tokens with EOS: EOS is the third
        (SearchOptions(min_length=3), [4, 4, 4, 4], 4, 19),
        (SearchOptions(min_length=4, max_length=4), [], 3, 3),
    ],
)
def test_when_a_sentence_may_and_must_end(options: SearchOptions, prefix: list[int], first_end: int, last: int) -> None:
    constraints = Constraints.start([5], [options], [prefix], CPU)
    assert (constraints.first_end.item(), constraints.last.item()) == (first_end, last)
    for step in range(last + 1):
        scores = torch.zeros(1, 2)
        constraints.forbid_early_ends(scores, torch.tensor([step]))
        assert scores.isfinite().all().item() == (step >= first_end)


def test_every_prefix_that_cannot_be_used_is_named() -> None:
    options = [SearchOptions(), SearchOptions(max_length=2), SearchOptions()]
    with pytest.raises(RequestError) as caught:
        check_prefixes([[5, 3], [5, 5], [5]], options, SpecialIds())
    message = str(caught.value)
    assert "sentence 0" in message and "[3]" in message
    assert "sentence 1" in message and "fewer than max_length, 2" in message
    assert "sentence 2" not in message
