"""Streams of texts: in order, a bounded number at a time, whatever happens to one of them."""

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import count

import pytest

from mt import Failure, Translation, Translator
from mt.engine.requests import Result
from mt.engine.threads import AnyEngine
from mt.errors import LanguageError, RequestError
from mt.pipeline.dispatcher import TOKENS_PER_TEXT
from mt.pipeline.driver import Routine
from mt.pipeline.results import ExplainOptions
from mt.pipeline.text_task import TextPlanner, TextTask
from tests.conftest import sentences


@dataclass
class Reader:
    read: int = 0
    texts: list[str] = field(default_factory=lambda: sentences(500))

    def __iter__(self) -> Iterator[str]:
        for number in count():
            self.read += 1
            yield "" if number % 7 == 3 else self.texts[number % 500]


def text_of(found: Translation | Failure) -> str:
    assert isinstance(found, Translation), found
    return found.text


def greedy(translator: Translator) -> TextPlanner:
    return translator.planner(options=replace(translator.options, beam_size=1))


@pytest.mark.parametrize("ahead", [1, 7, 1000])
def test_a_stream_gives_what_translate_gives_in_order(translator: Translator, ahead: int) -> None:
    texts = [*sentences(40), "", "Two. Sentences.", "the dog " * 200]
    planner = translator.planner(options=replace(translator.options, beam_size=2))
    expected = [translation.text for translation in translator.run(planner, texts)]
    assert [text_of(translation) for translation in translator.run_stream(planner, texts, ahead)] == expected
    assert list(map(text_of, translator.stream(texts, options=planner.context.options))) == expected


def test_chunks_of_streams(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translator.dispatcher, "step_seconds", 0.0)  # results wait when the stream is closed
    reader = Reader()
    stream = translator.run_stream(greedy(translator), reader, ahead=10)
    assert reader.read == 0
    for place in range(1, 100):
        next(stream)
        assert reader.read == 10 * (math.ceil(place / 10) + 1)  # the chunk of this place, and the next
    stream.close()  # type: ignore[attr-defined]
    assert not translator.engine.busy and not translator.dispatcher.busy
    reader = Reader(texts=["the dog " * 90] * 500)
    tokens = len(translator.planner().context.encode(reader.texts[0].strip()))
    next(translator.run_stream(greedy(translator), reader, ahead=8))
    assert tokens > 2 * TOKENS_PER_TEXT and reader.read < 2 * 8


def test_one_that_fails_is_a_value(translator: Translator, poison: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encode = translator.tokenizer.encode

    def odd(text: str) -> list[int]:
        if text == "unspeakable":
            raise RuntimeError("no ids")
        return encode(text)

    monkeypatch.setattr(translator.tokenizer, "encode", odd)
    texts = [*sentences(5), poison, f"The cat. {poison}", "unspeakable", *sentences(5, seed=1)]
    translations = list(translator.run_stream(translator.planner(), texts, ahead=4))
    for failed, source in zip(translations[5:7], texts[5:7], strict=True):
        assert isinstance(failed, Failure) and failed.source == source
        assert failed.problem == ("the text that begins 'poison' cannot be translated: ValueError: not this one")
    assert translations[7] == Failure("unspeakable", "RuntimeError: no ids")
    assert all(isinstance(item, Translation) for item in (*translations[:5], *translations[8:]))
    assert not translator.engine.busy


def test_interrupted_and_wrong_calls(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(engine: AnyEngine) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(type(translator.engine), "step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            translator.translate_many(sentences(3))
    assert not translator.engine.busy
    assert translator.translate_many(sentences(1))[0].text
    with pytest.raises(LanguageError):
        translator.stream([], source="xx")
    with pytest.raises(RequestError):
        translator.stream([], options=replace(translator.options, beam_size=0))


def test_a_step_serves_one_caller_after_another(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translator.dispatcher, "step_seconds", 0.0)
    dispatcher, texts = translator.dispatcher, [" ".join(sentences(20)), sentences(1)[0]]
    expected = [translation.text for translation in translator.translate_many(texts)]
    tasks = [translator.planner().task(text) for text in texts]
    dispatcher.submit(tasks)
    done: list[TextTask] = []
    while len(done) < 2:
        ended = dispatcher.step()
        assert len(ended) <= 1
        done += ended
    assert done == tasks[::-1] and [task.translation().text for task in tasks] == expected
    assert not dispatcher.busy


def test_results_of_a_caller_with_many_requests_come_together(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    dispatcher, texts = translator.dispatcher, sentences(60)
    monkeypatch.setattr(dispatcher, "step_seconds", math.inf)
    monkeypatch.setattr("mt.pipeline.dispatcher.MANY_REQUESTS", 20)
    monkeypatch.setattr("mt.pipeline.dispatcher.RESULTS_TOGETHER", 5)
    expected = [translator.translate(text).text for text in texts]
    planner = translator.planner()
    tasks = [planner.task(text) for text in texts]
    dispatcher.submit(tasks)
    numbers, add_result = list[int](), Routine.add_result

    def count_results(routine: Routine[object], result: Result) -> list[Result] | None:
        numbers[-1] += 1
        return add_result(routine, result)

    monkeypatch.setattr(Routine, "add_result", count_results)
    while dispatcher._unfinished.total() > 20:
        numbers.append(0)
        dispatcher.step()
    assert min(filter(None, numbers)) >= 5
    for task in tasks:
        dispatcher.finish(task)
    assert not dispatcher.busy and not dispatcher._unfinished
    assert [task.translation().text for task in tasks] == expected


def test_a_caller_with_few_requests_does_not_wait_for_others(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mt.pipeline.dispatcher.RESULTS_TOGETHER", math.inf)
    dispatcher, busy = translator.dispatcher, translator.planner()
    tasks = [busy.task(text) for text in sentences(100)]
    light = translator.planner().task(sentences(1)[0])
    dispatcher.submit([*tasks, light])
    dispatcher.finish(light)
    assert translator.engine.busy and not all(task.done for task in tasks)
    dispatcher.cancel(tasks)
    assert not dispatcher._unfinished


def test_results_that_nobody_waits_for_are_dropped(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translator.dispatcher, "step_seconds", 0.0)
    dispatcher, text = translator.dispatcher, " ".join(sentences(1) * 20)
    task = translator.planner().task(text)
    dispatcher.submit([task])
    steps = translator.engine.steps
    while translator.engine.steps < steps + 3:
        dispatcher.step()
    dispatcher.cancel([task])
    while dispatcher.busy:
        assert dispatcher.step() == []
    monkeypatch.setattr(dispatcher, "step_seconds", math.inf)
    task = translator.planner(explain=ExplainOptions(alignment=True)).task(text)
    dispatcher.submit([task])
    while translator.engine.busy:
        dispatcher.step()
    assert dispatcher.busy  # the sentences wait for their attention
    dispatcher.cancel([task])
    assert not dispatcher.busy


def test_threads_can_share_a_translator(translator: Translator) -> None:
    texts = sentences(24, seed=5)
    expected = [translation.text for translation in translator.translate_many(texts)]
    with ThreadPoolExecutor(4) as pool:
        alone = pool.map(translator.translate, texts)
        streams = pool.map(lambda _: [text_of(translation) for translation in translator.stream(texts)], range(3))
        assert [translation.text for translation in alone] == expected
        assert list(streams) == [expected] * 3
    assert not translator.dispatcher.busy
