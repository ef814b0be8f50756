"""Sentences in any order, arriving at any time, in batches of any size and any mix: one and the same text each."""

import ctypes
import os
from dataclasses import asdict, replace
from pathlib import Path
from random import Random

import pytest
import torch

from mt import Translator
from mt.checkpoint import load_model
from mt.data.corpus import read_lines
from mt.decoding.hypothesis import Hypothesis
from mt.engine.backends.protocol import BatchDecoder, Dtype
from mt.engine.backends.registry import load_backend
from mt.engine.engine import Engine
from mt.engine.requests import Request
from mt.engine.scheduler import Limits
from mt.engine.threads import AnyEngine, ThreadedEngine
from mt.evaluation import bleu
from mt.pipeline.results import ExplainOptions
from mt.text.terms import Terms

CPU = torch.device("cpu")
FROZEN = Path(__file__).resolve().parents[1] / "frozen"
BUSY = 150  # sentences that wait or run, about, while others arrive

needs_data = pytest.mark.skipif(
    not os.environ.get("MT_TEST_MODEL") or not os.environ.get("MT_TEST_CORPORA"),
    reason="MT_TEST_CORPORA (real corpora) and MT_TEST_MODEL (an en-de model) are not both set",
)


def lines(language: str) -> list[str]:
    result = list(read_lines(Path(os.environ["MT_TEST_CORPORA"]) / "multi30k" / f"test_2016_flickr.{language}.gz"))
    assert len(result) == 1000
    return result


def arrive(engine: AnyEngine, wanted: list[Request], random: Random) -> dict[int, tuple[Hypothesis, ...]]:
    """Requests in a random order, between steps: at times one by one, at times many together."""
    waiting = random.sample(wanted, len(wanted))
    outcome: dict[int, tuple[Hypothesis, ...]] = {}
    while waiting or engine.busy:
        if waiting and len(wanted) - len(waiting) - len(outcome) < BUSY:
            for _ in range(random.choice([0, 0, 1, 2, 5, 60])):
                if waiting:
                    engine.submit(waiting.pop())
        for result in engine.step():
            assert not result.problem
            outcome[result.id] = result.hypotheses
    return outcome


def requests(translator: Translator, beams: int) -> list[Request]:
    options = replace(translator.options, beam_size=beams)
    translation = [translator.request(line, options=options) for line in lines("en")]
    return [request for request in translation if request is not None]


@needs_data
@pytest.mark.slow
@pytest.mark.parametrize("dtype", [Dtype.FLOAT32, Dtype.INT8])
@pytest.mark.parametrize("beams", [1, 5])
def test_five_orders_give_one_text_each(library: ctypes.CDLL, dtype: Dtype, beams: int) -> None:
    """Not the text alone: each hypothesis, to the last bit of its scores."""
    loaded = load_model(Path(os.environ["MT_TEST_MODEL"]))
    required = requests(Translator(loaded), beams)
    decoder: BatchDecoder = load_backend([loaded], "cpu", dtype).decoder
    random = Random(beams)
    expected = arrive(Engine(decoder, Limits(rows=1)), required, random)  # each alone
    for number in range(5):
        limits = Limits(rows=random.choice([8, 20, 64, 320, 1000]), source_tokens=random.choice([100, 1000, 8192]))
        threaded = ThreadedEngine(decoder, limits, random.choice([2, 3]))
        engines: list[AnyEngine] = [Engine(decoder, limits), threaded] if number else [threaded]
        for engine in engines:
            assert arrive(engine, required, random) == expected, f"order {number}, {type(engine).__name__}, {limits}"
    assert len(expected) == 1000 and len({item[0].tokens for item in expected.values()}) > 950


@pytest.mark.parametrize(("dtype", "threads"), [(Dtype.FLOAT32, 1), (Dtype.INT8, 1), (Dtype.INT8, 2)])
def test_texts_of_all_kinds_together_give_the_translations_of_each_alone(
    library: ctypes.CDLL, dtype: Dtype, threads: int
) -> None:
    """Translations, with alternatives, scores, confidence and links."""
    translator = Translator.load(FROZEN / "model", "cpu", dtype, threads)
    beam = replace(translator.options, beam_size=5)
    terms = Terms((("hotel", "Gasthaus"), ("husband", "Gatte")))
    planners = [
        translator.planner(options=replace(beam, beam_size=1)),
        translator.planner(options=replace(beam, beam_size=2)),
        translator.planner(options=beam),
        translator.planner(options=replace(beam, n_best=4)),
        translator.planner(options=replace(beam, no_repeat_ngram=2)),
        translator.planner(options=beam, terms=terms),
        translator.planner(options=replace(beam, beam_size=1), terms=terms),
        translator.planner(options=beam, explain=ExplainOptions(alignment=True)),
    ]
    texts = [line.partition("\t")[0] for line in read_lines(FROZEN / "lines.tsv")]
    texts = [text for text in texts if "hotel" in text][:3] + texts[:9]
    pairs = [(planner, text) for planner in planners for text in texts]
    alone = [translator.run(planner, [text])[0] for planner, text in pairs]
    for seed in range(3):
        order = Random(seed).sample(range(len(pairs)), len(pairs))
        tasks = {place: pairs[place][0].task(pairs[place][1]) for place in order}
        translator.dispatcher.run(list(tasks.values()))
        assert [tasks[place].translation() for place in range(len(pairs))] == alone
    assert len({str(asdict(translation)) for translation in alone}) > 3 * len(texts)


@needs_data
@pytest.mark.slow
def test_int8_loses_at_most_a_fifth_of_a_point(library: ctypes.CDLL) -> None:
    scores = {}
    for dtype in ("float32", "int8"):
        translator = Translator.load(os.environ["MT_TEST_MODEL"], "cpu", dtype=dtype)
        translations = [
            sentence.text
            for sentence in translator.translate_many(
                lines("en"), options=replace(translator.options, beam_size=5), sentences=True
            )
        ]
        scores[dtype] = bleu(translations, lines("de"), target_language="de").value
    print(scores)
    assert scores["float32"] - scores["int8"] <= 0.2 and scores["float32"] > 20
