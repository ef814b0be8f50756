"""Items that translations preserve, with a small model whose translations of these texts are wrong in most words."""

from collections import Counter
from pathlib import Path

from mt import Translator
from tests.text.integrity.measure import item_cases, judge, sentence_cases

FROZEN = Path(__file__).resolve().parents[2] / "frozen" / "model"


def test_translations_preserve_items() -> None:
    """All cases: python -m tests.text.integrity.measure MODEL."""
    cases = [*item_cases(), *sentence_cases()][::10]
    translations = Translator.load(FROZEN, "cpu").translate_many([case.text for case in cases])
    counts = sum((judge(case, each.text) for case, each in zip(cases, translations, strict=True)), Counter[str]())
    assert counts["preserved"] >= 0.95 * sum(counts.values())
