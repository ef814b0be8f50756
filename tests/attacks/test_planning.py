"""Texts and glossaries whose preparation stops the worker (SECURITY 1, 14, 15; ATTACKS 3, 10)."""

from collections.abc import Iterator

import pytest

from scripts.attack.target import Target, measure, running

pytestmark = pytest.mark.attack


@pytest.fixture(scope="module")
def target() -> Iterator[Target]:
    with running(MT_CACHE_CHARACTERS="0") as found:
        yield found


GLOSSARIES = {
    "first token shared": ({f"a {number}": "b" for number in range(1000)}, "a "),
    "long prefixes": ({"a " * 50 + str(number): "b" for number in range(1000)}, "a "),
    "nested": ({"a " * number + "a": "b" for number in range(1, 200)}, "a "),
}


@pytest.mark.parametrize(("glossary", "word"), GLOSSARIES.values(), ids=GLOSSARIES.keys())
@pytest.mark.parametrize("words", [1000, 20_000])
def test_glossaries_harm_nobody(target: Target, glossary: dict[str, str], word: str, words: int) -> None:
    answers = []
    impact = measure(
        target, lambda: answers.append(target.translate(word * words, glossary=glossary, timeout_ms=20_000))
    )
    print(impact, answers[0].status, f"{answers[0].seconds:.1f} s")
    assert impact.problems() == []
    assert answers[0].status in (200, 400, 413, 504)


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


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())
def test_long_texts_harm_nobody(target: Target, text: str) -> None:
    answers = []
    impact = measure(target, lambda: answers.append(target.translate(text, timeout_ms=10_000, timeout=120)))
    print(impact, answers[0].status, f"{answers[0].seconds:.1f} s")
    assert impact.problems() == []
    assert answers[0].status in (200, 400, 413, 504)


MARKUP = {
    "512 bold": "<b>" * 512 + "x",
    "paragraphs": "<p>" * 32_000,
    "open brackets": "<" * 98_000,
    "cdata": "<![CDATA[>" * 9_800,
    "entities": "&" * 98_000,
    "attributes": "<p " + "a " * 49_000 + ">x",
}


@pytest.mark.parametrize("text", MARKUP.values(), ids=MARKUP.keys())
def test_markup_harms_nobody(target: Target, text: str) -> None:
    answers = []
    impact = measure(
        target, lambda: answers.append(target.translate([text] * 6, format="html", timeout_ms=10_000, timeout=120))
    )
    print(impact, answers[0].status, f"{answers[0].seconds:.1f} s")
    assert impact.problems() == []
    assert answers[0].status in (200, 400, 413, 504)
