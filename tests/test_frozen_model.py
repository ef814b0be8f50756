"""A saved model of an earlier day must load, and translate as it did: who breaks that breaks every user's models."""

from pathlib import Path

import pytest

from mt import Translator

FROZEN = Path(__file__).resolve().parent / "frozen"


@pytest.fixture(scope="module")
def lines() -> list[tuple[str, str]]:
    text = (FROZEN / "lines.tsv").read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.removesuffix("\n").split("\n")]
    return [(source, expected) for source, expected in rows]


def test_it_translates_as_it_did(lines: list[tuple[str, str]]) -> None:
    assert len(lines) == 10
    translator = Translator.load(FROZEN / "model", device="cpu")
    translations = translator.translate_many([source for source, _ in lines])
    assert [translation.text for translation in translations] == [expected for _, expected in lines]
