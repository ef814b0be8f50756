"""Words of no language, which a model cannot know, and nouns that it translates badly."""

from itertools import product
from pathlib import Path

from mt import Translator
from mt.bundled import STARTER_MODEL
from mt.text.negation import may_be_guess

WORDS = ("snorgwhump", "Vlarfenquist", "kwetzelbrot", "plouffigard", "gribbelhauz")
SENTENCES = (
    ("en", "de", "The {} is very old."),
    ("en", "de", "Yesterday he bought a new {} for the kitchen."),
    ("en", "fr", "She gave the {} to her brother."),
    ("de", "en", "Der {} steht vor der Tür."),
    ("de", "en", "Wir haben gestern den {} gesehen."),
    ("de", "fr", "Der {} ist sehr teuer."),
    ("fr", "en", "Le {} est dans le jardin."),
    ("fr", "de", "Nous avons acheté un {} hier."),
)
PHRASES = (("snorgwhump", "Wumpelkraz", "plouffigard"), ("vlarfen", "Kwetzelhauz", "argouffin"))  # in en, de, fr


def test_most_unknown_words_are_copied_and_those_that_replace_a_guess_are_listed(starter: Translator) -> None:
    """Without copies, the model itself writes 15 of the 40 words; with copies, 35."""
    present = 0
    for word, (source, target, frame) in product(WORDS, SENTENCES):
        translation = starter.translate(frame.format(word), source=source, target=target)
        (sentence,) = translation.sentences
        assert all(copied == word and copied.lower() in translation.text.lower() for copied in sentence.copied)
        present += word.lower() in translation.text.lower()
    assert present >= 29


def test_phrases_replace_guesses_and_copies(tmp_path: Path) -> None:
    """15 of the 16 words get their translations, with the French articles that they need."""
    for file in STARTER_MODEL.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "phrases.tsv").unlink()
    (tmp_path / "phrases.tsv").write_text("\n".join(map("\t".join, (("en", "de", "fr"), *PHRASES))), encoding="utf-8")
    translator, present = Translator.load(tmp_path, "cpu", threads=1), 0
    for row, (source, target, frame) in product(PHRASES, SENTENCES):
        words = dict(zip(("en", "de", "fr"), row, strict=True))
        translation = translator.translate(frame.format(words[source]), source=source, target=target)
        assert translation.sentences[0].copied == ()
        present += words[target] in translation.text
        assert not any(wrong in translation.text for wrong in ("le argouffin", "la argouffin", "l'plouffigard"))
    assert present >= 12


def test_terms_of_contracts_are_no_names(starter: Translator) -> None:
    rows = (
        ("en", "de", "The Seller shall pay the Buyer.", "Der Verkäufer wird den Käufer bezahlen."),
        ("en", "fr", "The Seller shall pay the Buyer.", "Le vendeur paie l'acheteur."),
        ("en", "fr", "The Contractor shall deliver the Goods to the Customer.", "prestataire"),
        ("en", "fr", "The Borrower shall repay the Loan to the Lender.", " au prêteur"),
        ("en", "de", "The Guarantor shall indemnify the Lender.", "Der Bürge wird den "),  # with its verb
        ("fr", "en", "Le Vendeur doit payer l'Acheteur.", "The seller must pay the buyer."),
        ("fr", "de", "Le Vendeur doit payer l'Acheteur.", "Der Verkäufer muss den Käufer bezahlen."),
        ("en", "de", "My mother never taught me how to do laundry.", "Wäsche macht."),
    )
    for source, target, text, part in rows:
        assert part in starter.translate(text, source=source, target=target).text


def test_words_that_decide_the_meaning_are_no_guesses() -> None:
    words = {"en": "not Monday March left must", "fr": "pas lundi mars gauche doit"}
    words["de"] = "nicht Montag März links darf"
    assert not any(may_be_guess(word, language) for language in words for word in words[language].split())
    assert may_be_guess("Haus", "de") and may_be_guess("not", "de")


def test_verbs_are_not_replaced_by_nouns(starter: Translator) -> None:
    rows = (  # a phrase in English and German, which the model once wrote for the verb or beside its own noun
        ("That strong light blinds me.", "Jalousien"),
        ("This ice is too thin to bear your weight.", "Bär"),
        ("Tom is painting his fence.", "Gemälde"),
        ("May I see your passport?", "Reisepass"),
        ("Everything hinges on the case.", "Scharniere"),
        ("Could I change rooms?", "Räume"),
    )
    for text, noun in rows:
        assert noun not in starter.translate(text, source="en", target="de").text


def test_words_of_which_the_model_is_unsure_are_not_copied_over(starter: Translator) -> None:
    rows = (
        ("de", "en", "Wir kontrollieren das jetzt gleich.", "checking"),
        ("en", "de", "You must not forget your schoolbooks.", "Schulbücher"),
        ("de", "en", "Eine Person fährt auf ihrem Geländemotorrad.", "motorcycle"),  # a compound of known words
        ("de", "en", "Der Breitengrad der Hauptadresse der Person.", "main address"),  # of which "address" is certain
        ("de", "en", "Ein Mann und eine Frau stehen auf einer kopfsteingepflasterten Straße.", " road"),
        ("de", "en", "Frau Dr. Koch ist da.", "Ms Dr. Koch"),  # no chef
        ("de", "en", "Frau Koch ist da.", "Ms Koch"),  # no women
        ("de", "en", "Eine Drei-Mann-Band spielt Musik auf der Bühne.", "Drei-Mann-Band plays"),  # no second band
        ("en", "fr", "Green traffic signals light up as people look at motorcycles.", "comme les gens"),
        ("en", "fr", "A dark-haired woman wearing a blue blouse and sunglasses holds a banner.", " porte "),
        ("en", "fr", "A young barefoot girl wearing a helmet walks down a mossy covered fallen down tree.", " s'élève"),
    )
    for source, target, text, word in rows:
        assert word in starter.translate(text, source=source, target=target).text


def test_known_words_and_terms_are_not_copied(starter: Translator) -> None:
    rows = [
        ("en", "de", "The train to Munich leaves at eight o'clock."),
        ("de", "en", "Ich habe meinen Schlüssel verloren."),
        ("en", "de", "Pricing terms for purchase agreements"),  # Preisbedingungen, a compound
        ("fr", "de", "J'accepte les CGV."),  # the model translates the first word alone in the same way
        ("de", "en", "Shell-artiger MIDI-Sequenzer"),  # no part of the word is unknown
    ]
    for source, target, text in rows:
        assert [one.copied for one in starter.translate(text, source=source, target=target).sentences] == [()]
    text = "The snorgwhump sees the door. Tom bought 3 flubbers."
    with_term, without = starter.translate(text, source="en", target="de", glossary={"door": "Pforte"}).sentences
    assert with_term.copied == () and "Pforte" in with_term.text
    assert without.copied == ("flubbers",)
