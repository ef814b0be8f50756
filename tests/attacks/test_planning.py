"""Texts, markup and glossaries whose preparation stops the worker (SECURITY 1, 14, 15; ATTACKS 3, 10)."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.attacks.target import Target, measure, running

pytestmark = pytest.mark.attack


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with running(MT_CACHE_CHARACTERS="0") as found:
        yield found


GLOSSARIES = {
    "first token shared": {f"a {number}": "b" for number in range(1000)},
    "long prefixes": {"a " * 50 + str(number): "b" for number in range(1000)},
    "nested": {"a " * number + "a": "b" for number in range(1, 200)},
}
TEXTS = {
    "sentences": "The dog sees the house. " * 4000,
    "no sentence ends": "the dog sees the house and " * 3600,
    "no spaces": "a" * 98_000,
    "Han without spaces": "中" * 98_000,
    "unknown script": "ܐܒܓ " * 24_000,
    "headlines": "I GO. " * 16_000,
    "spans": "a-1" * 32_000,
    "brackets": "([{" * 32_000,
    "quotes": "\"'“" * 32_000,
}
MARKUP = {
    "512 bold": "<b>" * 512 + "x",
    "paragraphs": "<p>" * 32_000,
    "open brackets": "<" * 98_000,
    "cdata": "<![CDATA[>" * 9_800,
    "entities": "&" * 98_000,
    "attributes": "<p " + "a " * 49_000 + ">x",
}
ATTACKS: dict[str, dict[str, Any]] = {
    f"{name}, {words} words": {"q": "a " * words, "glossary": glossary, "timeout_ms": 20_000}
    for name, glossary in GLOSSARIES.items()
    for words in (1000, 20_000)
}
ATTACKS |= {name: {"q": text} for name, text in TEXTS.items()}
ATTACKS |= {name: {"q": [text] * 6, "format": "html"} for name, text in MARKUP.items()}


@pytest.mark.parametrize("fields", ATTACKS.values(), ids=ATTACKS)
def test_preparation_harms_nobody(target: Target, fields: dict[str, Any]) -> None:
    answers = []
    impact = measure(
        target, lambda: answers.append(target.translate(**{"timeout_ms": 10_000, "timeout": 120, **fields}))
    )
    print(impact, answers[0].status, f"{answers[0].seconds:.1f} s")
    assert impact.problems() == []
    assert answers[0].status in (200, 400, 413, 504)
