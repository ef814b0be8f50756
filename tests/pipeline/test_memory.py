from dataclasses import replace

import pytest

from mt import Translator
from mt.errors import RequestError
from mt.pipeline.driver import AttentionCall, DecodeCall
from mt.pipeline.results import Translation
from mt.pipeline.text_task import TextPlanner
from mt.text.alignment import Range
from mt.text.formality import Formality
from mt.text.fuzzy_match import MemoryMatch
from mt.text.terms import Terms

SAVE = "Click the Save button to save the report."
UNIT = ("Click the Close button to close the report.", "Klicken Sie auf Schließen, um den Report zu schließen.")


def translated(planner: TextPlanner, starter: Translator, text: str, *matches: MemoryMatch) -> Translation:
    task = planner.begin(text, matches=matches)
    task.plan()
    starter.dispatcher.run([task])
    return task.translation()


def exact(sentence: str, target: str) -> MemoryMatch:
    return MemoryMatch(sentence, sentence, target, 1.0)


def test_an_exact_match_is_the_translation_without_a_search(starter: Translator) -> None:
    planner = starter.planner(source="en", target="de")
    text = "  First sentence. 2. Second one!"
    task = planner.begin(text, matches=[exact("First sentence.", "Erstens."), exact("2. Second one!", "Zweitens!")])
    task.plan()
    assert (task.done, task.requests) == (True, [])
    translation = task.translation()
    assert translation.text == "  Erstens. Zweitens!"
    assert [sentence.match for sentence in translation.sentences] == [1.0, 1.0]
    assert text[slice(*translation.sentences[0].source_range)] == "First sentence."


def test_an_exact_match_keeps_protected_ranges_or_is_not_used(starter: Translator) -> None:
    planner = starter.planner(source="en", target="de")

    def with_kept(target: str, kept: Range) -> str:
        task = planner.begin("Open Foobar.", [kept], [exact("Open Foobar.", target)])
        task.plan()
        starter.dispatcher.run([task])
        return task.translation().text

    assert with_kept("Foobar öffnen.", (5, 11)) == "Foobar öffnen."
    assert "Foobar" in with_kept("Öffnen.", (5, 11))


def test_a_fuzzy_match_is_repaired(starter: Translator) -> None:
    planner = starter.planner(source="en", target="de")
    text = "The server stores the data in a list."
    match = ("The server stores the data in a file.", "Der Server legt die Daten in einer Datei ab.")
    plain = translated(planner, starter, text)
    guided = translated(planner, starter, text, MemoryMatch(text, *match, 0.88))
    assert (plain.text, plain.sentences[0].match) == ("Der Server speichert die Daten in einer Liste.", None)
    assert (guided.text, guided.sentences[0].match) == ("Der Server legt die Daten in einer Liste ab.", 0.88)


def test_a_match_without_the_negation_is_not_used(starter: Translator) -> None:
    planner = starter.planner(source="en", target="de")
    sentence = "The supplier must not deliver the goods within ten days."
    unit = (sentence.replace(" not", ""), "Der Lieferant muss die Ware innerhalb von zehn Tagen liefern.")
    guided = translated(planner, starter, sentence, MemoryMatch(sentence, *unit, 0.91))
    assert guided.sentences[0].match is None
    assert guided.text == translated(planner, starter, sentence).text


def test_a_repair_that_loses_a_term_is_not_used(starter: Translator) -> None:
    sentence = "See page 17 of the manual."
    match = MemoryMatch(sentence, "See page 12 of the manual.", "Vgl. Handbuch, S. 12.", 0.86)
    terms = Terms((("manual", "Anleitung"),))
    guided = translated(starter.planner(source="en", target="de", terms=terms), starter, sentence, match)
    assert guided.sentences[0].match is None
    assert "Anleitung" in guided.text


def test_a_repair_with_a_term_in_a_compound_is_used(starter: Translator) -> None:
    sentence = "The server stores the quote number in a list."
    unit = (sentence.replace("list", "file"), "Der Server legt die Angebotsnummer in einer Datei ab.")
    terms = Terms((("quote", "Angebot"),))
    planner = starter.planner(source="en", target="de", terms=terms)
    guided = translated(planner, starter, sentence, MemoryMatch(sentence, *unit, 0.9))
    assert (guided.text, guided.sentences[0].match) == ("Der Server legt die Angebotsnummer in einer Liste ab.", 0.9)


def test_without_a_match_there_is_no_further_work(starter: Translator) -> None:
    """The engine calls of a sentence are the same with matches of other sentences, and without matches."""

    def calls(*matches: MemoryMatch) -> list[type]:
        task = starter.planner(source="en", target="de").begin(SAVE, matches=matches)
        task.plan()
        return [type(routine.call) for routine in task.take_calls()]

    assert calls() == calls(exact("Other.", "Anderes.")) == [DecodeCall]
    assert AttentionCall not in calls(MemoryMatch(SAVE, *UNIT, 0.78))  # only after the search


QUESTION = "Where did you buy your coat?"


@pytest.mark.parametrize(
    ("target", "informal", "formal"),
    [("de", {"du", "deinen"}, {"Sie", "Ihren"}), ("fr", {"tu", "ton"}, {"vous", "votre"})],
)
def test_translations_have_a_formality(starter: Translator, target: str, informal: set[str], formal: set[str]) -> None:
    for formality, expected, other in (("less", informal, formal), ("prefer_more", formal, informal)):
        text = starter.translate(QUESTION, source="en", target=target, formality=formality).text
        result = set(text.replace("-", " ").rstrip(" ?").split())
        assert result & expected and not result & other


def test_formality_keeps_other_banned_words(starter: Translator) -> None:
    planner = starter.planner(source="en", target="de").with_formality(Formality.MORE)
    banning = replace(planner, context=replace(planner.context, banned=("Mantel",)))
    plain, banned = (set(translated(one, starter, QUESTION).text.split()) for one in (planner, banning))
    assert {"Sie", "Mantel"} <= plain
    assert "Sie" in banned and "Mantel" not in banned


def test_formality_costs_nothing_where_the_translation_has_it_or_has_none(starter: Translator) -> None:
    planner = starter.planner(source="en", target="de")
    for text in (QUESTION, "The house is old."):
        plain = planner.task(text)
        starter.dispatcher.run([plain])
        counts = set()
        for formality in Formality:
            task = planner.with_formality(formality).task(text)
            starter.dispatcher.run([task])
            counts.add(len(task.requests) - len(plain.requests))
        assert counts == ({0, 1} if "you" in text else {0})


def test_formality_has_no_effect_on_other_languages(starter: Translator) -> None:
    texts = {
        starter.translate("Du hast recht.", source="de", target="en", formality=choice).text
        for choice in (None, "default", "prefer_more", "prefer_less")
    }
    assert len(texts) == 1
    with pytest.raises(RequestError, match="target language en does not support formality 'more'; accepted: default, "):
        starter.translate("Du hast recht.", source="de", target="en", formality="more")
