"""Tests of mt.text.typography."""

import pytest

from mt.text.protect import find_spans
from mt.text.typography import (
    has_no_break_spaces,
    insert_breaks,
    join_numbers,
    lost_quotations,
    mend_marks,
    places_of_sentence_ends,
    restore_no_break_spaces,
    space_copied_slashes,
    space_guillemets,
    unify_quotes,
    write_quotations,
)

NUMBERS = {
    "of the source": ("1\u202f000 dogs", "1 000 Hunde", "1\u202f000 Hunde"),
    "other separators": ("1,234,567.50 dogs", "1 234 567,50 chiens", "1\u00a0234\u00a0567,50 chiens"),
    "two numbers": ("in 2020 300 dogs, 1,000 cats", "en 2020 300 chiens, 1 000", "en 2020 300 chiens, 1\u00a0000"),
    "another number": ("1,500 dogs", "1 000 chiens", "1 000 chiens"),
    "no number": ("dogs", "1 000 chiens", "1 000 chiens"),
}
SPACES = {
    "unit": ("10\u00a0km, 5 m", "10 km, 5 m", "de", "10\u00a0km, 5 m"),
    "narrow": ("10\u202fkm", "10 km", "de", "10\u202fkm"),
    "decimals": ("1.5\u00a0km", "1,5 km", "de", "1,5\u00a0km"),
    "percent and currency": ("5\u00a0% 3\u00a0€", "5 % 3 €", "de", "5\u00a0% 3\u00a0€"),
    "other number": ("10\u00a0km", "12 km", "de", "12 km"),
    "before a number": ("page\u00a05", "Seite 5", "de", "Seite\u00a05"),
    "French marks": ("No\u00a01: why?", "No 1 : pourquoi ? Oui !", "fr", "No\u00a01\u202f: pourquoi\u202f? Oui\u202f!"),
    "guillemets": ("\u00a0", "« oui »", "fr-CA", "«\u00a0oui\u00a0»"),
    "smiley": ("\u00a0", "oui :) ?x", "fr", "oui :) ?x"),
    "German marks": ("\u00a0", "ja ?", "de", "ja ?"),
}


@pytest.mark.parametrize(("source", "translation", "expected"), NUMBERS.values(), ids=NUMBERS)
def test_spaces_in_numbers_do_not_break(source: str, translation: str, expected: str) -> None:
    assert join_numbers(translation, find_spans(source)) == expected


@pytest.mark.parametrize(
    ("source", "translation", "language", "expected"),
    [
        ('"a" and "b"', '„a“ und "b"', "de-AT", "„a“ und „b“"),
        ('"a" and "b"', '"a" und ("b")', "de", "„a“ und („b“)"),
        ('"a."', '"a.', "de", '"a.'),
        ('"Hallo"', 'sagte:"Hallo"', "de", "sagte:„Hallo“"),
        ('Enter ""', 'Geben Sie "" ein', "de", 'Geben Sie "" ein'),
        ('alt="x"', 'alt="x"', "de", 'alt="x"'),
        ('"a": "b"', '"a": "b"', "de", '"a": "b"'),
        ('5" by 7"', '5" mal 7"', "de", '5" mal 7"'),
        ('"a"', '"a"', "de-CH", '"a"'),
        ('"a", "b"', '„a", „b“', "de", "„a“, „b“"),
        ('"a" and "b"', '"a" et « b »', "fr", "«a» et « b »"),
        ('"a" and "b"', '"a" et "b"', "fr", '"a" et "b"'),
        ('"a" and 5"', '„a“ und 5"', "de", '„a“ und 5"'),
        ('"a" and open("x y")', '„a“ und open("x y")', "de", '„a“ und open("x y")'),
    ],
)
def test_quotation_marks_are_of_one_kind(source: str, translation: str, language: str, expected: str) -> None:
    assert unify_quotes(translation, find_spans(source), language) == expected


