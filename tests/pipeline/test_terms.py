"""Terms and kept ranges through small models that know nothing of them."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mt import Translation, Translator
from mt.bundled import STARTER_MODEL
from mt.checkpoint import load_model
from mt.engine.requests import Request
from mt.pipeline.constraint_compiler import ConstraintCompiler
from mt.scoring.attention import Pair
from mt.scoring.model_attention import ModelAttention
from mt.text.terms import Terms, missing_terms
from tests.conftest import NOUNS

GLOSSARY = Terms((("dog", "Köter"), ("house", "alte Hütte"), ("river", "Bach"), ("sees", "erblickt")), ("market",))
WORDS = st.lists(st.sampled_from([*NOUNS, "The", "sees", "and", "dogs", "{x}", "12", "Acme"]), min_size=1, max_size=8)


def constrained_requests(translator: Translator, texts: Sequence[str], terms: Terms = GLOSSARY) -> list[Request]:
    planner = translator.planner(terms=terms, sentences=True)
    tasks = [planner.task(text) for text in texts]
    translator.dispatcher.run(tasks)
    return [request for task in tasks for request in task.requests if request.constraints is not None]


def translated(translator: Translator, texts: list[str], **options: Any) -> list[Translation]:
    return translator.run(translator.planner(**{"terms": GLOSSARY, **options}), texts)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(WORDS)
@example(["dog", "dog", "dog"])  # the model writes nothing, so the source is kept
def test_terms_are_always_there(translator: Translator, words: list[str]) -> None:
    text = " ".join(words) + "."
    options = replace(translator.options, n_best=2)
    [result] = translated(translator, [text], sentences=True, options=options)
    glossary = [item for item in GLOSSARY.find(text, "en") if item.translation is not None]
    for alternative in result.alternatives:
        assert missing_terms(glossary, alternative.text, "de") == []
        assert alternative.text.count("market") >= words.count("market")


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(WORDS, st.data())
def test_kept_ranges_come_back(translator: Translator, words: list[str], data: st.DataObject) -> None:
    text = " ".join(words) + ". The man sees it."
    begin = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(begin + 1, len(text)))
    task = translator.planner().task(text, kept=[(begin, end)])
    translator.dispatcher.run([task])
    assert text[begin:end].strip() in task.translation().text


def test_no_search_is_repeated_without_need(translator: Translator) -> None:
    texts = ["The cat draws the train.", "The horse hears the cat."]
    planners = translator.planner(), translator.planner(terms=GLOSSARY)
    plain, other = ([planner.task(text) for text in texts] for planner in planners)
    translator.dispatcher.run([*plain, *other])
    assert [task.translation() for task in other] == [task.translation() for task in plain]
    assert [len(task.requests) for task in other] == [len(task.requests) for task in plain]
    [result] = translator.translate_many(["The cat draws the train."], sentences=True)
    word = next(word for word in re.findall(r"\w+", result.text.lower()) if word.isalpha())  # as the model writes it
    assert constrained_requests(translator, ["The cat draws the train."], Terms((("cat", word),))) == []
    assert translator.translate("The cat draws the train.", glossary={"cat": word}).text.lower() == result.text.lower()


@pytest.mark.parametrize(
    ("text", "term", "first", "second"),
    [
        ("The house is very old.", ("house", "Hütte"), [(False, 1), (True, 8)], [(True, 8)]),
        # The word alone is the translation, or unknown: a greedy draft shows the displaced words.
        ("Where is my car?", ("car", "Karosse"), [(False, 1), (False, 1), (True, 8)], [(False, 1), (True, 8)]),
    ],
)
def test_a_sentence_with_terms_needs_no_beam_search_without_them(
    text: str, term: tuple[str, str], first: list[tuple[bool, int]], second: list[tuple[bool, int]]
) -> None:
    translator = Translator.load(STARTER_MODEL, "cpu")
    planner = translator.planner(source="en", target="de", terms=Terms((term,)))
    for expected in (first, second):
        task = planner.task(text)
        translator.dispatcher.run([task])
        assert term[1] in task.translation().text
        searches = [(request.constraints is not None, request.options.beam_size) for request in task.requests]
        assert searches == expected


@pytest.mark.parametrize(("word", "term"), [("door", "Klappe"), ("train", "Bahn"), ("house", "Eigenheim")])
def test_a_term_does_not_end_the_sentence(word: str, term: str) -> None:
    """A model that does not know a term writes `Niemand öffnete die Tür. Klappe.`, or stops before the day."""
    starter = Translator.load(STARTER_MODEL, "cpu")
    for text in (f"Nobody opened the {word}.", f"The {word} is old.", f"We need a new {word} before Monday."):
        translation = starter.translate(text, source="en", target="de", glossary={word: term}).text
        assert term in translation and ". " not in translation and ("Montag" in translation) == ("Monday" in text)


def test_a_required_term_does_not_raise_the_confidence() -> None:
    """The rest of a required word has a probability of 1: "We need a new printer." would have 90 instead of 74."""
    starter = Translator.load(STARTER_MODEL, device="cpu", dtype="float32")
    rows = {"We need a new printer.": "Multifunktionsgerät", "Where is the station?": "Hauptbahnhof"}
    for text, required in rows.items():
        term = text.split()[-1][:-1]
        free = starter.translate(text, source="en", target="de").confidence
        with_term = starter.translate(text, source="en", target="de", glossary={term: required})
        assert required in with_term.text and free is not None and with_term.confidence is not None
        assert with_term.confidence == pytest.approx(free, abs=0.04)
        assert starter.translate(text, source="en", target="de", do_not_translate=[term]).confidence is not None


def test_the_attention_of_a_translation_is_computed_once(small_model: Path) -> None:
    loaded, pairs = load_model(small_model), list[Pair]()
    attend = ModelAttention(loaded.model)

    def count(group: Sequence[Pair]) -> list[NDArray[np.float32]]:
        pairs.extend(group)
        return attend(group)

    text = "The dog sees {x} and 12,345 houses."  # numbers and terms both need the attention of the draft
    assert "Köter" in translated(Translator(loaded, attend=count), [text])[0].text
    assert len(pairs) > 1
    assert len(set(pairs)) == len(pairs)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("Apple", "Apfel"), ("apple\nOK", "Apfel\n\U0001f44d"), ("OK", "\U0001f44d"), ("wait", "\u2026")],
)
def test_a_sentence_that_is_a_term(translator: Translator, text: str, expected: str) -> None:
    glossary = {"apple": "Apfel", "Apple": "Apfel", "OK": "\U0001f44d", "wait": "\u2026"}
    [result] = translator.translate_many([text], glossary=glossary)
    assert result.text == expected
    assert not any(sentence.untranslated for sentence in result.sentences)


def test_words_of_many_nodes(translator: Translator) -> None:
    words = [letter * 1000 for letter in "abcdefghijklmnopqr"]
    following = ConstraintCompiler(translator.tokenizer).compile([], words, "de", 1).following
    assert len(following) > 2**15
    assert set(following.ravel()) == set(range(len(following)))
    assert "щ" * 300 in translator.translate("The dog sees it.", glossary={"dog": "щ" * 300}).text
