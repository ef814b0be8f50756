"""Abbreviations in the sentence that a model reads, and at the ends of sentences."""

import re

import pytest

from mt.text.abbreviations import ends_with_abbreviation
from mt.text.segment import split_text


@pytest.mark.parametrize(
    ("language", "marked"),
    [
        ("en", "⟨It is approx. 5 km.⟩ ⟨Go by bus incl. lunch.⟩"),
        ("en", "⟨Lunch is incl.⟩ ⟨Drinks are extra.⟩"),
        ("en", "⟨He is in the sales dept.⟩ ⟨She is his boss.⟩"),
        ("de", "⟨Kd.-Nr. 5, Mo.–Fr. frei.⟩"),
        ("en", "⟨It is late, i.e. we go.⟩ ⟨Put 5 in.⟩ ⟨The rest.⟩"),
        ("de", "⟨Äpfel u. Birnen für Hr. Maier.⟩ ⟨Dann los.⟩"),
        ("fr", "⟨C'est un jeu.⟩ ⟨5 joueurs participent.⟩"),
        ("fr", "⟨Voir vol. 3, p. 5.⟩"),
        ("fr", "⟨J'ai vu M. Dupont.⟩ ⟨C'est M. Petit.⟩ ⟨La taille est M.⟩ ⟨Le prix est bas.⟩"),
    ],
)
def test_no_sentence_ends_at_an_abbreviation(language: str, marked: str) -> None:
    """The sentences are in angle brackets."""
    parts = split_text(re.sub("[⟨⟩]", "", marked), language)
    assert [part.text for part in parts if not part.kept] == re.findall("⟨(.*?)⟩", marked)


def test_what_follows_decides() -> None:
    ends = [ends_with_abbreviation("5 Mio. ", follows, "de") for follows in ("3 ", "extra", "Euro")]
    assert ends == [True, True, False]
