"""Constructions by type of clause: main clauses, questions, and sentences with subordinate clauses."""

from mt.data.phrasebook import grammar as g
from mt.data.phrasebook import slots as s
from mt.data.phrasebook.grammar import Action, Auxiliary, Case, NounPhrase, Phrase, Subject, sentence, words
from mt.data.phrasebook.lexicon import Adjective, Verb, lexicon
from mt.data.phrasebook.slots import Construction, Sides, Slot, any_of, noun_phrases, nouns_of, one_of, together

Tense = tuple[bool, Phrase]  # (whether the tense is past, a phrase of time for this tense)


def _tenses(past: bool, times: Slot[Phrase]) -> Slot[Tense]:
    return times.map(lambda time: (past, time))


def _tense(present: Slot[Phrase], past: Slot[Phrase]) -> Slot[Tense]:
    return one_of([_tenses(False, present), _tenses(True, past)])


def _statement(subject: Subject, action: Action, tense: Tense) -> Sides:
    past, time = tense
    english = words(subject.english, action.with_form(g.english_finite(action.verb, subject, past), time.english))
    group = g.german_finite(action.verb, subject, past)
    return sentence(english), sentence(g.second(subject.german, group, "", action.middle_field(time.german)))


def _fronted(tense: Tense, subject: Subject, action: Action) -> Sides:
    past, time = tense
    english = words(time.english, subject.english, action.with_form(g.english_finite(action.verb, subject, past)))
    german = g.second(time.german, g.german_finite(action.verb, subject, past), subject.german, action.middle_field())
    return sentence(english), sentence(german)


def _progressive(subject: Subject, action: Action) -> Sides:
    english = words(subject.english, g.by_person(g.BE, subject.person), action.with_form(action.verb.ing, "right now"))
    group = g.german_present(action.verb, subject.person)
    return sentence(english), sentence(g.second(subject.german, group, "", action.middle_field("gerade")))


def _modal(modal: Auxiliary, subject: Subject, action: Action, time: Phrase) -> Sides:
    helper = g.by_person(modal.english, subject.person)
    english = words(subject.english, helper, action.with_form(action.verb.base, time.english))
    group = modal.verb_group(action.verb, subject.person)
    return sentence(english), sentence(g.second(subject.german, group, "", action.middle_field(time.german)))


def _perfect(subject: Subject, action: Action) -> Sides:
    english = words(subject.english, g.by_person(g.HAVE, subject.person), "already")
    group = g.german_perfect(action.verb, subject.person)
    german = g.second(subject.german, group, "", action.middle_field(particle="schon"))
    return sentence(words(english, action.with_form(action.verb.participle))), sentence(german)


def _negation(particle: str, past: bool, subject: Subject, action: Action) -> Sides:
    helper = "did" if past else g.by_person(g.DO, subject.person)
    english = words(subject.english, helper, "not", action.with_form(action.verb.base))
    group = g.german_finite(action.verb, subject, past)
    return sentence(english), sentence(g.second(subject.german, group, "", action.middle_field(particle=particle)))


def _company(past: bool, subject: Subject, verb: Verb, friend: NounPhrase) -> Sides:
    form = g.english_finite(verb, subject, past) + verb.particle
    english = words(subject.english, form, "with", friend.english())
    group = g.german_finite(verb, subject, past)
    return sentence(english), sentence(g.second(subject.german, group, "", friend.after("mit")))


