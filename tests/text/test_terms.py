import pickle
import re
import threading

import pytest

from mt.errors import RequestError
from mt.text import terms
from mt.text.inflection import NounNumber, inflected_forms, number_of_form, possible_stems
from mt.text.term_index import TermIndex
from mt.text.terms import TermMatch, Terms, missing_terms

GLOSSARY = (
    *(("man", "Herr"), ("old man", "Greis"), ("bicycle", "Drahtesel"), ("city", "Stadt"), ("box", "Kiste")),
    *(("Apple", "Apfel AG"), ("C++", "Cpp"), ("ice-cream", "Gefrorenes"), ("术语", "Terminus"), ("new", "neu")),
)
NUMBERS = [("quotes", "en", "plural"), ("angebots", "de", "any"), ("angebote", "de", "plural"), ("ženy", "cs", "any")]
TERMS = Terms(GLOSSARY, ("Acme", "be bop"))


@pytest.mark.parametrize(
    "marked",
    [
        *("A [man].", "[Man] is here.", "The Man is here.", "The [old man] and a [man].", "An [old  man].", ""),
        *("An old, [man].", "A human, a man-made manual, a wo_man.", "A [man]'s hat.", "Good news."),
        *("Two [bicycles] in [cities] with [boxes].", "[Apple] and apple.", "apple and more.", "[C++] and C+ +."),
        *("这个[术语]是", "[Acme] and ACME, acme, [be bop]."),
    ],
)
def test_terms_are_found(marked: str) -> None:
    sentence = re.sub(r"[][]", "", marked)
    found = [sentence[match.begin : match.end] for match in TERMS.find(sentence, "en")]
    assert found == re.findall(r"\[(.*?)\]", marked)


def test_matches() -> None:
    kept, found = TERMS.find("Acme bicycles", "en")
    assert (kept, found) == (TermMatch(0, 4, None), TermMatch(5, 13, "Drahtesel", NounNumber.PLURAL))
    assert [match.begin for match in TERMS.find("man man", "en", taken=[(0, 3)])] == [4]
    assert [match.begin for match in TERMS.find("we see acme", "en", any_case=True)] == [7]


@pytest.mark.parametrize(
    ("word", "language", "of", "expected"),
    [
        *(("Frauen", "de", "Frau", True), ("Autos", "de", "Auto", True), ("chiens", "fr", "chien", True)),
        *(("libros", "es", "libro", True), ("gatos", "pt-BR", "gato", True), ("libri", "it", "libro", True)),
        *(("žen", "cs", "žen", True), ("ženy", "cs", "žena", True), ("as", "en", "a", False)),
        ("Verträge", "de", "Vertrag", True),
        *(("glass", "en", "glas", False), ("news", "en", "new", False), ("cars", "zh", "car", False)),
    ],
)
def test_words_are_forms_of_others(word: str, language: str, of: str, expected: bool) -> None:
    assert (of in set(possible_stems(word, language))) is expected


@pytest.mark.parametrize(
    ("term", "language", "singular", "plural"),
    [
        ("Angebot", "de", "Angebot Angebots Angebotes", "Angebote Angeboten"),
        ("Vertrag", "de", "Vertrag Vertrags Vertrages", "Verträge Verträgen"),
        ("Fahrrad", "de", "Fahrrad Fahrrads Fahrrades", "Fahrräder Fahrrädern"),
        ("Grad", "de", "Grad Grads Grades", "Grade Graden"),
        ("Lager", "de", "Lager Lagers", "Lager Lagern"),
        ("Garten", "de", "Garten Gartens", "Gärten"),
        ("Rechnung", "de", "Rechnung", "Rechnungen"),
        ("Kunde", "de", "Kunde Kunden", "Kunden"),
        ("Lieferant", "de", "Lieferant Lieferanten", "Lieferanten"),
        ("Mitarbeiterin", "de", "Mitarbeiterin", "Mitarbeiterinnen"),
        ("Ergebnis", "de", "Ergebnis Ergebnisses", "Ergebnisse Ergebnissen"),
        ("Konto", "de", "Konto Kontos", "Konten"),
        ("Team", "de", "Team Teams", "Teams"),
        ("delivery note", "en", "delivery note", "delivery notes"),
        ("company", "en", "company", "companies"),
        ("box", "en", "box", "boxes"),
        ("software", "en", "software", "software"),
        ("devis", "fr", "devis", "devis"),
        ("bureau", "fr", "bureau", "bureaux"),
        ("bon de livraison", "fr", "bon de livraison", "bons de livraison"),
        ("facture impayée", "fr", "facture impayée", "factures impayées"),
        ("术语", "zh", "术语", "术语"),
    ],
)
def test_forms_of_a_translation(term: str, language: str, singular: str, plural: str) -> None:
    forms = [" ".join(inflected_forms(term, language, number)) for number in (NounNumber.SINGULAR, NounNumber.PLURAL)]
    assert forms == [singular, plural]
    assert {*singular.split(), *plural.split()} == set(" ".join(inflected_forms(term, language)).split())


