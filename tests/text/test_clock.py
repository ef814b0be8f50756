"""Texts such as `5 minutes ago`, which are translated without a model."""

import pytest

from mt.text.clock import relative_time


@pytest.mark.parametrize(
    ("direction", "text", "expected"),
    [
        ("en-de", "5 days ago", "vor 5 Tagen"),
        ("de-fr", "Vor 1 Jahr.", "Il y a 1 an."),
        ("fr-en", "dans 2 mois", "in 2 months"),
        ("en-de", "5 dogs ago", None),
        ("de-en", "vor fünf Tagen", None),
        ("en-it", "5 days ago", None),
    ],
)
def test_times_from_now(direction: str, text: str, expected: str | None) -> None:
    source, target = direction.split("-")
    assert relative_time(text, (source, target)) == expected
