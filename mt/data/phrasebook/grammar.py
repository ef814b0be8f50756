"""Parallel English and German grammar: agreement of noun phrases, verb groups, and German word order.

Native speakers accept several German word orders. This grammar always uses the same one: the time precedes the object;
"nicht" and "schon" follow an object without a preposition, but precede an object with a preposition; the finite verb
is in second position, but last after a conjunction.
"""

from dataclasses import dataclass
from enum import Enum

from mt.data.phrasebook.lexicon import Adjective, Noun, Verb


class Person(Enum):
    """Person and number of a subject, with which the verb agrees. PLURAL includes the polite German "Sie"."""

    FIRST = "I"
    THIRD = "he"
    PLURAL = "we"


class Case(Enum):
    """German case."""

    NOMINATIVE = 0
    ACCUSATIVE = 1
    DATIVE = 2


@dataclass(frozen=True)
class Phrase:
    """A part of an English sentence and its German translation. `lemmas` are the lemmas of the content words."""

    english: str
    german: str
    lemmas: tuple[str, ...] = ()


@dataclass(frozen=True)
class Subject:
    """An English subject and its German translation."""

    english: str
    german: str
    person: Person
    lemmas: tuple[str, ...] = ()


# English determiners, and the German stems to which endings are added for agreement with the noun.
POSSESSIVES = {"my": "mein", "your": "Ihr", "his": "sein", "her": "ihr", "our": "unser", "their": "ihr"}
EIN_WORDS = {"a": "ein", "no": "kein", **POSSESSIVES}
# Endings for each case, in the order masculine, feminine, neuter, plural.
EIN_ENDINGS = (("", "e", "", "e"), ("en", "e", "", "e"), ("em", "er", "em", "en"))
DIESER_ENDINGS = (("er", "e", "es", "e"), ("en", "e", "es", "e"), ("em", "er", "em", "en"))
DER = (("der", "die", "das", "die"), ("den", "die", "das", "die"), ("dem", "der", "dem", "den"))
# Adjective endings after der and dieser (weak); after ein and mein (mixed); without an article or after a number
# (strong plural).
WEAK = (("e", "e", "e", "en"), ("en", "e", "e", "en"), ("en", "en", "en", "en"))
MIXED = (("er", "e", "es", "en"), ("en", "e", "es", "en"), ("en", "en", "en", "en"))
STRONG_PLURAL = ("e", "e", "en")
CONTRACTIONS = {"zu dem": "zum", "zu der": "zur", "von dem": "vom", "an dem": "am", "in dem": "im"}


def column(noun: Noun, plural: bool) -> int:
    """Return the column for `noun` in tables of endings such as WEAK: masculine 0, feminine 1, neuter 2, plural 3."""
    return 3 if plural else "mfn".index(noun.gender)


def noun_form(noun: Noun, case: Case, plural: bool) -> str:
    """Return the declined German noun without article, such as "Jungen" (accusative) or "Häusern" (dative plural)."""
    if not plural:
        return noun.german if case is Case.NOMINATIVE else noun.oblique
    if case is Case.DATIVE and not noun.german_plural.endswith(("n", "s")):
        return noun.german_plural + "n"
    return noun.german_plural


def adjective_ending(determiner: str, noun: Noun, case: Case, plural: bool) -> str:
    """Return the ending of a German adjective before `noun`.

    `determiner` is the English determiner, or "" if there is none or a number in its place.
    """
    if not determiner:
        return STRONG_PLURAL[case.value]
    table = WEAK if determiner in ("the", "this") else MIXED
    return table[case.value][column(noun, plural)]


