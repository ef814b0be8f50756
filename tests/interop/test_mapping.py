"""Every weight is placed exactly once, or an error names it."""

import torch

from mt.interop.mapping import Row, find_misplaced, rename_weights

TABLE = (Row(("q", "k"), ("qk",)), Row(("embedding",), ("input", "output")))


def test_sources_are_joined_and_targets_tied() -> None:
    weights = {"q": torch.ones(1, 2), "k": torch.zeros(2, 2), "embedding": torch.full((1, 2), 5.0)}
    placed = rename_weights(TABLE, weights)
    assert placed.keys() == {"qk", "input", "output"}
    assert placed["qk"].tolist() == [[1, 1], [0, 0], [0, 0]]
    assert placed["input"] is placed["output"] is weights["embedding"]
    assert list(find_misplaced(TABLE, weights, placed)) == []


def test_all_that_has_no_place_is_named() -> None:
    table = (*TABLE, Row(("q",), ("qk",)), Row(("gone",), ("nowhere",)))
    assert sorted(find_misplaced(table, ("q", "k", "embedding", "extra"), ("qk", "input", "output", "empty"))) == [
        "empty of the target model gets no weight",
        "extra of the source model has no counterpart",
        "gone is missing in the source model",
        "nowhere is missing in the target model",
        "q of the source model is used 2 times",
        "qk of the target model is set 2 times",
    ]
