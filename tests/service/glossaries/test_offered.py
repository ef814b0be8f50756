"""The operator's glossary for the users of the page."""

from pathlib import Path

import pytest

from mt.languages import Direction
from mt.text.terms import Terms
from service.glossaries.offered import OfferedGlossaryError, read_offered

EN_DE = Direction("en", "de")


def test_terms_with_their_languages(tmp_path: Path) -> None:
    file = tmp_path / "terms.csv"
    file.write_text(
        '\ufeffstation,Halt,en,de\n\n"Acme, Inc.",Acme,deu,pt-BR\nstation,Bahnhof,en,de\n', encoding="utf-8"
    )
    assert read_offered(file, 2) == {
        EN_DE: Terms((("station", "Bahnhof"),)),
        Direction("de", "pt"): Terms((("Acme, Inc.", "Acme"),)),
    }


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"station\n", "line 1: no comma"),
        (b"a,b,en,de\nstation,Bahnhof\n", "line 2: no languages; accepted: term, translation, language"),
        (b"a,b,en,de,fr\n", "line 1: more than one comma"),
        (b"a,b,en,!\n", "line 1: '!' is not a language tag"),
        (b"a,,en,de\n", "line 1: the translation is empty"),
        (b"a,b,en,de\nc,d,en,de\n", "2 terms into de; accepted: at most 1"),
        ("\u200b,b,en,de\n".encode(), "term 1 is '.u200b'; accepted: text with a word"),
        (b"caf\xe9,b,en,de\n", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "terms.csv"
    file.write_bytes(content)
    with pytest.raises(OfferedGlossaryError, match=problem):
        read_offered(file, 1)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(OfferedGlossaryError, match=r"none\.csv"):
        read_offered(tmp_path / "none.csv", 1)
