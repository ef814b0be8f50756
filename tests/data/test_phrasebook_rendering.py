"""What the phrasebook's constructions make of a filling, beside what a person wrote."""

from functools import cache

import pytest

from mt.data.phrasebook import grammar as g
from mt.data.phrasebook.grammar import Action, NounPhrase, Person, Phrase, Subject
from mt.data.phrasebook.lexicon import Adjective, Noun, Verb, lexicon
from mt.data.phrasebook.slots import Construction, lemmas_of
from mt.data.phrasebook.split import constructions

I = Subject("I", "ich", Person.FIRST)  # noqa: E741
YOU = Subject("you", "Sie", Person.PLURAL)
SHE = Subject("she", "sie", Person.THIRD)
THEY = Subject("they", "sie", Person.PLURAL)
ANNA = Subject("Anna", "Anna", Person.THIRD)
CAN, SHOULD, HAVE_TO, WANT_TO, WOULD_LIKE_TO = g.MODALS
YESTERDAY = Phrase("yesterday", "gestern")
TOMORROW = Phrase("tomorrow", "morgen")
MONDAY = Phrase("on Monday", "am Montag")
NO_TIME = Phrase("", "")


def noun(lemma: str) -> Noun:
    return next(noun for nouns in lexicon().nouns.values() for noun in nouns if noun.lemma == lemma)


def verb(lemma: str) -> Verb:
    known = (*lexicon().verbs, *lexicon().giving, *lexicon().departing, *lexicon().happening)
    return next(verb for verb in known if verb.lemma == lemma)


def adjective(lemma: str) -> Adjective:
    return next(adjective for adjective in lexicon().adjectives if adjective.lemma == lemma)


def a(text: str, number: tuple[str, str] = ("", "")) -> NounPhrase:
    """The noun phrase that `text` names: determiner, adjective or "-", noun, "s" in front of a plural's noun."""
    determiner, described, *rest = text.split(" ", 2)
    plural = rest[0].startswith("*")
    found = None if described == "-" else adjective(described)
    return NounPhrase(determiner if determiner != "2" else "", noun(rest[0].lstrip("*")), plural, found, number)


def do(lemma: str, text: str = "") -> Action:
    return g.act(verb(lemma), a(text) if text else None)


def to(lemma: str, english: str, german: str) -> Action:
    return g.travel(verb(lemma), Phrase(english, german))


@cache
def by_name() -> dict[str, Construction]:
    return {construction.name: construction for construction in constructions()}


IS_SAD = adjective("sad")
WHEN = Phrase("when", "wann")
NEXT_TO = Phrase("next to", "neben")
AT_7 = Phrase("at 7:30", "um 7:30 Uhr")

