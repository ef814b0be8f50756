"""Constructions by topic: requests, things and people, places, trains, dates."""

from collections.abc import Iterable

from mt.data.phrasebook import grammar as g
from mt.data.phrasebook import slots as s
from mt.data.phrasebook.grammar import Action, Auxiliary, Case, NounPhrase, Person, Phrase, Subject, sentence, words
from mt.data.phrasebook.lexicon import Adjective, Verb, lexicon
from mt.data.phrasebook.slots import Construction, Sides, Slot, any_of, noun_phrases, nouns_of, one_of, together

PORTS = ("Hamburg", "Venice", "Copenhagen", "Lisbon", "Athens")

# --- requests --------------------------------------------------------------------------------------------------------


def _request(negative: bool, action: Action, time: Phrase) -> Sides:
    english = words("please", "do not" if negative else "", action.with_form(action.verb.base, time.english))
    middle_field = action.middle_field(time.german, "nicht" if negative else "")
    german = words("bitte", action.verb.infinitive, "Sie", middle_field, action.verb.prefix)
    return sentence(english), sentence(german)


def _polite(action: Action, time: Phrase) -> Sides:
    english = words("could you please", action.with_form(action.verb.base, time.english))
    german = words("könnten Sie bitte", action.middle_field(time.german), g.infinitive(action.verb))
    return sentence(english, "?"), sentence(german, "?")


def _order(subject: Subject, food: NounPhrase, drink: NounPhrase) -> Sides:
    english = words(subject.english, "would like", food.english(), "and", drink.english())
    finite = g.by_person(g.MOECHTE, subject.person)
    german = words(subject.german, finite, food.german(Case.ACCUSATIVE), "und", drink.german(Case.ACCUSATIVE))
    return sentence(english, ", please."), sentence(german, ", bitte.")


# Verb, object, number, unit and time of a reservation: "book" "a table" for "two" "people" "on Monday".
Booking = tuple[Verb, NounPhrase, tuple[str, str], Phrase, Phrase]


def _reservation(subject: Subject, booking: Booking) -> Sides:
    verb, place, number, unit, time = booking
    stay = words(place.english(), "for", number[0], unit.english, time.english)
    english = words(subject.english, "would like to", verb.base, stay)
    finite, infinitive = g.by_person(g.MOECHTE, subject.person), g.infinitive(verb)
    room = words(place.german(Case.ACCUSATIVE), "für", number[1], unit.german)
    german = words(subject.german, finite, time.german, room, infinitive)
    return sentence(english), sentence(german)


def requests() -> tuple[Construction, ...]:
    speakers = any_of(s.PRONOUNS[0][0], s.PRONOUNS[1][1])
    time = one_of([s.nothing(), s.near_times()])
    action = s.actions(s.active(), "infinitive base second", determiners=s.definite)
    favour = s.actions(s.active(), "infinitive base", s.SOME)
    dishes = noun_phrases("food", ("a", ""), adjectives=s.HALF)
    drinks = noun_phrases("drink", ("a",), adjectives=s.HALF)
    return (
        Construction("request", _request, together(any_of(False, True), action, time)),
        Construction("polite request", _polite, together(favour, time)),
        Construction("order", _order, together(speakers, dishes, drinks)),
        Construction("reservation", _reservation, together(s.short_subjects(), _bookings())),
    )


def _joined(parts: tuple[Phrase, ...]) -> Phrase:
    return Phrase(words(*(part.english for part in parts)), words(*(part.german for part in parts)))