def main_clauses() -> tuple[Construction, ...]:
    verbs = lexicon().verbs
    subject = s.subjects()
    present, past = s.present_times(), s.past_times()
    either = any_of(False, True)
    described = s.actions(verbs, "second third base", s.SOME)
    past_action = s.actions(verbs, "participle past", s.SOME)
    any_tense = s.actions(verbs, "second third base participle past")
    denied = s.actions(verbs, "second base participle", determiners=s.definite)
    without = s.actions(s.direct(), "second base participle", s.HALF, lambda category: ("no",))
    done = s.actions(verbs, "participle english", determiners=s.definite)
    future = s.actions(verbs, "infinitive base", s.SOME)
    able = s.actions(s.active(), "infinitive base")
    social = s.verbs_of((verb for verb in verbs if verb.company), "second third base participle past")
    soon = one_of([s.nothing(), s.near_times()])
    return (
        Construction("statement", _statement, together(subject, described, _tenses(False, present))),
        Construction("past", _statement, together(subject, past_action, _tenses(True, past))),
        Construction("fronted time", _fronted, together(_tense(present, past), subject, any_tense), weight=2),
        Construction("right now", _progressive, together(subject, s.actions(s.active(), "second ing", s.SOME))),
        Construction("future", _modal, together(any_of(g.WILL), subject, future, s.future_times())),
        Construction("modal", _modal, together(any_of(*g.MODALS), subject, able, soon)),
        Construction("already", _perfect, together(subject, done)),
        Construction("negation", _negation, together(any_of("nicht"), either, subject, denied)),
        Construction("not a", _negation, together(any_of(""), either, subject, without)),
        Construction("company", _company, together(either, subject, social, s.relatives(Case.DATIVE))),
    )


# --- questions -------------------------------------------------------------------------------------------------------


def _yes_no(opened: tuple[Phrase, Tense], subject: Subject, action: Action) -> Sides:
    opening, (past, time) = opened
    helper = "did" if past else g.by_person(g.DO, subject.person)
    english = words(opening.english, helper, subject.english, action.with_form(action.verb.base, time.english))
    group = g.german_finite(action.verb, subject, past)
    german = g.second(opening.german, group, subject.german, action.middle_field(time.german))
    return sentence(english, "?"), sentence(german, "?")


def _wh(question_word: Phrase, past: bool, subject: Subject, action: Action) -> Sides:
    helper = "did" if past else g.by_person(g.DO, subject.person)
    english = words(question_word.english, helper, subject.english, action.with_form(action.verb.base))
    german = g.second(
        question_word.german, g.german_finite(action.verb, subject, past), subject.german, action.middle_field()
    )
    return sentence(english, "?"), sentence(german, "?")


def _modal_question(question: tuple[Auxiliary, Subject], action: Action, time: Phrase) -> Sides:
    modal, subject = question
    helper = g.by_person(modal.helper, subject.person)
    english = words(helper, subject.english, modal.base, action.with_form(action.verb.base, time.english))
    group = modal.verb_group(action.verb, subject.person)
    return sentence(english, "?"), sentence(g.second("", group, subject.german, action.middle_field(time.german)), "?")


def _already_question(subject: Subject, action: Action) -> Sides:
    english = words(g.by_person(g.HAVE, subject.person), subject.english, "already")
    german = g.second(
        "", g.german_perfect(action.verb, subject.person), subject.german, action.middle_field(particle="schon")
    )
    return sentence(words(english, action.with_form(action.verb.participle)), "?"), sentence(german, "?")


def _question_words() -> Slot[Phrase]:
    return any_of(Phrase("when", "wann"), Phrase("why", "warum"), Phrase("how often", "wie oft"))


def _opened() -> Slot[tuple[Phrase, Tense]]:
    """Return (opening, tense) for yes-no questions. Openings are phrases such as "excuse me,", and may be empty.

    In the present tense, they are never empty. Without an opening, the German question would begin with a capitalised
    verb ("Öffnet"), a form that no other construction has.
    """
    openings = (Phrase("excuse me,", "Entschuldigung,"), Phrase("and", "und"), Phrase("tell me,", "sagen Sie,"))
    present = together(any_of(*openings), _tenses(False, one_of([s.nothing(), s.present_times()])))
    past = together(any_of(Phrase("", ""), openings[1]), _tenses(True, s.past_times()))
    return one_of([present, past]).map(lambda parts: (parts[0], parts[1]))


def _allowed() -> Slot[tuple[Auxiliary, Subject]]:
    """Return (modal verb, subject) for questions, without combinations such as "Do I want to"."""
    others = one_of([any_of(*group) for group in s.PRONOUNS[1:]])
    questions = one_of([together(any_of(*g.MODALS[:3]), s.subjects()), together(any_of(*g.MODALS[3:]), others)], [3, 2])
    return questions.map(lambda parts: (parts[0], parts[1]))