@dataclass(frozen=True)
class NounPhrase:
    """A noun with a determiner or number and, optionally, an adjective.

    `determiner` is "the", "this", a key of EIN_WORDS, or "" if there is a `number`. "no" is for negated sentences:
    English "not" with "a", German "kein". `number` is (English, German).
    """

    determiner: str
    noun: Noun
    plural: bool = False
    adjective: Adjective | None = None
    number: tuple[str, str] = ("", "")

    @property
    def lemmas(self) -> tuple[str, ...]:
        return (self.noun.lemma,) if self.adjective is None else (self.adjective.lemma, self.noun.lemma)

    def english(self) -> str:
        adjective = self.adjective.lemma if self.adjective else ""
        bare = words(adjective, self.noun.plural if self.plural else self.noun.lemma)
        if self.determiner in ("a", "no"):
            vowel = bare[0] in "aeiou" and not bare.startswith("uni")
            return words("an" if vowel else "a", bare)
        determiner = "these" if self.determiner == "this" and self.plural else self.determiner
        return words(determiner, self.number[0], bare)

    def german(self, case: Case) -> str:
        agreement = column(self.noun, self.plural)
        if self.determiner in EIN_WORDS:
            article = EIN_WORDS[self.determiner] + EIN_ENDINGS[case.value][agreement]
        elif self.determiner == "this":
            article = "dies" + DIESER_ENDINGS[case.value][agreement]
        else:
            article = DER[case.value][agreement] if self.determiner else ""
        ending = adjective_ending(self.determiner, self.noun, case, self.plural)
        adjective = self.adjective.stem + ending if self.adjective else ""
        return words(article, self.number[1], adjective, noun_form(self.noun, case, self.plural))

    def after(self, preposition: str, case: Case = Case.DATIVE) -> str:
        """Return `preposition` and the German noun phrase. Preposition and article are contracted, as in "zum"."""
        first, second, *rest = f"{preposition} {self.german(case)}".split()
        return words(CONTRACTIONS.get(f"{first} {second}", f"{first} {second}"), *rest)

    def subject(self) -> Subject:
        person = Person.PLURAL if self.plural else Person.THIRD
        return Subject(self.english(), self.german(Case.NOMINATIVE), person, self.lemmas)


class ObjectPosition(Enum):
    """Position of a German object: before "nicht" or, if the object has a preposition, after "nicht"."""

    BEFORE = 0
    AFTER = 1


@dataclass(frozen=True)
class Action:
    """A verb with its object. `english` and `german` are the object, and empty for an intransitive verb."""

    verb: Verb
    english: str = ""
    german: str = ""
    position: ObjectPosition = ObjectPosition.BEFORE
    lemmas: tuple[str, ...] = ()

    def middle_field(self, time: str = "", particle: str = "") -> str:
        """Return the German middle field: `time`, `particle` (such as "nicht") and the object, in the right order."""
        if self.position is ObjectPosition.AFTER:
            return words(time, particle, self.german)
        return words(time, self.german, particle)

    def with_form(self, form: str, time: str = "") -> str:
        """Return the English verb with its object. `form` is a form of the verb; its particle, if any, is added."""
        return words(form + self.verb.particle, self.english, time)


def act(verb: Verb, phrase: NounPhrase | None) -> Action:
    """Return the action with the object `phrase`, which gets the case or preposition that `verb` requires."""
    if phrase is None:
        return Action(verb, lemmas=(verb.lemma,))
    case = Case.DATIVE if verb.dative else Case.ACCUSATIVE
    english = f"to {phrase.english()}" if verb.preposition == "zu" else phrase.english()
    lemmas = (verb.lemma, *phrase.lemmas)
    if verb.preposition:
        return Action(verb, english, phrase.after(verb.preposition, case), ObjectPosition.AFTER, lemmas)
    return Action(verb, english, phrase.german(case), ObjectPosition.BEFORE, lemmas)


def travel(verb: Verb, city: Phrase) -> Action:
    """Return the action `verb` to a city, such as "travel to Vienna", "nach Wien reisen"."""
    return Action(verb, f"to {city.english}", f"nach {city.german}", ObjectPosition.AFTER, (verb.lemma,))