def _bookings() -> Slot[Booking]:
    """Return reservations of a table for a number of people at a time, and of a room for a number of nights."""
    verbs = {verb.lemma: s.verbs_of([verb], "infinitive base") for verb in lexicon().verbs}
    numbers = any_of(*lexicon().numbers)
    people, nights, weeks = Phrase("people", "Personen"), Phrase("nights", "Nächte"), Phrase("weeks", "Wochen")
    hours = together(s.weekdays(), s.clock()).map(_joined)
    table = together(verbs["reserve"], noun_phrases("seat", ("a",)), numbers, any_of(people), hours)
    rooms = noun_phrases("lodging", ("a",), adjectives=s.HALF)
    starts = one_of([s.nothing(), s.starts()])
    stay = together(one_of([verbs["rent"], verbs["reserve"]]), rooms, numbers, any_of(people, nights, weeks), starts)
    return one_of([table, stay], [1, 3]).map(lambda drawn: (drawn[0], drawn[1], drawn[2], drawn[3], drawn[4]))


# --- things and people -----------------------------------------------------------------------------------------------


def _possession(is_question: bool, subject: Subject, thing: NounPhrase) -> Sides:
    german = thing.german(Case.ACCUSATIVE)
    finite = g.by_person(g.HABEN, subject.person)
    if is_question:
        english = words(g.by_person(g.DO, subject.person), subject.english, "have", thing.english())
        return sentence(english, "?"), sentence(words(finite, subject.german, german), "?")
    english = words(subject.english, g.by_person(g.HAVE, subject.person), thing.english())
    return sentence(english), sentence(words(subject.german, finite, german))


def _quantity(subject: Subject, action: Action) -> Sides:
    english = words(subject.english, action.with_form(g.english_present(action.verb, subject.person)))
    group = g.german_present(action.verb, subject.person)
    return sentence(english), sentence(g.second(subject.german, group, "", action.middle_field()))


def _price(offer: tuple[NounPhrase, Phrase]) -> Sides:
    thing, price = offer
    german = thing.german(Case.NOMINATIVE)
    if price.english:
        english = words(thing.english(), "cost" if thing.plural else "costs", price.english)
        return sentence(english), sentence(words(german, "kosten" if thing.plural else "kostet", price.german))
    english = words("how much", "do" if thing.plural else "does", thing.english(), "cost")
    return sentence(english, "?"), sentence(words("wie viel", "kosten" if thing.plural else "kostet", german), "?")


def _description(item: tuple[NounPhrase, Adjective, Phrase]) -> Sides:
    noun, adjective, degree = item
    english = words(noun.english(), "are" if noun.plural else "is", degree.english, adjective.lemma)
    german = words(noun.german(Case.NOMINATIVE), "sind" if noun.plural else "ist", degree.german, adjective.german)
    return sentence(english), sentence(german)


def _comparison(is_question: bool, item: tuple[NounPhrase, Adjective, NounPhrase]) -> Sides:
    noun, adjective, other = item
    finite, german_finite = ("are", "sind") if noun.plural else ("is", "ist")
    end = words(adjective.comparative, "than", other.english())
    german_end = words(adjective.german_comparative, "als", other.german(Case.NOMINATIVE))
    subject, german_subject = noun.english(), noun.german(Case.NOMINATIVE)
    if is_question:
        german = words(german_finite, german_subject, german_end)
        return sentence(words(finite, subject, end), "?"), sentence(german, "?")
    return sentence(words(subject, finite, end)), sentence(words(german_subject, german_finite, german_end))


def _gift(past: bool, subject: Subject, verb: Verb, receiver: NounPhrase, thing: NounPhrase) -> Sides:
    finite = g.english_finite(verb, subject, past)
    english = words(subject.english, finite, receiver.english(), thing.english())
    middle_field = words(receiver.german(Case.DATIVE), thing.german(Case.ACCUSATIVE))
    return sentence(english), sentence(g.second(subject.german, g.german_finite(verb, subject, past), "", middle_field))


def _prices(amounts: range) -> Slot[Phrase]:
    sums = [(euros, cents) for euros in amounts for cents in ("", "50", "80", "95")]
    rows = [(f"{e}.{c} euros", f"{e},{c} Euro") if c else (f"{e} euros", f"{e} Euro") for e, c in sums]
    return any_of(*(Phrase(english, german) for english, german in rows))