def questions() -> tuple[Construction, ...]:
    verbs = lexicon().verbs
    subject = s.subjects()
    claims = s.actions(verbs, "second base participle")
    able = s.actions(s.active(), "infinitive base")
    done = s.actions(verbs, "participle english", determiners=s.definite)
    soon = one_of([s.nothing(), s.near_times()])
    return (
        Construction("yes-no question", _yes_no, together(_opened(), subject, claims)),
        Construction("wh question", _wh, together(_question_words(), any_of(False, True), subject, claims)),
        Construction("modal question", _modal_question, together(_allowed(), able, soon)),
        Construction("already question", _already_question, together(subject, done)),
    )


# --- subordinate clauses ---------------------------------------------------------------------------------------------


def _because(subject: Subject, state: Adjective, perfect: bool, other: Subject, action: Action) -> Sides:
    verb, person = action.verb, other.person
    if perfect:
        reason = words(g.by_person(g.HAVE, person), action.with_form(verb.participle))
    else:
        reason = action.with_form(g.english_present(verb, person))
    english = words(subject.english, g.by_person(g.BE, subject.person), state.lemma, "because", other.english, reason)
    german = words(subject.german, g.by_person(g.SEIN, subject.person), state.german) + ", "
    return sentence(english), sentence(
        german + g.last("weil", g.german_finite(verb, other, perfect), other.german, action.middle_field())
    )


ReportedSpeech = tuple[tuple[str, str, str], tuple[str, str, str]]


def _that(report: ReportedSpeech, subject: Subject, other: Subject, action: Action) -> Sides:
    claim = action.with_form(g.english_present(action.verb, other.person))
    english = words(subject.english, g.by_person(report[0], subject.person), "that", other.english, claim)
    german = words(subject.german, g.by_person(report[1], subject.person)) + ", "
    clause = g.last("dass", g.german_present(action.verb, other.person), other.german, action.middle_field())
    return sentence(english), sentence(german + clause)


def _if(subject: Subject, action: Action, modal: Auxiliary, other: Subject, verb: Verb) -> Sides:
    english = words("if", subject.english, action.with_form(g.english_present(action.verb, subject.person))) + ", "
    english += words(other.english, g.by_person(modal.english, other.person), verb.base + verb.particle)
    clause = g.last("wenn", g.german_present(action.verb, subject.person), subject.german, action.middle_field())
    return sentence(english), sentence(
        clause + ", " + g.second("", modal.verb_group(verb, other.person), other.german, "")
    )


def _indirect(frame: Phrase, question_word: Phrase, subject: Subject, action: Action) -> Sides:
    mark = "?" if frame.english.startswith(("do ", "can ")) else "."
    claim = action.with_form(g.english_present(action.verb, subject.person))
    clause = g.last(
        question_word.german, g.german_present(action.verb, subject.person), subject.german, action.middle_field()
    )
    return (
        sentence(words(frame.english, question_word.english, subject.english, claim), mark),
        sentence(f"{frame.german}, {clause}", mark),
    )


def _purpose(past: bool, subject: Subject, trip: Action, action: Action) -> Sides:
    english = words(subject.english, trip.with_form(g.english_finite(trip.verb, subject, past)))
    german = g.second(subject.german, g.german_finite(trip.verb, subject, past), "", trip.middle_field())
    aim = words(action.middle_field(), g.zu_infinitive(action.verb))
    return sentence(words(english, "to", action.with_form(action.verb.base))), sentence(f"{german}, um {aim}")


def _infinitive(opinion: Phrase, action: Action) -> Sides:
    english = words("it is", opinion.english, "to", action.with_form(action.verb.base))
    return sentence(english), sentence(
        words(f"es ist {opinion.german},", action.middle_field(), g.zu_infinitive(action.verb))
    )


def _attempt(attempt: ReportedSpeech, subject: Subject, action: Action, time: Phrase) -> Sides:
    helper = g.by_person(attempt[0], subject.person)
    english = words(subject.english, helper, "to", action.with_form(action.verb.base, time.english))
    german = words(subject.german, g.by_person(attempt[1], subject.person)) + ", "
    return sentence(english), sentence(german + words(action.middle_field(time.german), g.zu_infinitive(action.verb)))