@pytest.mark.parametrize(
    ("source", "translation", "language", "expected"),
    [
        ("Hallo, Tom!", "Hello, Tom.", "en", "Hello, Tom!"),
        ("Das ist {a}!", "It is {a}", "en", "It is {a}!"),
        ("Stop?!", "Arrête.", "fr-CA", "Arrête ?!"),
        ("What?! Who?", "Quoi ? ! Qui ?", "fr", "Quoi ?! Qui ?"),
        ("Total (TVA)", "Total ( VAT)", "en", "Total (VAT)"),
        ("Total ( TVA)", "Total ( VAT)", "en", "Total ( VAT)"),
        ("Stop!!!", "Arrête !!", "fr", "Arrête !!!"),
        ("Stop!", "Halt!!!", "de", "Halt!"),
        ("“What?!” she said. “No!!”", "„Was?“ sie sagte. „Nein!“", "de", "„Was?!“ sie sagte. „Nein!!“"),
        ("Hi Tom,", "Hallo, Tom", "de", "Hallo Tom,"),
        ("« Oui », dit-il.", '"Yes, he says.', "en", '"Yes," he says.'),
        ("You need this:", "Il faut ceci.", "fr", "Il faut ceci :"),
        ("Go!", "Gehst du?", "de", "Gehst du?"),
        ("Assieds-toi !", "Sit down.", "en", "Sit down!"),
        ("Er rief: „Hilfe!“", 'He called, "Help."', "en", 'He called, "Help!"'),
        ("Warum „ja“?", "Why “yes”.", "en", "Why “yes”?"),
        ("Sit down.", "Setz dich!", "de", "Setz dich!"),
        ("Why?", "Warum…", "de", "Warum…"),
        ("Hello :)", "Hallo :)", "de", "Hallo :)"),
        ("It is good—no doubt.", "Es ist gut -kein Zweifel.", "de", "Es ist gut – kein Zweifel."),
        ("It is - in short - good.", "Es ist –kurz –gut.", "de", "Es ist – kurz – gut."),
        ("Use -v or pre-war - or not", "Nutze -v - oder -x", "de", "Nutze -v - oder -x"),
        ("Use -help - or not", "Nutze -help oder nicht", "de", "Nutze -help oder nicht"),
        ("Vor- und Nachname", "first -name", "en", "first -name"),
        ("It is.", "C'est ;", "fr", "C'est."),
        ("Es heißt „Haus“.", 'It is "house.', "en", 'It is "house".'),
        ("Er sagt: „Ja.“", 'He says: "Yes.', "en", 'He says: "Yes."'),
        ("It is “home”", "C'est « maison", "fr", "C'est « maison »"),
        ("(It is home.)", "(Das ist Heimat.", "de", "(Das ist Heimat.)"),
        ("(It is [home].", "(Das ist Heimat.", "de", "(Das ist Heimat."),
        ("(He said “go”)", "(Er sagte „los", "de", "(Er sagte „los"),  # two marks are open
        ("Do you know x.org/?a=1?", "Kennst du x.org/?a=1", "de", "Kennst du x.org/?a=1?"),
        ('"Tom" and "New York" win.', '"Tom" et New York" gagnent.', "fr", '"Tom" et "New York" gagnent.'),
        ('"Tom" and "Al" win.', '"Tom" et "Al gagnent.', "fr", '"Tom" et "Al" gagnent.'),
        # What looks like a lost mark and is none
        ("“Tom” saw a 5 inch TV.", 'Tom sah ein 5" TV.', "de", 'Tom sah ein 5" TV.'),
        ('"a" and "b"', '"ab" und "b', "de", '"ab" und "b"'),
        ('I saw "Who is it?"', "Ich habe „Wer ist es?“ gesehen.", "de", "Ich habe „Wer ist es?“ gesehen."),
        ('He asked me "Why?"', "Il m'a demandé « Pourquoi ? ».", "fr", "Il m'a demandé « Pourquoi ? »."),
        ("Why (see below)?", "Warum? (siehe unten)", "de", "Warum? (siehe unten)"),
        ("Really?", "真的吗？", "zh", "真的吗？"),
        ("Where?", "أين؟", "ar", "أين؟"),
        ("Go!", "जाओ।", "hi", "जाओ।"),
        ('Tom said "yes".', "„Tak” – powiedział Tom.", "pl", "„Tak” – powiedział Tom."),
        ("The 27 inch monitor (new)", 'Der neue 27"-Monitor', "de", 'Der neue 27"-Monitor'),
        ('"Why?"', "‚Warum?‘", "de", "‚Warum?‘"),
        ("Great!", "Toll! 😀", "de", "Toll! 😀"),
        ("Choose!", "Wählen Sie:", "de", "Wählen Sie:"),
        ("Go!", "", "de", ""),
        ('Do you know "Titanic"?', "Kennst du „Titanic“", "de", "Kennst du „Titanic“?"),
        ("The inline # text", "Der Inline- Text #- Text", "de", "Der Inline-Text # Text"),
        ("A 'b'", "Ein „ Haus “ und „Hut “.", "de", "Ein „Haus“ und „Hut“."),
        ("A — B", "A -- Bc", "en", "A -- Bc"),
        ("House- and", "Haus- Text", "de", "Haus- Text"),
        ("10x faster", "10x- schneller", "de", "10x schneller"),
        ("Use '{a}'.", "Nutze „{a}“ und ' {a}'.", "de", "Nutze '{a}' und '{a}'."),
    ],
)
def test_marks_at_the_end_are_mended(source: str, translation: str, language: str, expected: str) -> None:
    assert mend_marks(source, translation, language) == expected


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ('Press "Save" or "Save as".', "Drücken Sie „Speichern“.", ["Save", "Save as"]),
        ('"Why?" she asked. "No," he said.', "„Warum? fragte sie. „Nein“, sagte er.", ["Why?", "No"]),
        ("« Oui », « Non ». Et l'« eau »", '"Yes", "No" and water', ["Oui", "Non", "eau"]),
        ("\"He said 'I am here' again\"", '"Er sagte: Hier."', ["I am here"]),
        ("« a.txt » (2 Mo)", 'Die "a.txt" (2 MB")', ["a.txt"]),
        ('Press "Save" or "Open".', '"Speichern" oder "Öffnen".', []),
        ("The dogs' and the cats' house isn't 5\" by 6\".", "Das Haus.", []),
    ],
)
def test_lost_quotations(source: str, translation: str, expected: list[str]) -> None:
    assert [source[begin:end] for begin, end in lost_quotations(source, translation)] == expected
    assert lost_quotations(source, translation, [(0, len(source))]) == []