def _priced(category: str) -> Slot[NounPhrase]:
    return noun_phrases(category, ("the", "this"), Case.NOMINATIVE, adjectives=s.HALF)


def _introduction(is_question: bool, thing: NounPhrase) -> Sides:
    german = thing.german(Case.NOMINATIVE)
    if is_question:
        english = words("are these" if thing.plural else "is this", thing.english())
        return sentence(english, "?"), sentence(words("sind das" if thing.plural else "ist das", german), "?")
    english = words("these are" if thing.plural else "this is", thing.english())
    return sentence(english), sentence(words("das sind" if thing.plural else "das ist", german))


def _introduced() -> Slot[NounPhrase]:
    """Return noun phrases for "This is ...": members of a family, and things, places and events with an adjective."""
    owned = ("a", "my", "your", "his", "her", "our", "their")
    categories = ("thing", "clothing", "device", "vehicle", "document", "venue", "landmark", "event", "food")
    determiners = {category: ("a",) if category in ("venue", "landmark", "food") else owned for category in categories}
    things = nouns_of(
        categories, lambda category: noun_phrases(category, determiners[category], Case.NOMINATIVE, adjectives=s.ALWAYS)
    )
    return one_of([things, s.relatives(Case.NOMINATIVE)], [7, 1])


DEGREES = (Phrase("very", "sehr"), Phrase("too", "zu"), Phrase("quite", "ziemlich"))
PLAIN = (Phrase("not", "nicht"), Phrase("", ""))


def _described(category: str) -> Slot[tuple[NounPhrase, Adjective, Phrase]]:
    """Return (noun phrase, adjective, degree) for the nouns of a category. A degree is "very", "not", "" and so on."""
    if category in ("kin", "spouse"):
        nouns = noun_phrases(category, s.DETERMINERS[category], Case.NOMINATIVE)
        adjectives = lexicon().adjectives_for("people")
    else:
        owned = ("the", "this", "my", "your", "our") if category in ("thing", "clothing", "device") else ("the", "this")
        nouns, adjectives = noun_phrases(category, owned, Case.NOMINATIVE), lexicon().adjectives_for(category)
    gradable = s.predicates(adjective for adjective in adjectives if adjective.comparative)
    absolute = [adjective for adjective in adjectives if not adjective.comparative]
    said = [together(nouns, gradable, any_of(*DEGREES, *PLAIN))]
    weights = [len(adjectives) - len(absolute)]
    if absolute:
        said.append(together(nouns, s.predicates(absolute), any_of(*PLAIN)))
        weights.append(len(absolute))
    return one_of(said, weights).map(lambda parts: (parts[0], parts[1], parts[2]))


def _comparable(category: str) -> list[Adjective]:
    """Return the adjectives with which two nouns of a category can be compared.

    Adjectives for temporary states, such as "hungry", are excluded.
    """
    adjectives = lexicon().adjectives_for("people" if category == "kin" else category)
    return [adjective for adjective in adjectives if adjective.comparative and "state" not in adjective.categories]


def _compared(category: str) -> Slot[tuple[NounPhrase, Adjective, NounPhrase]]:
    owned = category in ("thing", "clothing", "device", "vehicle", "kin")
    first = noun_phrases(category, ("my", "our") if owned else ("this",), Case.NOMINATIVE, adjectives=s.SOME)
    other = noun_phrases(category, ("your", "his", "her", "their"), Case.NOMINATIVE)
    chosen = s.predicates(_comparable(category), "comparative")
    return together(first, chosen, other).map(lambda parts: (parts[0], parts[1], parts[2]))