def test_forms_of_other_words() -> None:
    assert {"weißer Kragen", "weißen Kragens"} <= set(inflected_forms("weißer Kragen", "de"))
    assert "raschem" in inflected_forms("rasch", "de") and {"ženy", "žen"} <= set(inflected_forms("žena", "cs"))


@pytest.mark.parametrize(("form", "language", "expected"), NUMBERS)
def test_a_form_shows_its_number(form: str, language: str, expected: str) -> None:
    assert number_of_form(form, language).value == expected


@pytest.mark.parametrize(
    ("translations", "text", "language", "missing"),
    [
        *((["Herr"], "Ein Herr.", "de", 0), (["Herr"], "Dem Herrn.", "de", 0), (["Herr"], "Herrlich.", "de", 1)),
        *((["Herr", "Herr"], "Ein Herr.", "de", 1), (["Angebot"], "Zwei Angeböten.", "de", 1)),
        (["Fahrrad"], "Ein Fahrradhelm, Fahrrad-Helm, Fahrrad- und Motorradhelm, Leihfahrrad.", "de", 1),
        *((["Rad"], "Ein Fahrrad.", "de", 1), (["Fahrrad"], "Die Fahrräder.", "de-AT", 0)),
        *((["术语"], "这个术语是", "zh-Hans", 0), (["rasch"], "Rasch kam er.", "de", 0)),
        *((["alter Herr", "Herr"], "Ein alter Herr.", "de", 1), (["alter Herr"], "Mit dem alten  Herrn.", "de", 0)),
        *((["word"], "Words.", "en", 0), (["sana"], "sanassa", "xx", 0)),
    ],
)
def test_texts_hold_translations(translations: list[str], text: str, language: str, missing: int) -> None:
    matches = [TermMatch(0, 1, translation) for translation in translations]
    assert len(missing_terms(matches, text, language)) == missing


@pytest.mark.parametrize(
    ("compounds", "text", "missing"),
    [
        ([True], "Die Angebotsnummer.", 0),
        ([True], "Die Nummer des Angebots.", 0),
        ([True], "Das Kundenangebot.", 0),
        ([True, False], "Die Angebotsnummer des Angebots.", 0),
        ([True, False], "Die Angebotsnummer der Anforderung.", 1),
        ([False, False], "Die Angebotsnummer des Angebots.", 1),
    ],
)
def test_compounds_hold_translations_of_parts_of_compounds(compounds: list[bool], text: str, missing: int) -> None:
    matches = [TermMatch(0, 1, "Angebot", compound=compound) for compound in compounds]
    assert len(missing_terms(matches, text, "de")) == missing


@pytest.mark.parametrize(
    ("source", "term", "expected"),
    [
        ("The quote number is there.", "quote", True),
        ("The quote and the invoice.", "quote", False),
        ("Le numéro de devis.", "devis", True),
        ("The number of the quote.", "quote", True),
        ("The new quote, number five.", "quote", False),
    ],
)
def test_terms_stand_beside_nouns(source: str, term: str, expected: bool) -> None:
    begin = source.index(term)
    match = TermMatch(begin, begin + len(term), "Angebot")
    assert terms.is_beside_noun(match, source, "de") is expected
    assert not terms.is_beside_noun(match, source, "fr")


