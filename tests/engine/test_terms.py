"""Terms and kept ranges through small models that know nothing of them."""

import re
from pathlib import Path
from random import Random

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mt import Translator
from mt.decoding.options import SpecialIds
from mt.engine.batches import SearchDecoder
from mt.engine.compiled import CompiledDecoder
from mt.engine.engine import Engine
from mt.engine.graphs import GraphDecoder
from mt.engine.messages import Request, Result
from mt.engine.plan import Plan
from mt.engine.scheduler import Limits
from mt.engine.spelling import Speller
from mt.engine.threads import EngineThreads
from mt.text.terms import Terms, lacking
from tests.conftest import NOUNS, sentences

GLOSSARY = Terms((("dog", "Köter"), ("house", "alte Hütte"), ("river", "Bach"), ("sees", "erblickt")), ("market",))
WORDS = st.lists(st.sampled_from([*NOUNS, "The", "sees", "and", "dogs", "{x}", "12", "Acme"]), min_size=1, max_size=8)


@pytest.fixture(scope="module")
def translator(small_model: Path) -> Translator:
    return Translator.load(small_model, "cpu")


def wanted(translator: Translator, texts: list[str]) -> list[Request]:
    """The requests with words in them that these texts lead to."""
    found: list[Request] = []
    planner = translator.planner(terms=GLOSSARY, sentences=True)
    plans = [planner.plan(text) for text in texts]
    engine = Engine(SearchDecoder(translator.scorer))
    waiting: dict[int, Plan] = {}

    def submit(plan: Plan, requests: list[Request]) -> None:
        found.extend(request for request in requests if request.wording is not None)
        for request in requests:
            waiting[request.id] = plan
            engine.submit(request)

    for plan in plans:
        submit(plan, list(plan.requests))
    for result in engine_results(engine):
        plan = waiting[result.id]
        submit(plan, plan.take(result))
        while plan.looks:
            sentence, looks = plan.looks.popleft()
            submit(plan, plan.see(sentence, translator.attender(looks.pairs)))
    return found


def engine_results(engine: Engine) -> "list[Result] | object":
    while engine.busy:
        yield from engine.step()


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(WORDS)
def test_terms_are_always_there(translator: Translator, words: list[str]) -> None:
    text = " ".join(words) + "."
    [found] = translator.translate([text], terms=GLOSSARY, sentences=True, n_best=2)
    glossary = [each for each in GLOSSARY.find(text, "en") if each.translation is not None]
    for alternative in found.alternatives:
        assert lacking(glossary, alternative.text, "de") == []
        assert alternative.text.count("market") >= words.count("market")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(WORDS, st.data())
def test_kept_ranges_come_back(translator: Translator, words: list[str], data: st.DataObject) -> None:
    text = " ".join(words) + ". The man sees it."
    begin = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(begin + 1, len(text)))
    plan = translator.planner().plan(text, kept=[(begin, end)])
    translator.desk.run([plan])
    assert text[begin:end].strip() in plan.translation().text


def test_ordinary_sentences_pay_nothing(translator: Translator) -> None:
    texts = ["The cat draws the train.", "The horse hears the cat."]
    plain = translator.translate(texts)
    steps = translator.engine.steps
    translator.translate(texts)
    usual, steps = translator.engine.steps - steps, translator.engine.steps
    assert translator.translate(texts, terms=GLOSSARY) == plain
    assert translator.engine.steps - steps == usual


def test_a_translation_that_holds_its_terms_is_not_asked_for_again(translator: Translator) -> None:
    [found] = translator.translate(["The cat draws the train."], sentences=True)
    word = next(word for word in re.findall(r"\w+", found.text) if word.isalpha())
    assert wanted_of(translator, "The cat draws the train.", Terms((("cat", word),))) == []
    assert translator.translate(["The cat draws the train."], terms=Terms((("cat", word),)))[0].text == found.text


def wanted_of(translator: Translator, text: str, terms: Terms) -> list[Request]:
    plan = translator.planner(terms=terms, sentences=True).plan(text)
    translator.desk.run([plan])
    return [request for request in plan.requests if request.wording is not None]


def test_capitals_terms_and_what_is_kept(translator: Translator) -> None:
    [found] = translator.translate(["THE DOG FOLLOWS THE MARKET BRIDGE."], terms=GLOSSARY, sentences=True)
    assert "KÖTER" in found.text and "MARKET" in found.text


def test_terms_act_without_the_rest_and_on_samples(translator: Translator) -> None:
    [found] = translator.translate(["The dog sees it."], terms=GLOSSARY, whole=False)
    assert "Köter" in found.text
    options = translator._search(None, None, None)
    sampling = options.__class__(sample=True, max_length=options.max_length)
    [found] = translator.translate(["The dog sees it."], terms=GLOSSARY, options=sampling)
    assert "Köter" in found.text


def test_long_words_have_more_nodes_than_sixteen_bits_count(translator: Translator) -> None:
    words = [letter * 1000 for letter in "abcdefghijklmnopqr"]
    following = Speller(translator.tokenizer).wording([], words, "de", 1).following
    assert len(following) > 2**15
    assert set(following.ravel()) == set(range(len(following)))


def test_a_word_that_nothing_spells_is_put_in(translator: Translator) -> None:
    [found] = translator.translate(["The dog sees it."], terms=Terms((("dog", "щ" * 300),)))
    assert "щ" * 300 in found.text


def test_in_any_batch_and_on_any_decoder_a_wording_gives_one_translation(translator: Translator) -> None:
    requests = wanted(translator, sentences(30, seed=3))
    assert len(requests) > 12
    decoder = SearchDecoder(translator.scorer)
    alone = run(Engine(decoder, Limits(rows=1)), requests)
    assert all(not result.problem for result in alone.values())
    random = Random(1)
    for rows in (12, 40, 200):
        order = random.sample(requests, len(requests))
        assert tokens(run(Engine(decoder, Limits(rows=rows)), order, random)) == tokens(alone)
    assert tokens(run(EngineThreads(decoder, Limits(rows=40), 2), requests)) == tokens(alone)
    graphs = GraphDecoder(translator.model, SpecialIds(), torch.device("cpu"))
    assert tokens(run(Engine(graphs, Limits(rows=40)), requests)) == tokens(alone)


def test_the_compiled_kernels_give_the_same_words(library: object, small_model: Path) -> None:
    compiled, plain = (Translator.load(small_model, "cpu", dtype="float32", threads=1) for _ in range(2))
    assert isinstance(compiled.engine, Engine) and isinstance(compiled.engine.runner.decoder, CompiledDecoder)
    requests = wanted(plain, sentences(20, seed=4))
    alone = run(Engine(compiled.engine.runner.decoder, Limits(rows=1)), requests)
    assert run(Engine(compiled.engine.runner.decoder, Limits(rows=96)), requests, Random(2)) == alone
    assert tokens(alone) == tokens(run(Engine(SearchDecoder(plain.scorer)), requests))


def run(engine: Engine | EngineThreads, requests: list[Request], random: Random | None = None) -> dict[int, Result]:
    """All at once, or a few at a time while others are in flight."""
    waiting, found = list(requests), {}
    while waiting or engine.busy:
        for _ in range(len(waiting) if random is None else min(len(waiting), random.randrange(4))):
            engine.submit(waiting.pop(0))
        found.update((result.id, result) for result in engine.step())
    return found


def tokens(results: dict[int, Result]) -> dict[int, list[tuple[int, ...]]]:
    return {id: [each.tokens for each in result.hypotheses] for id, result in results.items()}
