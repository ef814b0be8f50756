import pytest

from mt.text import quotations, typography
from mt.text.protect import find_spans


def test_other_words_are_quoted() -> None:
    words = {"Save": "Speichern", "No": "Nein", "I am": "ich bin"}
    expected = '"Speichern", "Nein." und ‘ich bin’, „x“ Save'
    assert quotations.write_quotations("“Save”, « No. » und ‘I am’, „x“ Save", words) == expected


def test_whole_quotations() -> None:
    sources = ["“It is.”", "« It is. »", "'It isn't so.'", '"It is," he said.', "“So”", "'tis 'em x'", '"A" or "B c"']
    sources += ['"So, dit-elle, et ainsi."', '"So," he said, "it is."', '"Ja, sagte sie, das ist so."']
    assert [*map(quotations.whole_quotation, sources)] == ["It is.", "It is.", "It isn't so.", *[None] * 7]


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
        *((x, "/or oder/ /h /IP /innen", x) for x in ("and/or und/oder", "km/h, TCP/IP", "Lehrer/innen")),
        *((x, "main /login /def", x) for x in ("src/main", "/abc/def", "feature/login")),
    ],
)
def test_slashes_beside_copied_words_get_spaces(source: str, translation: str, expected: str) -> None:
    assert typography.space_copied_slashes(source, translation) == expected


def test_breaks_stand_at_ends_of_sentences() -> None:
    assert typography.places_of_sentence_ends("Go on. See it! Now", "Weiter. Sieh! Jetzt", [6, 14]) == [7, 13]
    assert typography.places_of_sentence_ends("Go on. See it! Now", "Weiter. Sieh, jetzt", [6, 14]) is None
    assert typography.places_of_sentence_ends("Go on. See it! Now", "Weiter. Sieh! Jetzt", [2]) is None
    assert typography.insert_breaks("a b c", [(1, "\n"), (3, "\n\n")]) == "a\nb\n\nc"
    assert typography.insert_breaks("a b.", [(4, "\n> ")]) == "a\n> b.", "no line without words"
    assert typography.insert_breaks("alle ✓", [(4, "   ")]) == "alle   ✓"
    assert typography.insert_breaks("Hallo da! 😀", [(9, "\n")]) == "Hallo da!\n😀"
    assert typography.insert_breaks("see {{ a }}.", [(12, "\n")], find_spans("see {{ a }}.")) == "see\n{{ a }}."
    text = "{{ a }} {{ b }}"
    assert typography.insert_breaks(text, [(4, "\n"), (10, "\t")], find_spans(text)) == "\n{{ a }}\t{{ b }}"
    assert typography.insert_breaks("abc", [(0, "\t"), (3, "\n")]) == "\tabc\n"


@pytest.mark.parametrize(
    ("source", "translation", "expected"),
    [
        ("La « new » voiture", "The new car", 'The "new" car'),
        ("La « neu » voiture", "Das neue Auto", 'Das "neue" Auto'),
        ("Das 'new' Auto", "The new car", "The 'new' car"),
        ("Das 'new' Auto", "The 'new' car", "The 'new' car"),
        ("Das 'new' Auto", "The new car is new.", "The new car is new."),
        ("'Faust'", "Faust's", "Faust's"),
        ("« new »", "It is « new » here.", "It is « new » here."),
        ("Das new ist « new ».", "It is new.", "It is new."),
    ],
)
def test_marks_around_words(source: str, translation: str, expected: str) -> None:
    words = [word for word in ("new", "neu", "yes", "Faust") if word in source]
    assert quotations.quote_words(source, translation, words) == expected
