from pathlib import Path

import pytest

from mt.bundled import STARTER_MODEL
from mt.errors import ModelError
from mt.text.phrases import Phrases, load_phrases

ROWS = (
    {"en": "paid", "de": "bezahlt", "fr": "payé"},
    {"en": "open...", "de": "öffnen..."},
    {"en": "open", "de": "offen"},
    {"en": "terms and conditions", "de": "AGB"},
    {"en": "deadline", "de": "Frist", "fr": "date limite"},
    {"en": "time limit", "de": "Frist", "fr": "délai"},
    {"en": "Dear Sir or Madam,", "de": "Sehr geehrte Damen und Herren,", "fr": "Madame, Monsieur,"},
    {"en": "forgot your password?", "de": "Passwort vergessen?"},
    {"en": "CV", "de": "Lebenslauf"},
    {"en": "don't forget", "de": "nicht vergessen"},
    {"en": "dear Mr {name}", "de": "sehr geehrter Herr {name}", "fr": "cher Monsieur {name}"},
    {"en": "dear {name}", "de": "guten Tag {name}", "fr": "bonjour {name}"},
    {"en": "dear {woman}", "de": "liebe {woman}", "fr": "chère {woman}"},
)


@pytest.mark.parametrize(
    ("direction", "text", "expected"),
    [
        *(("en-de", "Paid", "Bezahlt"), ("en-de", "paid", "bezahlt"), ("en-fr", "PAID!", "PAYÉ !")),
        *(("en-de", "Open...", "Öffnen..."), ("en-de", "Open!", "Offen!"), ("en-de", "&Open...", "&Öffnen...")),
        *(("en-de", "P&aid", "&Bezahlt"), ("en-de", "&Open", "&Öffnen"), ("en-de", "Terms &and Conditions", "&AGB")),
        *(("en-de", "Terms & Conditions", "AGB"), ("fr-en", "à :", None), ("en-de", "& more", None)),
        *(("de-en", "Frist:", "Deadline:"), ("en-de", "deadline", "Frist"), ("en-GB-de-CH", "Deadline …", "Frist…")),
        *(("en-de", "Dear Sir or Madam", "Sehr geehrte Damen und Herren"), ("fr-de", "Date Limite :", "Frist:")),
        *(("en-de", "Forgot your password?", "Passwort vergessen?"), ("en-fr", "Forgot your password?", None)),
        *(("en-de", "Paid in full", None), ("en-it", "Paid", None), ("fr-de", "Paid", None), ("en-de", "...", None)),
        *(
            ("en-fr", "deadline?", "date limite ?"),
            ("en-de", "CV", "Lebenslauf"),
            ("en-de", "Don’t forget!", "Nicht vergessen!"),
            ("fr-de", "Cher Monsieur Müller-Weiß,", "Sehr geehrter Herr Müller-Weiß,"),
            ("en-fr", "Dear Mr Jean Le Goff!", "Cher Monsieur Jean Le Goff !"),
            ("en-de", "Dear Mr President,", None),
            ("en-de", "Dear Mr Lee and all,", None),
            ("en-de", "Hello Mr Lee,", None),
            *(("en-de", f"Dear Mr {name},", f"Sehr geehrter Herr {name},") for name in ("{Name}", "{x}", "[Name]")),
            *(("en-de", f"Dear {name},", f"Guten Tag {name},") for name in ("{name}", "[Name]", "${a.b}", "%s")),
            *(("en-de", f"Dear {name},", f"Guten Tag {name},") for name in ("Dr. Lee", "Prof. Dr. {name}", "Alex")),
            ("en-de", "Dear Anna,", "Liebe Anna,"),
            ("en-de", "Dear John,", "Guten Tag John,"),  # without a row for men
            ("de-en", "Sehr geehrter Herr Prof. Dr. Lee,", "Dear Prof. Dr. Lee,"),
            ("de-fr", "Sehr geehrter Herr Professor Lee,", "Cher professeur Lee,"),
            ("fr-de", "Bonjour docteur Lee,", "Guten Tag Dr. Lee,"),
            ("en-de", "Dear Mary Brown and all,", None),
            ("en-de", "Dear Rainbow,", None),
        ),
    ],
)
def test_phrases(direction: str, text: str, expected: str | None) -> None:
    source, target = direction[: len(direction) // 2], direction[len(direction) // 2 + 1 :]
    assert Phrases(ROWS).translate(text, source, target) == expected


LISTED = (
    {"en": "apples", "de": "Äpfel"},
    {"en": "paid", "de": "bezahlt"},
    {"en": "April", "de": "April"},
    {"en": "rose", "de": "Rose"},
    {"en": "Sep", "de": "Sep", "fr": "sept"},
)


@pytest.mark.parametrize(
    ("direction", "text", "expected"),
    [
        ("de-en", "Äpfel, Äpfel und Äpfel.", "Apples, apples and apples."),
        ("en-de", "Paid, Paid, APPLES", "Bezahlt, Bezahlt, ÄPFEL"),
        ("en-de", "April, apples, paid", "April, Äpfel, bezahlt"),
        ("en-de", "Rose, Tom and Anna", "Rose, Tom und Anna"),
        ("fr-de", "Six, sept et huit", "Sechs, sieben und acht"),
        ("fr-de", "sept, sept, sept", "sieben, sieben, sieben"),
        ("en-de", "apples, paid, more", None),
    ],
)
def test_lists_of_phrases(direction: str, text: str, expected: str | None) -> None:
    source, target = direction.split("-")
    assert Phrases(LISTED).translate(text, source, target) == expected


def test_parts_of_lists() -> None:
    phrases = Phrases(LISTED)
    assert phrases.list_parts("paid, more, apples", "en", "de")[::2] == [
        ("bezahlt", True),
        ("more", False),
        ("Äpfel", True),
    ]
    assert phrases.list_parts("we paid, paid, apples", "en", "de") == []  # a sentence
    assert phrases.list_parts("paid, more, none", "en", "de") == []
    assert phrases.mend_lists("see Paid, Apples, apples or apples", "sieh Paid", "en", "de", False)[0] == "sieh Paid"


def test_phrases_in_brackets() -> None:
    found = Phrases(ROWS).bracketed("A f(paid), (paid) and (deadline 5) [paid] (paid too) [Paid] (paid", "en", "de")
    expected = [("(paid", "bezahlt"), ("(deadline", "Frist"), ("[paid", "bezahlt")]
    assert [(match[0], words) for match, words in found] == expected


def test_the_file_of_a_model(tmp_path: Path) -> None:
    assert load_phrases(tmp_path) is None
    (tmp_path / "phrases.tsv").write_text("en\tde\npaid\tbezahlt\n", encoding="utf-8")
    assert load_phrases(tmp_path) == Phrases(({"en": "paid", "de": "bezahlt"},))
    (tmp_path / "phrases.tsv").write_text("en\tde\npaid\n", encoding="utf-8")
    with pytest.raises(ModelError, match="line 2: accepted: 2 texts, separated by tabs"):
        load_phrases(tmp_path)
    (tmp_path / "phrases.tsv").write_bytes(b"en\tde\npaid\t\xff\n")
    with pytest.raises(ModelError, match=r"phrases\.tsv is not UTF-8 at byte 12"):
        load_phrases(tmp_path)


def test_phrases_of_the_bundled_model() -> None:
    """Each has a text in each language, without spaces around it, and none is there twice."""
    phrases = load_phrases(STARTER_MODEL)
    assert phrases and len({tuple(row.values()) for row in phrases.rows}) == len(phrases.rows) > 150
    for row in phrases.rows:
        assert [*row] == ["en", "de", "fr"] and all(text == text.strip() for text in row.values())