@dataclass(frozen=True)
class VerbGroup:
    """The German verbs of a clause, for main and subordinate clauses.

    A main clause has `finite` in second position and `tail` at the end, such as "hat" and "gekauft". A subordinate
    clause has `final` at the end, such as "gekauft hat".
    """

    finite: str
    tail: str
    final: str


@dataclass(frozen=True)
class Auxiliary:
    """An auxiliary verb, with one form for each Person.

    English statements use `english`. English questions use `helper` before the subject and `base` after it.
    """

    english: tuple[str, str, str]
    helper: tuple[str, str, str]
    base: str
    german: tuple[str, str, str]

    def verb_group(self, verb: Verb, person: Person) -> VerbGroup:
        finite = by_person(self.german, person)
        return VerbGroup(finite, infinitive(verb), f"{infinitive(verb)} {finite}")


BE = ("am", "is", "are")
MOECHTE = ("möchte", "möchte", "möchten")
SEIN = ("bin", "ist", "sind")
HAVE = ("have", "has", "have")
HABEN = ("habe", "hat", "haben")
DO = ("do", "does", "do")
WILL = Auxiliary(("will",) * 3, ("will",) * 3, "", ("werde", "wird", "werden"))
MODALS = (
    Auxiliary(("can",) * 3, ("can",) * 3, "", ("kann", "kann", "können")),
    Auxiliary(("should",) * 3, ("should",) * 3, "", ("sollte", "sollte", "sollten")),
    Auxiliary(("have to", "has to", "have to"), DO, "have to", ("muss", "muss", "müssen")),
    Auxiliary(("want to", "wants to", "want to"), DO, "want to", ("will", "will", "wollen")),
    Auxiliary(("would like to",) * 3, ("would",) * 3, "like to", MOECHTE),
)


def by_person(forms: tuple[str, str, str], person: Person) -> str:
    return forms[(Person.FIRST, Person.THIRD, Person.PLURAL).index(person)]


def infinitive(verb: Verb) -> str:
    return verb.prefix + verb.infinitive


def zu_infinitive(verb: Verb) -> str:
    """Return the infinitive with "zu": "zu kaufen", "abzuholen"."""
    return f"{verb.prefix}zu{verb.infinitive}" if verb.prefix else f"zu {verb.infinitive}"


def german_present(verb: Verb, person: Person) -> VerbGroup:
    stem = verb.infinitive[:-1] if verb.infinitive.endswith("ern") else verb.infinitive[:-2]
    finite = by_person((stem + "e", verb.german_third, verb.infinitive), person)
    return VerbGroup(finite, verb.prefix, verb.prefix + finite)


def german_perfect(verb: Verb, person: Person) -> VerbGroup:
    finite = by_person(SEIN if verb.sein else HABEN, person)
    return VerbGroup(finite, verb.german_participle, f"{verb.german_participle} {finite}")


def english_present(verb: Verb, person: Person) -> str:
    return verb.third if person is Person.THIRD else verb.base


def german_finite(verb: Verb, subject: Subject, past: bool) -> VerbGroup:
    return (german_perfect if past else german_present)(verb, subject.person)


def english_finite(verb: Verb, subject: Subject, past: bool) -> str:
    return verb.past if past else english_present(verb, subject.person)


def second(front: str, verb_group: VerbGroup, subject: str, middle_field: str) -> str:
    """Return a German main clause: `front`, the finite verb, `subject`, `middle_field`, the other verbs.

    `front` is empty in a yes-no question.
    """
    return words(front, verb_group.finite, subject, middle_field, verb_group.tail)


def last(conjunction: str, verb_group: VerbGroup, subject: str, middle_field: str) -> str:
    """Return a German subordinate clause: `conjunction`, `subject`, `middle_field`, all verbs."""
    return words(conjunction, subject, middle_field, verb_group.final)


def words(*parts: str) -> str:
    """Join the non-empty parts with spaces."""
    return " ".join(part for part in parts if part)


def sentence(text: str, mark: str = ".") -> str:
    return text[0].upper() + text[1:] + mark
