"""The operator's glossary for the users of the page."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from mt.languages import Direction
from mt.text.terms import Terms
from service.glossaries.offered import OfferedGlossaryError, read_offered

EN_DE = Direction("en", "de")


def test_terms_with_their_languages(tmp_path: Path) -> None:
    file = tmp_path / "terms.csv"
    file.write_text('\ufeffstation,Halt,en,de\n\n"Acme, Inc.",Acme,deu,pt-BR\nstation,Halt,en,de\n', encoding="utf-8")
    other = Direction("de", "pt")
    terms = {EN_DE: Terms((("station", "Halt"),)), other: Terms((("Acme, Inc.", "Acme"),))}
    assert read_offered(file, 2) == (terms, {EN_DE: 1, other: 3})


GERMAN = "Straße;street;de;en\r\nAcme, Inc.;Acme;de;en\r\n;;;\r\n"
TABS = '\ufeffStraße\tstreet\tde\ten\r\n"Acme, Inc."\tAcme\tde\ten\r\n'  # Excel's "Unicode text"


@pytest.mark.parametrize(
    "content",
    [
        GERMAN.encode("cp1252"),
        GERMAN.encode("utf-8-sig"),
        f"Deutsch;Englisch;Quelle;Ziel\r\n{GERMAN}".encode("cp1252"),
        f"Term;Übersetzung;von;nach\r\n{GERMAN}".encode(),  # `von`, `to` and `de` are language tags
        f"Term;Translation;from;to\r\n{GERMAN}".encode(),
        f"Terme;Traduction;de;vers\r\n{GERMAN}".encode("cp1252"),
        f"sep=;\r\n{GERMAN}".encode("cp1252"),
        GERMAN.replace("en\r\n", "en;;\r").encode("cp1252"),
        TABS.encode("utf-16-le"),
        TABS.encode("utf-16-be"),
        TABS[1:].encode("cp1252"),
        GERMAN.replace(";", "|").encode(),
        b'"Stra\xdfe",street,de,en\n"Acme, Inc.",Acme,de,en\n',
    ],
)
def test_spreadsheet_programs_write_any_encoding_and_separator(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "terms.csv"
    file.write_bytes(content)
    terms = Terms((("Straße", "street"), ("Acme, Inc.", "Acme")))
    assert read_offered(file, 2)[0] == {Direction("de", "en"): terms}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"station\n", "line 1: 1 column, without a comma; accepted: a term, its translation and their languages"),
        (b"a,b,en,de\nstation,Bahnhof\n", "line 2: 2 columns, divided by a comma; accepted: a term, its tran"),
        (b"a,b,en,de\nstation,Bahnhof,en\n", r"line 2: 3 columns, .* and their languages \(4 columns\)"),
        (b"a,b,en,de,fr\n", "line 1: 5 columns, divided by a comma"),
        (b"c,d,en,fr\na,b,en,!\n", "line 2: '!' is no language code; accepted: such as pt-BR"),
        (b"c,d,en,dr\na,b,en-DR,de\n", "line 1: 'dr' is no language code; .*\n.*line 2: 'en-DR' is no language code"),
        (b"a,b,en,de\n\na,c,eng,de-AT\n", "line 3: 'a' is 'c' here and 'b' in line 1"),
        (b"a,,en,de\n", "line 1: the translation is empty"),
        (b"a,b,en,de\nc,d,en,de\n", "2 terms into de; accepted: at most 1"),
        ("\u200b,b,en,de\n".encode(), "term 1 is '.u200b'; accepted: text with a word"),
        (b"a;b;en;de;fr\n", "line 1: 5 columns, divided by a semicolon"),
        (b"\x00\x01\x02", "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "terms.csv"
    file.write_bytes(content)
    with pytest.raises(OfferedGlossaryError, match=problem):
        read_offered(file, 1)


@pytest.mark.parametrize("languages", ["english,german", "en,German", "von,nach"])
def test_a_heading_is_logged(tmp_path: Path, languages: str) -> None:
    """A person whose first term has names instead of codes sees why it is missing."""
    file = tmp_path / "terms.csv"
    file.write_text(f"dog,Hund,{languages}\nstation,Bahnhof,en,de\n", encoding="utf-8")
    with capture_logs() as logs:
        assert read_offered(file, 2)[0] == {EN_DE: Terms((("station", "Bahnhof"),))}
    assert [line["heading"] for line in logs] == [["dog", "Hund", *languages.split(",")]]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(OfferedGlossaryError, match=r"none\.csv"):
        read_offered(tmp_path / "none.csv", 1)
