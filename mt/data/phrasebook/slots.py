"""Slots: finite sets of words and phrases that can occur at one position in a construction of the phrasebook.

An element of a slot is called a filling. A `Slot` can draw a random filling, and contains the number of fillings and
all word forms that occur in them. `split` uses the word forms: if a lemma is excluded from a construction in training,
each of its forms must occur in other constructions.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from math import prod
from random import Random
from typing import Any, Generic, TypeVar

from mt.data.phrasebook import grammar as g
from mt.data.phrasebook.grammar import Action, Case, NounPhrase, Person, Phrase, Subject
from mt.data.phrasebook.lexicon import Adjective, Verb, lexicon

T = TypeVar("T")
U = TypeVar("U")
Forms = frozenset[tuple[str, str]]
Sides = tuple[str, str]  # English, German


@dataclass(frozen=True)
class Slot(Generic[T]):
    """A set of `size` fillings. `draw` returns a random filling. `forms` has (lemma, form) of all words in fillings."""

    draw: Callable[[Random], T]
    size: int
    forms: Forms = frozenset()

    def map(self, change: Callable[[T], U]) -> "Slot[U]":
        return Slot(lambda random: change(self.draw(random)), self.size, self.forms)


@dataclass(frozen=True)
class Construction:
    """A type of sentence. `filling` draws the parts of a sentence, and `render` joins them to (English, German).

    A construction of weight w yields w sentences for each sentence of a construction of weight 1. Constructions that
    are harder to learn have a higher weight.
    """

    name: str
    render: Callable[..., Sides]
    filling: Slot[tuple[Any, ...]]
    weight: int = 1


def lemmas_of(part: object) -> tuple[str, ...]:
    """Return the lemmas of all content words in `part`, a filling or a part of a filling."""
    if isinstance(part, Action | NounPhrase | Phrase | Subject):
        return part.lemmas
    if isinstance(part, Verb | Adjective):
        return (part.lemma,)
    if isinstance(part, tuple):
        return tuple(lemma for inner in part for lemma in lemmas_of(inner))
    return ()


def any_of(*items: T) -> Slot[T]:
    return Slot(lambda random: random.choice(items), len(items))


def one_of(slots: Sequence[Slot[T]], weights: Iterable[int] = ()) -> Slot[T]:
    """Return the union of disjoint slots. Each draw first chooses a slot, with probabilities proportional to `weights`.

    Without `weights`, all slots are equally probable.
    """
    steps = list(accumulate(weights or [1] * len(slots)))
    forms = frozenset[tuple[str, str]]().union(*(slot.forms for slot in slots))
    size = sum(slot.size for slot in slots)
    return Slot(lambda random: random.choices(slots, cum_weights=steps)[0].draw(random), size, forms)


def together(*slots: Slot[Any]) -> Slot[tuple[Any, ...]]:
    forms = frozenset[tuple[str, str]]().union(*(slot.forms for slot in slots))
    return Slot(lambda random: tuple(slot.draw(random) for slot in slots), prod(slot.size for slot in slots), forms)


# Odds of (no adjective, an adjective).
NEVER = (1, 0)
SOME = (2, 1)
HALF = (1, 1)
ALWAYS = (0, 1)

# --- fillings ----------------------------------------------------------------------------------------------------

PRONOUNS = (
    (Subject("I", "ich", Person.FIRST),),
    (
        Subject("you", "Sie", Person.PLURAL),
        Subject("we", "wir", Person.PLURAL),
        Subject("they", "sie", Person.PLURAL),
    ),
    (Subject("he", "er", Person.THIRD), Subject("she", "sie", Person.THIRD)),
)
# The determiners of each category of nouns, and the categories that are used in the plural.
ALL = ("a", "the", *g.POSSESSIVES)
DETERMINERS: dict[str, tuple[str, ...]] = {
    "thing": ALL,
    "clothing": ALL,
    "device": ALL,
    "document": ALL,
    "vehicle": ALL,
    "food": ("a", "the"),
    "drink": ("a", "the"),
    "venue": ("a", "the"),
    "landmark": ("the",),
    "kin": tuple(g.POSSESSIVES),
    "spouse": ("my", "your", "his", "her"),
    "people": ("the",),
    "line": ("the",),
    "local": ("the",),
    "ferry": ("the",),
    "seat": ("a", "the"),
    "event": ("the", "our"),
    "lodging": ("a", "the"),
    "opening": ("the", "my", "our"),
}
PLURAL_CATEGORIES = ("thing", "clothing", "device", "document", "food", "kin", "people")
GOODS = ("thing", "clothing", "device", "food", "drink", "vehicle")
DESCRIBED = (*GOODS, "document", "venue", "landmark", "lodging", "opening")
HUMAN = ("kin", "spouse", "people")


@cache
def noun_phrases(
    category: str,
    determiners: tuple[str, ...],
    case: Case = Case.ACCUSATIVE,
    plural: bool = True,
    adjectives: tuple[int, int] = NEVER,
) -> Slot[NounPhrase]:
    """Return the noun phrases of the nouns of a category. If `plural` is true, they include plural phrases.

    `case` is the case in which the phrases are used. `adjectives` are the odds of (no adjective, an adjective).
    """
    nouns = lexicon().nouns[category]
    plurals = plural and category in PLURAL_CATEGORIES
    shapes = [(word, False) for word in determiners if word]
    shapes += [(word, True) for word in determiners if word not in ("a", "no") and plurals]
    numbered = [(noun, shape) for noun in nouns for shape in shapes if noun.german_plural or not shape[1]]
    choices = {noun: [shape for known, shape in numbered if known is noun] for noun in nouns}
    nouns = tuple(noun for noun in nouns if choices[noun])
    fitting = lexicon().adjectives_for(category) if adjectives[1] else ()
    forms = {(noun.lemma, g.noun_form(noun, case, shape[1])) for noun, shape in numbered}
    endings = {(g.adjective_ending(shape[0], noun, case, shape[1])) for noun, shape in numbered}
    forms |= {(adjective.lemma, ending) for adjective in fitting for ending in endings}

    def draw(random: Random) -> NounPhrase:
        noun = random.choice(nouns)
        singular = [shape for shape in choices[noun] if not shape[1]]
        several = [shape for shape in choices[noun] if shape[1]]
        shape = random.choice(several if several and (not singular or random.random() < 0.35) else singular)
        described = fitting and random.randrange(sum(adjectives)) >= adjectives[0]
        number = random.choice(lexicon().numbers) if not shape[0] else ("", "")
        return NounPhrase(shape[0], noun, shape[1], random.choice(fitting) if described else None, number)

    per_phrase = (len(fitting) + (1 if adjectives[0] else 0)) or 1
    size = sum(len(lexicon().numbers) if not shape[0] else 1 for _, shape in numbered) * per_phrase
    return Slot(draw, size, frozenset(forms))


def nouns_of(categories: Sequence[str], slot: Callable[[str], Slot[T]]) -> Slot[T]:
    """Return the union of `slot(category)` for all `categories`. Each has the weight max(6, number of its nouns)."""
    return one_of(
        [slot(category) for category in categories], [max(6, len(lexicon().nouns[category])) for category in categories]
    )


@cache
def cities() -> Slot[Phrase]:
    return any_of(*(Phrase(english, german) for english, german in lexicon().cities))


def verb_forms(verb: Verb, forms: Iterable[str]) -> Forms:
    """Return (lemma, form) for each of `forms`, which are names of verb forms.

    If the German verb has no separable prefix, the names "final", "zu" and "infinitive" are replaced by "second",
    because these forms contain the same word.
    """
    alike = {} if verb.prefix else {"final": "second", "zu": "second", "infinitive": "second"}
    return frozenset((verb.lemma, alike.get(form, form)) for form in forms)


def actions(
    verbs: Iterable[Verb],
    forms: str,
    adjectives: tuple[int, int] = NEVER,
    determiners: Callable[[str], tuple[str, ...]] = DETERMINERS.__getitem__,
) -> Slot[Action]:
    """Return the actions of `verbs` with all possible objects. All verbs are equally probable.

    `forms` has the names of the verb forms in which the construction uses the verbs, separated by spaces.
    """

    def of(verb: Verb) -> Slot[Action]:
        used = verb_forms(verb, forms.split())
        if verb.categories == ("none",):
            return Slot(lambda _: g.act(verb, None), 1, used)
        if verb.categories == ("city",):
            return Slot(lambda random: g.travel(verb, cities().draw(random)), cities().size, used)
        case = Case.DATIVE if verb.dative else Case.ACCUSATIVE
        objects = nouns_of(
            verb.categories, lambda category: noun_phrases(category, determiners(category), case, True, adjectives)
        )
        return Slot(lambda random: g.act(verb, objects.draw(random)), objects.size, used | objects.forms)

    return one_of([of(verb) for verb in verbs])


def definite(category: str) -> tuple[str, ...]:
    return tuple(word for word in DETERMINERS[category] if word != "a")


def pronouns() -> Slot[Subject]:
    return one_of([any_of(*group) for group in PRONOUNS])


@cache
def relatives(case: Case) -> Slot[NounPhrase]:
    return nouns_of(("kin", "spouse"), lambda category: noun_phrases(category, DETERMINERS[category], case))


def short_subjects() -> Slot[Subject]:
    """Return pronouns and names, the subjects of sentences whose other parts are long."""
    return one_of([pronouns(), names()], [3, 1])


def names() -> Slot[Subject]:
    return any_of(*(Subject(name, name, Person.THIRD) for name in lexicon().names))


@cache
def subjects() -> Slot[Subject]:
    family = relatives(Case.NOMINATIVE).map(NounPhrase.subject)
    people = noun_phrases("people", ("the",), Case.NOMINATIVE, adjectives=SOME).map(NounPhrase.subject)
    return one_of([*(any_of(*group) for group in PRONOUNS), names(), family, people], [4, 4, 3, 2, 2, 2])


def clock() -> Slot[Phrase]:
    times = [f"{hour}:{minute}" for hour in range(6, 24) for minute in ("00", "15", "30", "45")]
    return any_of(*(Phrase(f"at {time}", f"um {time} Uhr") for time in times))


def dates() -> Slot[Phrase]:
    months = lexicon().months
    days = [(english, german, day) for english, german in months for day in range(1, 29)]
    return any_of(*(Phrase(f"on {english} {day}", f"am {day}. {german}") for english, german, day in days))


def weekdays() -> Slot[Phrase]:
    return any_of(*(Phrase(f"on {english}", f"am {german}") for english, german in lexicon().days))


def present_times() -> Slot[Phrase]:
    fixed = (
        Phrase("today", "heute"),
        Phrase("every day", "jeden Tag"),
        Phrase("every week", "jede Woche"),
        Phrase("in the morning", "am Morgen"),
        Phrase("in the afternoon", "am Nachmittag"),
        Phrase("in the evening", "am Abend"),
        Phrase("in summer", "im Sommer"),
        Phrase("in winter", "im Winter"),
    )
    return one_of([any_of(*fixed), weekdays(), clock()], [3, 2, 1])


def future_times() -> Slot[Phrase]:
    fixed = (
        Phrase("tomorrow", "morgen"),
        Phrase("next week", "nächste Woche"),
        Phrase("next year", "nächstes Jahr"),
        Phrase("this evening", "heute Abend"),
        Phrase("tomorrow evening", "morgen Abend"),
    )
    after = any_of(*(Phrase(f"in {english} days", f"in {german} Tagen") for english, german in lexicon().numbers))
    return one_of([any_of(*fixed), weekdays(), dates(), after], [3, 1, 1, 1])


def near_times() -> Slot[Phrase]:
    fixed = (
        Phrase("today", "heute"),
        Phrase("tomorrow", "morgen"),
        Phrase("this evening", "heute Abend"),
        Phrase("tomorrow evening", "morgen Abend"),
    )
    return one_of([any_of(*fixed), weekdays(), clock()], [3, 2, 1])


def past_times() -> Slot[Phrase]:
    fixed = (
        Phrase("yesterday", "gestern"),
        Phrase("last week", "letzte Woche"),
        Phrase("last year", "letztes Jahr"),
        Phrase("this morning", "heute Morgen"),
        Phrase("yesterday evening", "gestern Abend"),
    )
    ago = any_of(*(Phrase(f"{english} days ago", f"vor {german} Tagen") for english, german in lexicon().numbers))
    return one_of([any_of(*fixed), weekdays(), dates(), ago], [3, 1, 1, 1])


def starts() -> Slot[Phrase]:
    """Return the first days of a stay, such as "from May 3"."""
    return dates().map(lambda date: Phrase(f"from{date.english[2:]}", f"ab dem{date.german[2:]}"))


def nothing() -> Slot[Phrase]:
    return any_of(Phrase("", ""))


def predicates(adjectives: Iterable[Adjective], form: str = "predicate") -> Slot[Adjective]:
    chosen = tuple(adjectives)
    forms = frozenset((adjective.lemma, form) for adjective in chosen)
    return Slot(lambda random: random.choice(chosen), len(chosen), forms)


def verbs_of(verbs: Iterable[Verb], forms: str) -> Slot[Verb]:
    chosen = tuple(verbs)
    used = frozenset(form for verb in chosen for form in verb_forms(verb, forms.split()))
    return Slot(lambda random: random.choice(chosen), len(chosen), used)


def active() -> tuple[Verb, ...]:
    """Return the verbs that can be used in requests and in the progressive."""
    return tuple(verb for verb in lexicon().verbs if not verb.stative)


def accusative() -> tuple[Verb, ...]:
    return tuple(verb for verb in lexicon().verbs if not verb.preposition and not verb.dative)


def direct() -> tuple[Verb, ...]:
    """Return the verbs whose objects are in the accusative and are negated with "kein"."""
    categories = {*GOODS, "document", "lodging", "seat"}
    return tuple(verb for verb in accusative() if categories.issuperset(verb.categories))