def things() -> tuple[Construction, ...]:
    subject = s.subjects()
    either = any_of(False, True)
    categories = ("thing", "clothing", "device", "vehicle", "lodging", "document")
    owned = nouns_of(categories, lambda category: noun_phrases(category, ("a",), adjectives=s.ALWAYS))
    counted = [
        verb for verb in s.direct() if {"thing", "clothing", "device", "document", "food"}.issuperset(verb.categories)
    ]
    several = s.actions(counted, "second third base", s.HALF, lambda category: ("",))
    priced = nouns_of(s.GOODS, _priced)
    meals = nouns_of(("food", "drink"), _priced)
    wares = nouns_of(("thing", "clothing", "device"), _priced)
    questions = together(priced, s.nothing())
    offers = one_of(
        [together(meals, _prices(range(2, 10))), together(wares, _prices(range(10, 100, 5))), questions], [1, 2, 1]
    )
    comparing = (*s.GOODS, "lodging", "kin")
    compared = one_of(
        [_compared(category) for category in comparing], [len(_comparable(category)) for category in comparing]
    )
    described = one_of([nouns_of(s.DESCRIBED, _described), nouns_of(s.HUMAN, _described)], [2, 1])
    given = nouns_of(("thing", "clothing"), lambda category: noun_phrases(category, ("a",), adjectives=s.HALF))
    giving = s.verbs_of(lexicon().giving, "second third base participle past")
    return (
        Construction("possession", _possession, together(either, subject, owned)),
        Construction("quantity", _quantity, together(subject, several)),
        Construction("price", _price, together(offers)),
        Construction("description", _description, together(described)),
        Construction("introduction", _introduction, together(either, _introduced())),
        Construction("comparison", _comparison, together(either, compared)),
        Construction("gift", _gift, together(either, subject, giving, s.relatives(Case.DATIVE), given)),
    )


# --- places, trains, dates -------------------------------------------------------------------------------------------


def _directions(frame: Phrase, place: NounPhrase) -> Sides:
    german = place.german(Case.NOMINATIVE) if frame.german.endswith("wo ist") else place.after("zu")
    return sentence(words(frame.english, place.english()), "?"), sentence(words(frame.german, german), "?")


def _location(place: NounPhrase, where: Phrase, landmark: NounPhrase) -> Sides:
    behind = words(where.english, landmark.english())
    german = words(where.german, landmark.german(Case.DATIVE))
    if place.determiner == "a":
        english = words("there is", place.english(), behind)
        return sentence(english), sentence(words("es gibt", place.german(Case.ACCUSATIVE), german))
    english = words(place.english(), "is", behind)
    return sentence(english), sentence(words(place.german(Case.NOMINATIVE), "ist", german))


def _schedule(which: Phrase, journey: tuple[NounPhrase, Verb, Phrase], time: Phrase) -> Sides:
    line, verb, way = journey
    noun = line.noun
    english = words("the", which.english, noun.lemma, way.english, verb.third, time.english)
    train = words(g.DER[Case.NOMINATIVE.value][g.column(noun, False)], which.german, noun.german, way.german)
    return sentence(english), sentence(g.second(train, g.german_present(verb, Person.THIRD), "", time.german))


def _journeys() -> Slot[tuple[NounPhrase, Verb, Phrase]]:
    """Return departures to and arrivals from places, as (noun phrase of a train, ferry or bus; verb; place)."""
    depart, arrive = lexicon().departing
    cities = lexicon().cities
    ports = [city for city in cities if city[0] in PORTS]
    landmarks = noun_phrases("landmark", ("the",), Case.DATIVE)

    def to(towns: Iterable[tuple[str, str]]) -> Slot[Phrase]:
        return any_of(*(Phrase(f"to {english}", f"nach {german}") for english, german in towns))

    def out_of(towns: Iterable[tuple[str, str]]) -> Slot[Phrase]:
        return any_of(*(Phrase(f"from {english}", f"aus {german}") for english, german in towns))

    across = landmarks.map(lambda place: Phrase(f"to {place.english()}", place.after("zu"), place.lemmas))
    back = landmarks.map(lambda place: Phrase(f"from {place.english()}", place.after("von"), place.lemmas))
    ways = {"line": (to(cities), out_of(cities)), "ferry": (to(ports), out_of(ports)), "local": (across, back)}

    def of(category: str) -> Slot[tuple[NounPhrase, Verb, Phrase]]:
        lines = noun_phrases(category, ("the",), Case.NOMINATIVE)
        to_place, from_place = ways[category]
        leaving = together(lines, s.verbs_of([depart], "second third"), to_place)
        coming = together(lines, s.verbs_of([arrive], "second third"), from_place)
        return one_of([leaving, coming]).map(lambda parts: (parts[0], parts[1], parts[2]))

    return nouns_of(tuple(ways), of)