def test_the_error_lists_problems() -> None:
    pairs = (("", "x"), ("a", "b"), ("a", "c"), ("d" * (terms.LONGEST_TERM + 1), "e"), ("f", " "), ("g\nh", "i"))
    with pytest.raises(RequestError) as caught:
        Terms(pairs, ("a", "?"))
    assert str(caught.value).splitlines() == [
        "the terms cannot be used:",
        "  - term 1 is ''; accepted: text with a word",
        "  - term 3, 'a', has the translations 'b' and 'c'; accepted: one of them",
        f"  - term 4 has {terms.LONGEST_TERM + 1} characters; accepted: at most {terms.LONGEST_TERM}",
        "  - term 5, 'f', has the translation ''; accepted: text",
        "  - term 6, 'g\\nh', contains a line break, a tab or NUL; accepted: one line",
        "  - untranslated word 1, 'a', has the translations 'b' and none; accepted: one of them",
    ]
    with pytest.raises(RequestError, match="20,001"):
        Terms(tuple((f"a{number}", "b") for number in range(terms.MOST_TERMS + 1)))
    with pytest.raises(RequestError, match="and 80 more"):
        Terms((("", "a"),) * 100)


def test_a_term_that_is_too_long_is_not_normalised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terms, "normalise_text", None)
    with pytest.raises(RequestError, match="accepted: at most"):
        Terms((("a\u0301" * terms.LONGEST_TERM, "b"),))


def test_terms_are_true_if_there_are_any_and_can_be_pickled() -> None:
    assert not Terms() and Terms(untranslated=("a",)) and Terms((("a", "b"), ("a", "b")))
    TERMS.find("A man.", "en")
    again = pickle.loads(pickle.dumps(TERMS))
    assert again == TERMS and again.find("A man.", "en") == TERMS.find("A man.", "en")


@pytest.mark.parametrize(
    ("translation", "text", "language", "expected"),
    [
        ("Baum", "Bäume, baum, Baumes", "de", ["Bäume", "Baumes"]),
        ("C++", "C++20中C++", "de", ["C++", "C++"]),
        ("Terminus", "在Terminus中, Terminusa", "fr", ["Terminus"]),
        ("术语", "这个术语是术语", "zh", ["术语", "术语"]),
        *((text, f"Der {text} und", "de", [text]) for text in ("grüner " * 7 + "Baum", "grüner " * 70 + "Baum")),
        ("rotes Haus", "rotes\u00a0  Haus, rotem\tHause", "de", ["rotes\u00a0  Haus", "rotem\tHause"]),
    ],
)
def test_translations_are_found(translation: str, text: str, language: str, expected: list[str]) -> None:
    assert [text[begin:end] for begin, end in terms.find_translation(translation, text, language)] == expected


def test_several_threads_may_share_the_terms() -> None:
    """Whichever thread comes first builds the index, and the others wait for it."""
    terms = Terms(tuple((f"word{number}", f"Wort{number}") for number in range(5000)))
    barrier, result = threading.Barrier(4), []

    def search() -> None:
        barrier.wait()
        result.append(tuple(match.translation for match in terms.find("word17 and word4018", "en")))

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert result == [("Wort17", "Wort4018")] * 4


def test_an_interrupted_preparation_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    terms = Terms((("alpha", "A"), ("beta", "B"), ("gamma", "C")))
    add = TermIndex.add

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    steps = terms.prepare()
    next(steps)
    monkeypatch.setattr(TermIndex, "add", interrupt)
    with pytest.raises(KeyboardInterrupt):
        next(steps)
    monkeypatch.setattr(TermIndex, "add", add)
    assert [match.translation for match in terms.find("alpha beta gamma", "en")] == ["A", "B", "C"]
