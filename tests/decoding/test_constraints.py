import pytest
import torch

from mt.decoding.constraints import Constraints
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.prefixes import check_prefixes
from mt.errors import RequestError

CPU = torch.device("cpu")


def test_only_what_is_used_is_done() -> None:
    plain, careful = SearchOptions(), SearchOptions(min_length=3, no_repeat_ngram=2)
    constraints = Constraints.start([5], [plain], [[]], CPU)
    assert not (constraints.features.minimum or constraints.features.prefix or constraints.features.history)
    constraints.extend(Constraints.start([5], [careful], [[4]], CPU))
    features = constraints.features
    assert (features.minimum, features.prefix, features.ngram) == (True, True, 2)
    constraints.select(torch.tensor([0]))
    assert not (constraints.features.minimum or constraints.features.prefix or constraints.features.history)


def test_every_prefix_that_cannot_be_used_is_named() -> None:
    options = [SearchOptions(), SearchOptions(max_length=2), SearchOptions()]
    with pytest.raises(RequestError) as caught:
        check_prefixes([[5, 3], [5, 5], [5]], options, SpecialIds())
    message = str(caught.value)
    assert "sentence 0" in message and "[3]" in message
    assert "sentence 1" in message and "fewer than max_length, 2" in message
    assert "sentence 2" not in message
