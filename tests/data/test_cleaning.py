import random
from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mt.data import cleaning
from mt.data.cleaning import Cleaner
from mt.data.corpus import SentencePair
from mt.data.variants import with_variants
from mt.data_config import CleaningConfig


def is_lopsided(source: str, target: str) -> bool:
    return cleaning.is_lopsided(source, target, 3.0)


@pytest.mark.parametrize(
    ("drops", "expected", "pairs"),
    [
        (cleaning.is_empty, True, ["A dog.| ", "A dog.|@@", "—|—"]),
        (cleaning.is_empty, False, ["A dog.|Ein Hund.", "7|七"]),
        # 41 > 3 * 10 + 10, 50 > 3 * 12 + 10: a Chinese character counts as three
        (is_lopsided, True, ["x" * 10 + "|" + "x" * 41, "x" * 50 + "|" + "学" * 4, "x" * 10 + "|" + "学" * 14]),
        (is_lopsided, False, ["x" * 10 + "|" + "x" * 40, "x" * 50 + "|" + "学" * 6, "x" * 10 + "|" + "学" * 13]),
        (is_lopsided, False, ["Thanks.|Vielen herzlichen Dank!"]),
        (cleaning.is_identical, True, ["This was not translated.| this  was NOT translated.", "未经翻译|未经翻译"]),
        (cleaning.is_identical, False, ["This was translated here.|Dies wurde hier übersetzt."]),
        (cleaning.is_identical, False, ["Azure Cosmos DB|Azure Cosmos DB"]),
        (
            cleaning.differs_in_digits,
            True,
            ["S.C. 1991|L.C. 2000", "1991 and 1992|1991 und 1993", "lot 5 626 190|lot 5 788 504", "in 2020|سنة ٢٠٢١"],
        ),
        (
            cleaning.differs_in_digits,
            False,
            [
                *("in 1991|im Jahr neunzehnhunderteinundneunzig", "in 1991 and 1992|1991 und im Jahr darauf"),
                *("$1,234,567.50|1.234.567,50 $", "1 234 567|1234567", "12/9/2015|09.12.2015", "10,000 yen|1万日元"),
                *("at 7:30 pm|um 19.30 Uhr", "the 1950s|die 50er Jahre", "90 miles|140 Kilometer"),
                *("in 2020|在２０２０年", "in 2020|سنة ٢٠٢٠"),
            ],
        ),
    ],
)
def test_pairs_that_a_filter_drops(drops: Callable[[str, str], bool], expected: bool, pairs: list[str]) -> None:
    for source, target in (pair.split("|") for pair in pairs):
        assert drops(source, target) is drops(target, source) is expected, source


@pytest.mark.parametrize(
    ("text", "words"),
    [("", 0), ("A dog.", 2), ("  a   b ", 2), ("你好。", 3), ("用 SQL 吧", 3), ("カタカナ", 4), ("안녕 하세요", 2)],
)
def test_words_are_counted_with_and_without_spaces(text: str, words: int) -> None:
    assert cleaning.has_more_words(text, "", words - 1)
    assert not cleaning.has_more_words("", text, words)


@example([*"好们你我"] * 3, 2)
@example([*"好们你我他"] * 2, 1)
@given(st.lists(st.sampled_from("好们你"), max_size=30), st.integers(1, 4))
def test_repetition_finds_what_a_search_by_slices_finds(words: list[str], most: int) -> None:
    plain = any(
        words[start : start + size] * (most + 1) == words[start : start + size * (most + 1)] != []
        for size in range(1, 5)
        for start in range(len(words))
        if start + size * (most + 1) <= len(words)
    )
    for space in ("", " "):
        text = space.join(words)
        assert cleaning.is_repetitive(text, "a sentence", most) is plain
        assert cleaning.is_repetitive("a sentence", text, most) is plain


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        *(("zh", "This whole sentence was never translated.", True), ("zh", "Azure Active Directory B2C 应用", False)),
        ("zh-CN", "LINQ to XML 与 DOM (C#)", False),
        ("zh", "Windows Server", False),  # a name
        ("zh", "1 2 3 4 5 6", False),  # no letters
        *(("ja", "これは日本語の文です", False), ("de", "Это предложение написано по-русски.", True)),
        *(("de", "Ein Satz über das Wort правда.", False), ("ru", "Это предложение по-русски.", False)),
        *(("ru", "Dieser Satz ist nicht russisch.", True), ("ar", "هذه جملة باللغة العربية", False)),
        *(("hi", "यह एक हिन्दी वाक्य है", False), ("ko", "이것은 한국어 문장 입니다", False)),
        *(("he", "זה משפט בעברית שלנו", False), ("el", "Αυτή είναι μια πρόταση", False)),
        *(("th", "นี่คือประโยคภาษาไทย", False), ("sr", "Ovo je rečenica latinicom", False)),
        *(("sr-Cyrl", "Ovo je rečenica latinicom", True), ("zh-Hant", "這是一個中文句子", False)),
        ("zt", "This whole sentence was never translated.", True),
    ],
)
def test_is_in_another_script(language: str, text: str, expected: bool) -> None:
    letters = cleaning.script_letters(language)
    assert letters is not None
    assert cleaning.is_in_another_script(text, letters, 0.1) is expected