def _reported() -> Slot[ReportedSpeech]:
    return any_of(
        (("think", "thinks", "think"), ("glaube", "glaubt", "glauben")),
        (("know", "knows", "know"), ("weiß", "weiß", "wissen")),
        (("say", "says", "say"), ("sage", "sagt", "sagen")),
        (("hope", "hopes", "hope"), ("hoffe", "hofft", "hoffen")),
    )


def _attempted() -> Slot[ReportedSpeech]:
    return any_of(
        (("try", "tries", "try"), ("versuche", "versucht", "versuchen")),
        (("promise", "promises", "promise"), ("verspreche", "verspricht", "versprechen")),
        (("hope", "hopes", "hope"), ("hoffe", "hofft", "hoffen")),
    )


def _opinions() -> Slot[Phrase]:
    rows = (
        ("not easy", "nicht einfach"),
        ("easy", "einfach"),
        ("difficult", "schwierig"),
        ("possible", "möglich"),
        ("impossible", "unmöglich"),
        ("important", "wichtig"),
        ("very important", "sehr wichtig"),
        ("necessary", "notwendig"),
    )
    return any_of(*(Phrase(english, german) for english, german in rows))


def subordinate_clauses() -> tuple[Construction, ...]:
    verbs = lexicon().verbs
    subject, other = s.subjects(), s.pronouns()
    states = s.predicates(adjective for adjective in lexicon().adjectives if "state" in adjective.categories)
    reason = s.actions(verbs, "final third base participle english")
    claim = s.actions(verbs, "final third base")
    aims = s.actions((verb for verb in s.active() if not verb.sein), "zu base")
    trips = s.actions((verb for verb in verbs if "city" in verb.categories), "second third base participle past")
    infinitive = s.actions(verbs, "zu base", s.SOME)
    free = s.verbs_of((verb for verb in verbs if verb.categories == ("none",)), "infinitive base")
    frames = any_of(
        Phrase("do you know", "wissen Sie"),
        Phrase("I do not know", "ich weiß nicht"),
        Phrase("can you tell me", "können Sie mir sagen"),
        Phrase("please tell me", "bitte sagen Sie mir"),
    )
    either = any_of(False, True)
    attempts = s.actions(s.active(), "zu base")
    soon = one_of([s.nothing(), s.near_times()])
    return (
        Construction("because clause", _because, together(subject, states, either, other, reason)),
        Construction("that clause", _that, together(_reported(), subject, other, claim)),
        Construction("if clause", _if, together(subject, claim, any_of(*g.MODALS), other, free)),
        Construction("indirect question", _indirect, together(frames, _question_words(), subject, claim), weight=2),
        Construction("purpose", _purpose, together(either, subject, trips, aims)),
        Construction("infinitive", _infinitive, together(_opinions(), infinitive)),
        Construction("attempt", _attempt, together(_attempted(), subject, attempts, soon)),
        _relative_construction(),
    )


def _relative(item: tuple[NounPhrase, Verb, Adjective], subject: Subject, time: Phrase) -> Sides:
    noun, verb, adjective = item
    claim = words(subject.english, verb.past + verb.particle, time.english)
    english = words(noun.english(), "that", claim, "are" if noun.plural else "is", adjective.lemma)
    pronoun = g.DER[Case.ACCUSATIVE.value][g.column(noun.noun, noun.plural)]
    clause = g.last(pronoun, g.german_perfect(verb, subject.person), subject.german, time.german)
    german = f"{noun.german(Case.NOMINATIVE)}, {clause}, {'sind' if noun.plural else 'ist'} {adjective.german}"
    return sentence(english), sentence(german)


def _relative_construction() -> Construction:
    categories = ("thing", "clothing", "device", "food", "venue")

    def of(category: str) -> Slot[tuple[NounPhrase, Verb, Adjective]]:
        verbs = [verb for verb in s.accusative() if category in verb.categories and verb.lemma != "need"]
        adjectives = s.predicates(lexicon().adjectives_for(category))
        subjects = noun_phrases(category, ("the",), Case.NOMINATIVE)
        parts = together(subjects, s.verbs_of(verbs, "participle past"), adjectives)
        return parts.map(lambda drawn: (drawn[0], drawn[1], drawn[2]))

    return Construction("relative clause", _relative, together(nouns_of(categories, of), s.subjects(), s.past_times()))