def test_other_words_are_quoted() -> None:
    words = {"Save": "Speichern", "No": "Nein", "I am": "ich bin"}
    expected = '"Speichern", "Nein." und ‘ich bin’, „x“ Save'
    assert write_quotations("“Save”, « No. » und ‘I am’, „x“ Save", words) == expected


@pytest.mark.parametrize(
    ("source", "translation", "language", "expected"),
    [
        ('Open "%s"', "Ouvrir «%s »", "fr", "Ouvrir « %s »"),
        ('Open "a", "b"', "Ouvrir « a», «b»", "fr-CA", "Ouvrir « a », « b »"),
        ("Open «x»", "Ouvrir «x»", "fr", "Ouvrir «x»"),
        ('Open "a"', "Öffne «a»", "de-CH", "Öffne «a»"),
        ('Open "a"', "Ouvrir « a »", "fr", "Ouvrir « a »"),
        ("« Back", "« Retour", "fr", "« Retour"),
    ],
)
def test_guillemets_have_spaces(source: str, translation: str, language: str, expected: str) -> None:
    assert space_guillemets(source, translation, language) == expected


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("black/white", "schwarz/white", "black / white"),
        ("a (user name/Password).", "ein Name/password", "a (user name / Password)."),
        ("Straße/Hausnummer", "Street/Hausnummer", "Straße / Hausnummer"),
        ("black/white", "schwarz/weiß", "black/white"),
        ("Debian/Linux", "Debian/Linux", "Debian/Linux"),
        ("black/white/red", "schwarz/weiß/red", "black / white / red"),
        ("open/closed", "offen", "open / closed"),
        ("read/write or open/close", "lesen/write, offen/zu", "read / write or open/close"),
        *(
            (text, "/or oder/ /innen main /h /IP /login /def", text)
            for text in ("and/or und/oder", "km/h, TCP/IP", "Lehrer/innen", "src/main", "/abc/def", "feature/login")
        ),
    ],
)
def test_slashes_beside_copied_words_get_spaces(source: str, translation: str, expected: str) -> None:
    assert space_copied_slashes(source, translation) == expected


@pytest.mark.parametrize(("source", "translation", "language", "expected"), SPACES.values(), ids=SPACES)
def test_no_break_spaces_are_restored(source: str, translation: str, language: str, expected: str) -> None:
    assert restore_no_break_spaces(source, translation, language) == expected


def test_texts_with_no_break_spaces_are_recognised() -> None:
    assert not any(map(has_no_break_spaces, ("a b", "ä\u2009b")))
    assert all(map(has_no_break_spaces, ("a\u00a0b", "a\u202fb")))


def test_ends_of_sentences_correspond() -> None:
    assert places_of_sentence_ends("Go on. See it! Now", "Weiter. Sieh! Jetzt", [6, 14]) == [7, 13]
    assert places_of_sentence_ends("Go on. See it! Now", "Weiter. Sieh, jetzt", [6, 14]) is None
    assert places_of_sentence_ends("Go on. See it! Now", "Weiter. Sieh! Jetzt", [2]) is None


def test_breaks_replace_the_spaces_at_their_places() -> None:
    assert insert_breaks("a b c", [(1, "\n"), (3, "\n\n")]) == "a\nb\n\nc"
    assert insert_breaks("a b.", [(4, "\n> ")]) == "a\n> b.", "no line without words"
    assert insert_breaks("alle ✓", [(4, "   ")]) == "alle   ✓"
    assert insert_breaks("Hallo da! 😀", [(9, "\n")]) == "Hallo da!\n😀"
    assert insert_breaks("abc", [(0, "\t"), (3, "\n")]) == "\tabc\n"