def test_a_language_we_do_not_know_is_not_checked() -> None:
    assert cleaning.script_letters("tlh") is None
    assert Cleaner(CleaningConfig(), ("en", "tlh")).reason("What do you want?", "Это по-русски.") is None


@pytest.mark.parametrize(
    ("source", "target", "languages", "expected"),
    [
        *((*row, ("en", "de"), True) for row in (("en", "de"), ("source", "target"), (" Source text", "TRG"))),
        ("English", "Portuguese (Brazil)", ("en", "pt-BR"), True),
        ("eng_text", "text_pt-BR", ("en", "pt-BR"), True),
        *((*row, ("en", "de"), False) for row in (("de", "en"), ("English", "Englisch"), ("", ""))),
        ("The source.", "target", ("en", "de"), False),
    ],
)
def test_names_of_columns_are_a_header(source: str, target: str, languages: tuple[str, str], expected: bool) -> None:
    first, second = (SentencePair(source, target, line, "f") for line in (1, 2))
    assert cleaning.is_header(first, languages) is expected
    assert not cleaning.is_header(second, languages)
    assert (Cleaner(CleaningConfig(), languages).check(first) == "header row") is expected


REASONS = [
    ("A dog.", "", "empty"),
    ("word " * 251, "Wort " * 251, "too long"),
    ("x" * 2001, "y" * 2001, "too long"),
    ("A dog.", "Ein Hund, der schon lange vor dem Haus auf uns wartet.", "length ratio"),
    ("This was not translated.", "This was not translated.", "identical"),
    ("the act of 1991", "das Gesetz von 2000", "digits differ"),
    ("ha ha ha ha ha ha", "ha ha ha", "repetition"),
    ("This is not in German.", "Это не по-немецки, увы.", "wrong script"),
    ("A dog.", "Ein Hund.", None),
    ("A dog.", "Ein Hund. ", "duplicate"),
    ("A dog.", "Ein Köter.", None),
]


def test_reasons_are_counted_and_filters_switched_off() -> None:
    cleaner = Cleaner(CleaningConfig(), ("en", "de"))
    pairs = [SentencePair(source, target, line, "f") for line, (source, target, _) in enumerate(REASONS, start=1)]
    kept = [pair for pair in pairs if cleaner.check(pair) is None]
    assert [pair.line for pair in kept] == [9, 11]
    expected = [reason for _, _, reason in REASONS if reason]
    assert cleaner.counts == {reason: expected.count(reason) for reason in expected}
    report = {dropped.reason: dropped for dropped in cleaner.report()}
    assert report["identical"].examples == ("f:5: This was not translated. ||| This was not translated.",)
    assert cleaner.report()[0].reason == "too long"
    options = CleaningConfig(
        max_words=0, max_characters=0, max_length_ratio=0, drop_identical=False, match_digits=False,
        max_repetition=0, min_script_share=0, deduplicate=False,
    )  # fmt: skip
    cleaner = Cleaner(options, ("en", "de"))
    assert [cleaner.reason(source, target) for source, target, _ in REASONS] == ["empty", *[None] * (len(REASONS) - 1)]


def variants(source: str, target: str, share: float = 1.0) -> list[tuple[str, str]]:
    pairs = with_variants(SentencePair(source, target, 7, "a.tsv"), share)
    return [(pair.source, pair.target) for pair in pairs]


@pytest.mark.parametrize(
    ("source", "target", "variant"),
    [
        ("Where is the station?", "Wo ist der Bahnhof?", ("where is the station", "Wo ist der Bahnhof")),
        ("Yes, please!", "Oui, s'il vous plaît !", ("yes, please", "Oui, s'il vous plaît")),
        ("Be quiet...", "Sei still.", ("Be quiet", "Sei still")),
        ("Run!", "Lauf!", ("RUN!", "LAUF!")),
        ('"Go," he said.', "„Geh“, sagte er.", ('"go," he said', "„Geh“, sagte er")),
        ("OK", "Gut.", None),
        ("...", "…", None),
        ("", "Nur Text.", None),
    ],
)
def test_the_variant_of_a_pair(source: str, target: str, variant: tuple[str, str] | None) -> None:
    assert variants(source, target) == [(source, target), *([variant] if variant else [])]
    assert variants(source, target, 0.0) == [(source, target)]


def test_the_share_of_pairs_and_of_each_kind() -> None:
    draw = random.Random(3)
    lower = bare = capitals = 0
    for _ in range(4000):
        text = "The " + "".join(draw.choices("abcdef", k=9)) + "."
        for source, target in variants(text, text, 0.5)[1:]:
            lower += source.islower() and target == text[:-1]
            bare += source == text[:-1] and target == text[:-1]
            capitals += source == text.upper() and target == text.upper()
    assert abs(lower - 1000) < 120 and abs(bare - 500) < 90 and abs(capitals - 500) < 90
