"""Where sentences stand, which of their words translate which, and what the model looked at."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mt import Translator
from mt.checkpoint import load_model
from mt.decoding.options import SearchOptions
from mt.description import Confidence
from mt.pipeline.driver import AttentionCall, Routine
from mt.pipeline.results import Alternative, ExplainOptions, Translation
from mt.scoring.attention import CrossAttention, Pair
from mt.scoring.confidence import QualityEstimator
from mt.scoring.model_attention import ModelAttention
from mt.source_bigrams import SourceBigrams
from mt.text.segment import TextPart
from tests.conftest import sentences
from tests.pipeline.test_text_task import Table

ALL = ExplainOptions(alignment=True, attention=500_000)
BRIEF = SearchOptions(beam_size=2, n_best=2, max_length_factor=0, max_length_offset=8)


def seen(translator: Translator, texts: list[str], explain: ExplainOptions = ALL) -> list[Translation]:
    return translator.run(translator.planner(options=BRIEF, explain=explain), texts)


def check_ranges(text: str, found: Translation) -> None:
    ends = (0, 0)
    for sentence in found.sentences:
        (a, b), (c, d) = sentence.source_range, sentence.target_range
        assert text[a:b] == sentence.source and found.text[c:d] == sentence.text
        assert (ends[0] <= a, ends[1] <= c) == (True, True)
        ends = (b, d)
        for place, existing in sentence.links:
            assert a <= place[0] < place[1] <= b and c <= existing[0] < existing[1] <= d


CASES = {
    "two sentences": ("Go on. See it", [(0, 6), (7, 13)], [(0, 6), (7, 13)], "en", "de"),
    "white space around and between": ("  a b. \n\t c\n", [(2, 6), (10, 11)], [(2, 6), (10, 11)], "en", "de"),
    "a space that goes": ("Go on. See it", [(0, 6), (7, 13)], [(0, 6), (6, 12)], "en", "zh"),
    "a space that comes": ("一。二", [(0, 2), (2, 3)], [(0, 2), (3, 4)], "zh", "en"),
    "what is kept": ("12. — a", [(6, 7)], [(6, 7)], "en", "de"),
    "a list": ("- a\n- b", [(2, 3), (6, 7)], [(2, 3), (6, 7)], "en", "de"),
    "nothing": (" ", [], [], "en", "de"),
}


@pytest.mark.parametrize("name", CASES)
def test_ranges(name: str) -> None:
    text, place, existing, source, target = CASES[name]
    table = Table({})
    planner = table.planner()
    planner = replace(planner, sentences=False, context=replace(planner.context, source=source, target=target))
    translation = table.run(planner.task(text)).translation()
    assert [sentence.source_range for sentence in translation.sentences] == place
    assert [sentence.target_range for sentence in translation.sentences] == existing
    check_ranges(text, translation)


PARTS = st.sampled_from([*sentences(5), "THE DOG", " ", "\n\n", "12 ", "{x} ", "https://x.org/a ", "😀", "。", "- "])


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(PARTS | st.text(max_size=4), max_size=6).map("".join))
def test_whatever_the_text_ranges_are_exact(translator: Translator, text: str) -> None:
    check_ranges(text.encode("utf-8", "replace").decode(), seen(translator, [text])[0])


def test_nobody_pays_who_did_not_ask(small_model: Path) -> None:
    def refuse(pairs: Sequence[Pair]) -> list[NDArray[np.float32]]:
        raise AssertionError("looked at")

    translator = Translator(load_model(small_model), attend=refuse)
    for translation in (translator.translate("The dog."), *seen(translator, ["The dog."], ExplainOptions())):
        assert [(sentence.links, sentence.attention) for sentence in translation.sentences] == [((), None)]


def test_attention_is_that_of_the_model(translator: Translator, small_model: Path) -> None:
    """What is told of a sentence among others, padded, is what one pass over it alone gives."""
    model = load_model(small_model).model
    text = "The dog sees the river. The man draws the bridge."
    for sentence in seen(translator, [text])[0].sentences:
        tokenizer, result = translator.tokenizer, sentence.attention
        assert result is not None
        source, target = [*tokenizer.encode(sentence.source), 3], tokenizer.encode(sentence.text)
        weights = torch.tensor(result.weights)
        assert result.source == tuple(tokenizer.pieces(source))
        assert result.target == (*tokenizer.pieces(target), "</s>")
        assert weights.shape == (1, 2, len(target) + 1, len(source))
        assert torch.allclose(weights.sum(-1), torch.ones(weights.shape[:-1]), atol=0.01)
        fed, mask = torch.tensor([[2, *target]]), torch.ones(1, len(source), dtype=torch.bool)
        with torch.inference_mode():
            expected = model.cross_attention(torch.tensor([source]), mask, fed)[:, 0]
        assert torch.allclose(weights, expected, atol=1e-3)


def test_links_of_copies_and_of_capitals(translator: Translator) -> None:
    text = "The {x} dog sees https://x.org/a 12 times 😀 {x}."
    translation = seen(translator, [text])[0]
    links = {(text[a:b], translation.text[c:d]) for (a, b), (c, d) in translation.sentences[0].links}
    assert {("{x}", "{x}"), ("https://x.org/a", "https://x.org/a"), ("😀", "😀")} <= links
    spans = {"{x}", "https://x.org/a", "😀"}
    assert all(one == other for one, other in links if one in spans or other in spans)
    small, capitals = (seen(translator, [text])[0] for text in ("The dog sees the cat.", "THE DOG SEES THE CAT."))
    assert capitals.text == small.text.upper()
    assert capitals.sentences[0].links == small.sentences[0].links != ()


def test_attention_of_a_text_is_bounded_and_links_are_not(translator: Translator) -> None:
    text = " ".join(sentences(6))

    def sizes_of(translation: Translation) -> list[int]:
        return [np.size(one.attention.weights) for one in translation.sentences if one.attention]

    sizes = sizes_of(seen(translator, [text])[0])
    assert len(sizes) == 6
    (translation,) = seen(translator, [text], ExplainOptions(alignment=True, attention=sum(sizes[:3])))
    assert sizes_of(translation)[:3] == sizes[:3] and sum(sizes_of(translation)) <= sum(sizes[:3])
    assert all(sentence.links for sentence in translation.sentences if any(map(str.isalnum, sentence.text)))


def test_sentences_are_explained_independently(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    text = " ".join(sentences(8))
    together = seen(translator, [text])[0]
    monkeypatch.setattr(translator.dispatcher, "attention_tokens", 1)
    (alone,) = seen(translator, [text])
    assert [sentence.links for sentence in alone.sentences] == [sentence.links for sentence in together.sentences]
    planner = translator.planner(options=BRIEF, explain=ALL)
    assert planner.explainer
    planner = replace(planner, explainer=replace(planner.explainer, max_weights=1))
    assert not any(sentence.links for sentence in translator.run(planner, [text])[0].sentences)


def test_what_fails_while_it_is_looked_at_fails_its_own_text(small_model: Path) -> None:
    loaded = load_model(small_model)
    attend, cat, sizes = ModelAttention(loaded.model), loaded.tokenizer.encode("Cat.")[0], list[int]()

    def fail(pairs: Sequence[Pair]) -> list[NDArray[np.float32]]:
        sizes.append(len(pairs))
        if any(source[0] == cat for source, _ in pairs):
            raise MemoryError("too much")
        return attend(pairs)

    translator = Translator(loaded, attend=fail)
    planner = translator.planner(options=BRIEF, explain=ALL)
    tasks = [planner.task(text) for text in ("The dog. Cat.", "The dog.")]
    translator.dispatcher.run(tasks)
    assert "MemoryError: too much" in tasks[0].problem and not tasks[1].problem
    assert max(sizes) > 1, "several sentences are looked at together"
    assert tasks[1].translation().sentences[0].links


def test_confidence_is_the_mean_of_the_sentences_by_their_lengths(small_model: Path) -> None:
    translator = Translator.load(small_model, device="cpu")
    text = "The dog sees the cat and the river. The man draws."
    assert translator.estimator is None
    assert translator.translate_many([text])[0].confidence is None
    translator.estimator = QualityEstimator(Confidence(slope=1, intercept=-0.1, sentences=9))
    translations = translator.translate_many([text, " ", "12"])
    long, short = (sentence.confidence for sentence in translations[0].sentences)
    assert long is not None and short is not None and long != short
    assert translations[0].confidence == pytest.approx((35 * long + 14 * short) / 49)
    assert [sentence.confidence for sentence in translations[1:]] == [None, None]


def test_text_unlike_the_training_text_has_no_confidence(small_model: Path) -> None:
    loaded = load_model(small_model)
    known = np.array(loaded.tokenizer.encode("The dog sees the cat."))
    bigrams = SourceBigrams.build([known, known], np.array([0, 0]), ["en"])
    confidence = Confidence(slope=0, intercept=0.25, max_novelty=0.2, sentences=9)
    translator = Translator.from_loaded(replace(loaded, confidence=confidence, bigrams=bigrams))
    translation = translator.translate("The dog sees the cat. The river draws a man.")
    confidences = [(sentence.confidence, sentence.unfamiliar) for sentence in translation.sentences]
    assert confidences == [(0.25, False), (None, True)]
    assert translation.confidence == 0.25


def test_the_sentences_of_a_long_text_are_explained_in_several_steps(translator: Translator) -> None:
    """To prepare all sentences in one step would delay other callers by the whole text."""
    explainer = translator.planner(options=BRIEF, explain=ALL).explainer
    assert explainer is not None
    texts = [(TextPart(one, False), Alternative(one, 0.0, 0.0, (), ())) for one in sentences(1) * 40]
    routine, calls = Routine(explainer.explain(texts)), 0
    while isinstance(routine.call, AttentionCall):
        calls += 1
        routine.resume(CrossAttention(translator.attend([routine.call.pair])[0]))
    assert calls == len(texts) == len(routine.value)
    assert all(explanation.links for explanation in routine.value)
