"""Every weight is placed exactly once, or an error names it."""

from mt.interop.mapping import Row, find_misplaced

TABLE = (Row(("q", "k"), ("qk",)), Row(("embedding",), ("input", "output")))


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