def _transport(modal: Auxiliary, subject: Subject, city: Phrase, line: NounPhrase, time: Phrase) -> Sides:
    helper = g.by_person(modal.english, subject.person)
    english = words(subject.english, helper, "travel to", city.english, "by", line.noun.lemma, time.english)
    finite = g.by_person(modal.german, subject.person)
    ride = words(time.german, line.after("mit"), "nach", city.german)
    return sentence(english), sentence(words(subject.german, finite, ride, "reisen"))


def _date(event: NounPhrase, verb: Verb, day: Phrase, hour: Phrase) -> Sides:
    english = words(event.english(), verb.third + verb.particle, day.english, hour.english)
    group = g.german_present(verb, Person.THIRD)
    german = g.second(event.german(Case.NOMINATIVE), group, "", words(day.german, hour.german))
    return sentence(english), sentence(german)


def _places(case: Case) -> Slot[NounPhrase]:
    return nouns_of(("venue", "landmark"), lambda category: noun_phrases(category, ("the",), case, adjectives=s.HALF))


def travel() -> tuple[Construction, ...]:
    where = any_of(Phrase("where is", "wo ist"), Phrase("excuse me, where is", "Entschuldigung, wo ist"))
    way = any_of(
        Phrase("how do I get to", "wie komme ich"),
        Phrase("excuse me, how do I get to", "Entschuldigung, wie komme ich"),
        Phrase("how do we get to", "wie kommen wir"),
        Phrase("how far is it to", "wie weit ist es"),
    )
    questions = one_of([together(where, _places(Case.NOMINATIVE)), together(way, _places(Case.DATIVE))])
    beside = any_of(
        Phrase("next to", "neben"),
        Phrase("behind", "hinter"),
        Phrase("in front of", "vor"),
        Phrase("opposite", "gegenüber"),
    )
    which = any_of(Phrase("next", "nächste"), Phrase("first", "erste"), Phrase("last", "letzte"))
    landmark = noun_phrases("landmark", ("the",), Case.DATIVE, adjectives=s.SOME)
    rides = nouns_of(("line", "ferry", "vehicle"), lambda category: noun_phrases(category, ("the",), Case.DATIVE))
    known = noun_phrases("venue", ("the",), Case.NOMINATIVE, adjectives=s.SOME)
    venue = one_of([known, noun_phrases("venue", ("a",), Case.ACCUSATIVE, adjectives=s.SOME)])
    happening = s.verbs_of(lexicon().happening, "second third")
    events = noun_phrases("event", ("the", "our"), Case.NOMINATIVE, adjectives=s.SOME)
    days = one_of([s.weekdays(), s.dates()])
    hours = one_of([s.nothing(), s.clock()])
    trip = together(any_of(*g.MODALS), s.subjects(), s.cities(), rides, one_of([s.nothing(), s.near_times()]))
    return (
        Construction("directions", _directions, questions),
        Construction("location", _location, together(venue, beside, landmark)),
        Construction("schedule", _schedule, together(which, _journeys(), s.clock())),
        Construction("transport", _transport, trip),
        Construction("date", _date, together(events, happening, days, hours)),
    )
