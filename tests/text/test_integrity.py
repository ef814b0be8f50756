"""Items that translations preserve, with a small model whose translations of these texts are wrong in most words."""

from collections import Counter

from mt import Translator
from scripts.attack.text_integrity.measure import item_cases, judge, sentence_cases
from tests.conftest import FROZEN


def test_translations_preserve_items() -> None:
    """All cases: python -m scripts.attack.text_integrity.measure MODEL."""
    cases = [*item_cases(), *sentence_cases()][::10]
    translations = Translator.load(FROZEN, "cpu").translate_many([case.text for case in cases])
    judgements = map(judge, cases, [translation.text for translation in translations])
    counts = sum(judgements, Counter[str]())
    assert counts["preserved"] + counts["localized"] >= 0.95 * sum(counts.values())
