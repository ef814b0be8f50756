"""Items that translations preserve, with a small model whose translations of these texts are wrong in most words."""

import re
from collections import Counter

from hypothesis import example, given, settings
from hypothesis import strategies as st

from mt import Translator
from scripts.attack.text_integrity.measure import item_cases, judge, sentence_cases
from tests.conftest import FROZEN

FIELDS = "{0} {name} {{x}} {{ y }} ${a} %{b} %s %1$s %d %-5.2f %(n)s %@ %% $t(key) [[Page]]".split(" ")
FIELD = re.compile(r"\{\{ ?\w ?\}\}|[$%]?\{\w+\}|%%|%(?:1\$|\(n\)|-5\.2)?[sdf@]|\$t\(key\)|\[\[Page\]\]")
SIGNS = list("#.,:;!?()[]<>«»“”–…/*+=@€№ ")
TRANSLATOR = Translator.load(FROZEN, "cpu", threads=1)


def test_translations_preserve_items() -> None:
    """All cases: python -m scripts.attack.text_integrity.measure MODEL."""
    cases = [*item_cases(), *sentence_cases()][::10]
    translations = TRANSLATOR.translate_many([case.text for case in cases])
    judgements = map(judge, cases, [translation.text for translation in translations])
    counts = sum(judgements, Counter[str]())
    assert counts["preserved"] + counts["localized"] >= 0.95 * sum(counts.values())


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([*FIELDS, *SIGNS, "dog", "The dog sees", "two", "Open", "here"]), min_size=2, max_size=8)
)
@example(["dog", "{0}", "#"])
@example(["dog", "–", "%@"])
@example(["dog", "{name}", "%@"])
@example(["%%", "sees"])
@example(["<", "${a}", "two"])
@example(["Do not delete", " ", "%%", "."])
@example(["dog", "$t(key)"])
@example(["The dog sees", " ", "[[Page]]", "%%", "."])
def test_translations_have_the_placeholders_of_their_source(parts: list[str]) -> None:
    """Each as often, and no others, whatever is beside them."""
    text = "".join(parts)
    translation = TRANSLATOR.translate(text).text
    assert Counter(FIELD.findall(translation)) == Counter(FIELD.findall(text)), translation