RENDERED = [
    # agreement of article, adjective and noun
    (
        "statement",
        (I, do("need", "a new suitcase"), (False, MONDAY)),
        "I need a new suitcase on Monday.",
        "Ich brauche am Montag einen neuen Koffer.",
    ),
    (
        "statement",
        (SHE, do("lock", "the old door"), (False, MONDAY)),
        "She locks the old door on Monday.",
        "Sie schließt am Montag die alte Tür ab.",
    ),
    (
        "past",
        (I, do("buy", "a - umbrella"), (True, YESTERDAY)),
        "I bought an umbrella yesterday.",
        "Ich habe gestern einen Regenschirm gekauft.",
    ),
    (
        "past",
        (I, do("visit", "the - university"), (True, YESTERDAY)),
        "I visited the university yesterday.",
        "Ich habe gestern die Universität besucht.",
    ),
    ("introduction", (False, a("our old car")), "This is our old car.", "Das ist unser altes Auto."),
    ("introduction", (True, a("their new *key")), "Are these their new keys?", "Sind das ihre neuen Schlüssel?"),
    ("introduction", (False, a("your expensive coat")), "This is your expensive coat.", "Das ist Ihr teurer Mantel."),
    ("possession", (True, YOU, a("a red bag")), "Do you have a red bag?", "Haben Sie eine rote Tasche?"),
    # dative: plural -n, weak nouns, contractions
    (
        "company",
        (True, I, verb("dance"), a("my - *brother")),
        "I danced with my brothers.",
        "Ich habe mit meinen Brüdern getanzt.",
    ),
    (
        "past",
        (I, do("help", "the tired boy"), (True, YESTERDAY)),
        "I helped the tired boy yesterday.",
        "Ich habe gestern dem müden Jungen geholfen.",
    ),
    (
        "gift",
        (False, SHE, verb("give"), a("her - *child"), a("a green ball")),
        "She gives her children a green ball.",
        "Sie gibt ihren Kindern einen grünen Ball.",
    ),
    (
        "future",
        (g.WILL, THEY, do("take part in", "the - concert"), TOMORROW),
        "They will take part in the concert tomorrow.",
        "Sie werden morgen am Konzert teilnehmen.",
    ),
    (
        "directions",
        (Phrase("how do I get to", "wie komme ich"), a("the old church")),
        "How do I get to the old church?",
        "Wie komme ich zur alten Kirche?",
    ),
    (
        "location",
        (a("a quiet hotel"), NEXT_TO, a("the big train station")),
        "There is a quiet hotel next to the big train station.",
        "Es gibt ein ruhiges Hotel neben dem großen Bahnhof.",
    ),
    (
        "location",
        (a("the - museum"), Phrase("opposite", "gegenüber"), a("the - bridge")),
        "The museum is opposite the bridge.",
        "Das Museum ist gegenüber der Brücke.",
    ),
    # separable verbs
    (
        "right now",
        (I, do("pick up", "your - sister")),
        "I am picking up your sister right now.",
        "Ich hole gerade Ihre Schwester ab.",
    ),
    (
        "that clause",
        ((("think", "thinks", "think"), ("glaube", "glaubt", "glauben")), SHE, I, do("take along", "his - bag")),
        "She thinks that I take along his bag.",
        "Sie glaubt, dass ich seine Tasche mitnehme.",
    ),
    (
        "infinitive",
        (Phrase("important", "wichtig"), do("call", "our - uncle")),
        "It is important to call our uncle.",
        "Es ist wichtig, unseren Onkel anzurufen.",
    ),
    ("modal", (HAVE_TO, SHE, do("get up"), TOMORROW), "She has to get up tomorrow.", "Sie muss morgen aufstehen."),
    (
        "request",
        (True, do("switch off", "the - lamp"), NO_TIME),
        "Please do not switch off the lamp.",
        "Bitte schalten Sie die Lampe nicht aus.",
    ),
    (
        "date",
        (a("our important meeting"), verb("take place"), Phrase("on May 3", "am 3. Mai"), AT_7),
        "Our important meeting takes place on May 3 at 7:30.",
        "Unsere wichtige Besprechung findet am 3. Mai um 7:30 Uhr statt.",
    ),
    (
        "schedule",
        (Phrase("next", "nächste"), (a("the - ferry"), verb("depart"), Phrase("to Athens", "nach Athen")), AT_7),
        "The next ferry to Athens departs at 7:30.",
        "Die nächste Fähre nach Athen fährt um 7:30 Uhr ab.",
    ),
    # the perfect with sein and haben; nicht, schon, kein
    (
        "fronted time",
        ((True, YESTERDAY), ANNA, to("fly", "Vienna", "Wien")),
        "Yesterday Anna flew to Vienna.",
        "Gestern ist Anna nach Wien geflogen.",
    ),
    (
        "because clause",
        (I, IS_SAD, True, THEY, do("arrive")),
        "I am sad because they have arrived.",
        "Ich bin traurig, weil sie angekommen sind.",
    ),
    (
        "negation",
        ("nicht", True, SHE, do("find", "the - hotel")),
        "She did not find the hotel.",
        "Sie hat das Hotel nicht gefunden.",
    ),
    (
        "negation",
        ("nicht", False, I, do("wait for", "the - train")),
        "I do not wait for the train.",
        "Ich warte nicht auf den Zug.",
    ),
    (
        "already",
        (SHE, do("see", "the - castle")),
        "She has already seen the castle.",
        "Sie hat das Schloss schon gesehen.",
    ),
    (
        "not a",
        ("", False, THEY, do("eat", "no fresh roll")),
        "They do not eat a fresh roll.",
        "Sie essen kein frisches Brötchen.",
    ),
    # questions and other clauses
    (
        "wh question",
        (WHEN, False, YOU, do("open", "the - window")),
        "When do you open the window?",
        "Wann öffnen Sie das Fenster?",
    ),
    (
        "modal question",
        ((WOULD_LIKE_TO, YOU), do("order", "a hot tea"), NO_TIME),
        "Would you like to order a hot tea?",
        "Möchten Sie einen heißen Tee bestellen?",
    ),
    (
        "if clause",
        (ANNA, do("lose", "her - key"), CAN, I, verb("wait")),
        "If Anna loses her key, I can wait.",
        "Wenn Anna ihren Schlüssel verliert, kann ich warten.",
    ),
    (
        "indirect question",
        (Phrase("do you know", "wissen Sie"), WHEN, SHE, do("come back")),
        "Do you know when she comes back?",
        "Wissen Sie, wann sie zurückkommt?",
    ),
    (
        "purpose",
        (True, I, to("travel", "Rome", "Rom"), do("meet", "the - prince")),
        "I traveled to Rome to meet the prince.",
        "Ich bin nach Rom gereist, um den Prinzen zu treffen.",
    ),
    (
        "relative clause",
        ((a("the - coat"), verb("try on"), adjective("expensive")), SHE, YESTERDAY),
        "The coat that she tried on yesterday is expensive.",
        "Der Mantel, den sie gestern anprobiert hat, ist teuer.",
    ),
    (
        "comparison",
        (True, (a("my - *suitcase"), adjective("heavy"), a("your - bag"))),
        "Are my suitcases heavier than your bag?",
        "Sind meine Koffer schwerer als Ihre Tasche?",
    ),
    # numbers and prices
    (
        "price",
        ((a("this sweet apple"), Phrase("3.50 euros", "3,50 Euro")),),
        "This sweet apple costs 3.50 euros.",
        "Dieser süße Apfel kostet 3,50 Euro.",
    ),
    (
        "order",
        (I, a("2 fresh *roll", ("two", "zwei")), a("a - coffee")),
        "I would like two fresh rolls and a coffee, please.",
        "Ich möchte zwei frische Brötchen und einen Kaffee, bitte.",
    ),
]


@pytest.mark.parametrize(("name", "filling", "english", "german"), RENDERED)
def test_a_filling_reads_as_a_native_speaker_would_say_it(
    name: str, filling: tuple[object, ...], english: str, german: str
) -> None:
    assert by_name()[name].render(*filling) == (english, german)


def test_lemmas_of_a_filling_come_from_its_parts() -> None:
    assert lemmas_of((I, do("buy", "a red bag"), (False, MONDAY))) == ("buy", "red", "bag")
