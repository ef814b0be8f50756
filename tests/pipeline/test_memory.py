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


STORES, LIST = "The server stores the {} in a {}.", "Der Server legt die {} in einer {} ab."


@pytest.mark.parametrize(
    ("sentence", "match", "target", "glossary", "expected"),
    [
        (STORES.format("data", "list"), STORES.format("data", "file"), LIST.format("Daten", "Datei"), {},
         LIST.format("Daten", "Liste")),
        (STORES.format("quote number", "list"), STORES.format("quote number", "file"),
         LIST.format("Angebotsnummer", "Datei"), {"quote": "Angebot"}, LIST.format("Angebotsnummer", "Liste")),
        # without the negation, and without the term
        ("The supplier must not deliver.", "The supplier must deliver.", "Der Lieferant muss liefern.", {}, None),
        ("See page 17 of the manual.", "See page 12 of the manual.", "Vgl. S. 12.", {"manual": "Anleitung"}, None),
    ],
)  # fmt: skip
def test_repairs_of_fuzzy_matches(
    starter: Translator, sentence: str, match: str, target: str, glossary: dict[str, str], expected: str | None
) -> None:
    """None: the repair is not used."""
    planner = starter.planner(source="en", target="de", terms=Terms(tuple(glossary.items())))
    plain = translated(planner, starter, sentence)
    guided = translated(planner, starter, sentence, MemoryMatch(sentence, match, target, 0.9))
    assert all(term in guided.text for term in glossary.values()) and expected != plain.text
    assert (guided.text, guided.sentences[0].match) == ((expected, 0.9) if expected else (plain.text, None))


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
