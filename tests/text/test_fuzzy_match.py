"""Fuzzy matches: similarity, and the repair of a matched translation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.text import fuzzy_match
from mt.text.alignment import PieceAttention, UnitLinks
from mt.text.fuzzy_match import _without_repetition, distance, repair, similarity, words

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


def links(source: str, target: str, order: str) -> UnitLinks:
    """Links by word: character n of `order` is the number of the source word that target word n translates."""
    lefts, rights = source.split(), target.split()
    left, right = ([sum(len(word) + 1 for word in side[:n]) for n in range(len(side))] for side in (lefts, rights))
    weights = np.zeros((len(rights), len(lefts)))
    for number, word in enumerate(order):
        weights[number, int(word)] = 1.0
    return UnitLinks(source, target, PieceAttention(left, right, weights))


def test_the_differing_word_is_replaced() -> None:
    match = links("The matching process runs", "Der Abgleich läuft heute", "0133")
    plain = links("The selling process runs", "Der Verkauf geht", "013")
    assert repair(match, plain) == "Der Verkauf läuft heute"


def test_a_number_is_replaced_without_links() -> None:
    match = links("Page 12 of 20", "Seite 12 von 20", "0000")
    plain = links("Page 13 of 20", "Page 13 of 20", "0000")
    assert repair(match, plain) == "Seite 13 von 20"


def test_an_inserted_and_a_deleted_word_take_a_neighbour_along() -> None:
    short = links("The dog sleeps", "Der Hund schläft", "012")
    long = links("The red dog sleeps", "Der rote Hund ruht", "0123")
    assert repair(short, long) == "Der rote Hund schläft"
    assert repair(long, short) == "Der Hund ruht"


def test_a_replacement_repeats_no_word_of_the_text_around_it() -> None:
    assert _without_repetition("den Bericht zu ", "zu speichern", ".") == "speichern"
    assert _without_repetition("", "die neue", " neue Seite") == "die"
    assert _without_repetition("zu ", "zu", " zu") == "zu"


def test_there_is_no_repair_without_links_or_with_crossing_words() -> None:
    plain = links("a y c d e f", "A Y C D E F", "012345")
    assert repair(links("a x c d e f", "A C D E F A", "023450"), plain) == "A Y C D E F A"  # with the word after it
    scattered = links("a x c d e f g h", "X A E F G H C X", "10456721")
    assert repair(scattered, links("a y c d e f g h", "A Y C D E F G H", "01234567")) is None
    assert repair(links("a x b", "A X", "01"), links("c d e", "", "")) is None
    assert repair(plain, plain) == "A Y C D E F"


@pytest.mark.parametrize(
    ("before", "after", "join"),
    [
        ("Schließen", "Knöpfe", True),
        ("Auf ", "Knöpfe", False),
        ("Seite 1", "2", True),
        ("Auf,", "a", False),
        ("中", "文", False),
    ],
)
def test_texts_whose_words_would_join(before: str, after: str, join: bool) -> None:
    assert fuzzy_match._join(before, after) == join


def test_a_repair_that_repeats_words_is_refused() -> None:
    match = links("Check the name of users", "Namen der Benutzer prüfen", "2340")
    plain = links("Check the list of users", "Liste der Benutzer prüfen", "2220")
    assert repair(match, plain) is None  # not "Liste der Benutzer der Benutzer prüfen"


@pytest.mark.parametrize(
    ("text", "stutters"),
    [
        ("Das Kennwort des Benutzers des Benutzers.", True),
        ("Er er schläft.", True),
        ("am See liegt am See liegt", True),
        ("Die Katze, die die Maus sieht", True),  # right German: such a match's target or plain translation has it, too
        ("Der Hund sieht den Hund.", False),
        ("", False),
    ],
)
def test_repeated_words(text: str, stutters: bool) -> None:
    assert fuzzy_match._stutters(text) == stutters
