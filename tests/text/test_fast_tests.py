"""Fast tests in front of rules never change a result: what they pass over, the slow rule leaves alone, too."""

import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mt.text import abbreviations, clauses, mending, names, negation, repetition, typography
from mt.text.alignment import PieceAttention
from mt.text.markup import strings
from mt.text.word_tables import read_tables

_SIGNS = [
    *"<>{}[]*@#&`~-:|%/'^$_(",
    "---\n",
    "```\n",
    "{%",
    "{a, plural, other {b}}",
    "&lt;b&gt;",
    "<b>",
    "</b>",
    "x",
    " ",
    "END",
]


class Always:
    """Pattern that is always found."""

    def search(self, text: str) -> bool:
        return True


@given(st.lists(st.sampled_from(_SIGNS), max_size=12).map("".join))
@example("---\ntitle: x\n---\n")
def test_text_without_signs_has_no_tags(text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        fast = strings.find_tags(text)
        patch.setattr(strings, "_MAY_BE_CODE", Always())
        assert strings.find_tags(text) == fast


_ENDS = st.lists(st.sampled_from([*'aZ1,.;:!?-–„“"«»()[ ', "ab", ". ", ", "]), max_size=6).map("".join)


@given(_ENDS, _ENDS, st.sampled_from(["de", "en", "fr"]))
@example("Go!", "Geh.", "de")
@example("Go,", "Geh.", "de")
@example("Go.", "Geh - los.", "de")
def test_text_without_marks_is_not_mended(source: str, translation: str, language: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        fast = typography.mend_marks(source, translation, language)
        patch.setattr(typography, "_MENDABLE", Always())
        assert typography.mend_marks(source, translation, language) == fast


@pytest.mark.parametrize("language", ["de", "en", "fr"])
def test_abbreviations_by_first_letter(language: str) -> None:
    names = [
        name for table in read_tables("abbreviations.toml")[language].values() for name in table if "." not in name
    ]
    slow = re.compile(rf"(?<!\w)(?:{'|'.join(map(abbreviations._spelling, names))})")
    fast = re.compile(abbreviations._by_first_letter(names))
    forms = {form for name in names for form in (name, name.upper(), name.lower(), name[0].upper() + name[1:])}
    for text in (
        f"{before}{form}{after}" for form in forms for before in ("", "a", " ", "-") for after in ("", "a", "/", ".")
    ):
        assert (match := fast.search(text)) == (other := slow.search(text)) or (match and other), text


@given(
    st.lists(
        st.sampled_from(
            "must MUST muſt not never has have had needs needn't to dois devons faut ne pas doit-il".split()
        )
    )
)
@pytest.mark.parametrize("language", ["en", "fr"])
def test_hints_of_duties(language: str, words: list[str]) -> None:
    text = " ".join(words)
    if negation._DUTIES[language].search(text):
        assert any(map(text.casefold().__contains__, negation._DUTY_HINTS[language]))


@given(st.lists(st.sampled_from([0.0, 0.001, 0.05, 0.09, 0.0999, 0.1, 0.3, 0.9]), min_size=1, max_size=8))
def test_words_without_a_large_deficit_are_not_omitted(peaks: list[float]) -> None:
    source = " ".join("abcdefghij" for _ in peaks)
    attention = PieceAttention([11 * n for n in range(len(peaks))], [0], np.array([peaks], np.float32))
    with pytest.MonkeyPatch.context() as patch:
        fast = repetition.omitted_words(source, attention)
        patch.setattr(repetition, "ROUNDING", -np.inf)
        assert repetition.omitted_words(source, attention) == fast


@pytest.mark.parametrize("language", ["de", "en", "fr"])
@given(st.data())
def test_hints_of_phrases_to_mend(language: str, data: st.DataObject) -> None:
    hint, rows = mending._rows(language)
    assert hint
    for cause, _, _ in rows:
        assert hint.search(text := data.draw(st.from_regex(cause))), text


@given(st.lists(st.sampled_from("ab."), max_size=12), st.lists(st.sampled_from("abc."), max_size=24))
@example([], [*"abcabcabc"])
@example([], [*"aaaa"])
@example([], [*"abcababcabaabcabbabca"])
def test_pieces_that_cannot_repeat_are_not_repetitive(source: list[str], target: list[str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        fast = repetition.is_repetitive(source, target)
        patch.setattr(repetition, "may_repeat", lambda pieces: True)
        assert repetition.is_repetitive(source, target) == fast


@given(_ENDS, st.sampled_from(["de", "en", "fr", "zh"]))
@example("你好，世界", "zh")
@example("Go… now and go", "en")
def test_text_without_marks_within_has_no_clauses(text: str, language: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        fast = clauses.clause_ranges(text, language)
        patch.setattr(clauses, "_MARK", Always())
        assert clauses.clause_ranges(text, language) == fast


@pytest.mark.parametrize("source", ["Müller e. K. kam", "Weiß e.K. kam", "die Weiß & Sohn OHG", "by Example Inc."])
def test_company_names_have_a_hint(source: str) -> None:
    assert names._NEXT_CAPITAL.search(source)
    assert names.lost_names(source, "")
