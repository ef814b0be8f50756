"""Fuzzy matches: similarity, and the repair of a matched translation."""

import re

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mt.text.alignment import PieceAttention, UnitLinks
from mt.text.fuzzy_match import adaptable, distance, repair, similarity, words

ITEMS = st.lists(st.sampled_from("abcd"), max_size=12)


def plain_distance(left: list[str], right: list[str]) -> int:
    """Levenshtein distance by the table of all prefixes."""
    row = list(range(len(right) + 1))
    for i, one in enumerate(left, 1):
        last, row[0] = row[0], i
        for j, other in enumerate(right, 1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (one != other))
    return row[-1]


@given(ITEMS, ITEMS)
def test_the_distance_is_levenshteins(left: list[str], right: list[str]) -> None:
    assert distance(left, right) == plain_distance(left, right)


def test_similarity_counts_words_and_punctuation() -> None:
    assert words("The dog's 2 bones, 狗在。") == ["The", "dog", "'", "s", "2", "bones", ",", "狗", "在", "。"]
    assert similarity(words("A red dog sleeps."), words("A big dog sleeps.")) == pytest.approx(0.8)
    assert similarity([], []) == similarity(["a"], ["a"]) == 1.0
    assert similarity([], ["a"]) == 0.0


@pytest.mark.parametrize(
    ("language", "match", "sentence", "expected"),
    [
        ("en", "The server stores the data in a file.", "The server stores the data in a list.", True),
        ("en", "See page 12 of the manual.", "See page 17 of the manual.", True),
        ("zh", "狗在睡觉。", "猫在睡觉。", True),
        # inserted, removed
        ("en", "The supplier must deliver.", "The supplier must not deliver.", False),
        ("en", "She doesn't deliver today.", "She does deliver today.", False),
        ("ja", "明日行きます。", "明日行きません。", False),
        ("en", "Save the file", "Save the file.", False),
        # negation
        ("de-AT", "Er sieht eine Katze.", "Er sieht keine Katze.", False),
        ("zh", "他很高。", "他不高。", False),
        # number words, also against numbers
        ("en", "Pay within two weeks.", "Pay within four weeks.", False),
        ("fr", "Il a deux enfants.", "Il a trois enfants.", False),
        ("en", "He has two children.", "He has 12 children.", False),
        ("en", "He has big dogs.", "He has 12 dogs.", False),
        # prepositions, pronouns
        ("en", "Switch it on before cleaning.", "Switch it on after cleaning.", False),
        ("no", "Han kommer uten bil.", "Han kommer med bil.", False),
        ("en", "You see it.", "You see it?", False),
        ("xx", "Alba beta.", "Alba gama.", True),  # without a profile, the words that replace one another are unknown
    ],
)
def test_what_is_adaptable(language: str, match: str, sentence: str, expected: bool) -> None:
    assert adaptable(match, sentence, language) is expected
    assert adaptable(sentence, match, language) is expected


def links(source: str, target: str, order: str) -> UnitLinks:
    """Links by word: character n of `order` is the number of the source word that target word n translates."""
    lefts, rights = source.split(), target.split()
    left, right = ([sum(len(word) + 1 for word in side[:n]) for n in range(len(side))] for side in (lefts, rights))
    weights = np.zeros((len(rights), len(lefts)))
    for number, word in enumerate(order):
        weights[number, int(word)] = 1.0
    return UnitLinks(source, target, PieceAttention(left, right, weights))


SELLING = ("The selling process runs", "Der Verkauf geht", "013")
SHORT, LONG = ("The dog sleeps", "Der Hund schläft", "012"), ("The red dog sleeps", "Der rote Hund ruht", "0123")
LETTERS = ("a y c d e f", "A Y C D E F", "012345")


@pytest.mark.parametrize(
    ("match", "plain", "repaired"),
    [
        (("The matching process runs", "Der Abgleich läuft heute", "0133"), SELLING, "Der Verkauf läuft heute"),
        (("Page 12 of 20", "Seite 12 von 20", "0000"), ("Page 13 of 20", "Page 13 of 20", "0000"), "Seite 13 von 20"),
        (SHORT, LONG, "Der rote Hund schläft"),  # an inserted word takes a neighbour along
        (LONG, SHORT, "Der Hund ruht"),
        (("a x c d e f", "A C D E F A", "023450"), LETTERS, "A Y C D E F A"),  # with the word after it
        (("a x c d e f g h", "X A E F G H C X", "10456721"), ("a y c d e f g h", "A Y C D E F G H", "01234567"), None),
        (("a x b", "A X", "01"), ("c d e", "", ""), None),
        (LETTERS, LETTERS, "A Y C D E F"),
    ],
)  # fmt: skip
def test_repair(match: tuple[str, str, str], plain: tuple[str, str, str], repaired: str | None) -> None:
    assert repair(links(*match), links(*plain)) == repaired


TEXTS = st.lists(st.sampled_from(["ab", "cd", "ef", ",", "-"]), min_size=1, max_size=5)
SEPARATORS = st.lists(st.sampled_from(["", " "]), min_size=5, max_size=5)
ORDERS = st.lists(st.integers(0, 4), min_size=5, max_size=5)
Side = tuple[list[str], list[str], list[str], list[int]]


@settings(max_examples=300)
@given(st.tuples(TEXTS, TEXTS, SEPARATORS, ORDERS), st.tuples(TEXTS, TEXTS, SEPARATORS, ORDERS))
@example(
    (["ef", ",", "ab"], ["-", "cd"], [""] * 2, [1, 2]), ([",", ",", "-"], ["cd", "ab", ","], [" ", " ", ""], [0, 1, 2])
)
def test_a_repair_joins_no_words(match: Side, plain: Side) -> None:
    """Each word of a repaired target is a word of the match's target or of the model's translation."""
    sides = []
    for source, target, separators, order in (match, plain):
        text = "".join(word + gap for word, gap in zip(target, separators, strict=False)).upper().rstrip()
        begins = [word.start() for word in re.finditer(r"\w+|[,-]", text)]
        weights = np.eye(len(source))[[place % len(source) for place in order[: len(begins)]]]
        lefts = [sum(len(word) + 1 for word in source[:number]) for number in range(len(source))]
        sides.append(UnitLinks(" ".join(source), text, PieceAttention(lefts, begins, weights)))
    repaired = repair(*sides)
    assert repaired is None or {*words(repaired)} <= {*words(sides[0].target), *words(sides[1].target)}
