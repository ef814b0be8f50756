"""Streams of texts: in order, a bounded number at a time, whatever happens to one of them."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import pytest

from mt import Failure, Translation, Translator
from mt.engine.bulk import TOKENS_A_TEXT
from mt.engine.threads import AnyEngine
from mt.errors import LanguageError, RequestError
from tests.conftest import sentences


@pytest.fixture(scope="module")
def translator(small_model: Path) -> Translator:
    return Translator.load(small_model, device="cpu")


@dataclass
class Reader:
    """Texts without end, counted as they are read."""

    read: int = 0
    texts: list[str] = field(default_factory=lambda: sentences(500))

    def __iter__(self) -> Iterator[str]:
        for number in count():
            self.read += 1
            yield "" if number % 7 == 3 else self.texts[number % 500]


def text_of(found: Translation | Failure) -> str:
    assert isinstance(found, Translation), found
    return found.text


@pytest.mark.parametrize("ahead", [1, 7, 1000])
def test_a_stream_gives_what_translate_gives_in_order(translator: Translator, ahead: int) -> None:
    texts = [*sentences(40), "", "Two. Sentences.", "the dog " * 200]
    expected = [found.text for found in translator.translate(texts, beam_size=2)]
    assert [
        text_of(found)
        for found in translator.stream(texts, options=replace(translator.options, beam_size=2), ahead=ahead)
    ] == expected


def test_at_most_two_chunks_are_held(translator: Translator) -> None:
    reader = Reader()
    stream = translator.stream(reader, options=replace(translator.options, beam_size=1), ahead=10)
    assert reader.read == 0
    for place in range(1, 100):
        next(stream)
        assert reader.read == 10 * (math.ceil(place / 10) + 1)  # the chunk of this place, and the next
        assert len(translator.desk._waiting) <= 20
    stream.close()  # type: ignore[attr-defined]
    assert not translator.engine.busy and not translator.desk._waiting


def test_long_texts_make_short_chunks(translator: Translator) -> None:
    reader = Reader(texts=["the dog, " * 60] * 500)
    tokens = len(translator.planner().encode(reader.texts[0].strip()))
    next(translator.stream(reader, options=replace(translator.options, beam_size=1), ahead=8))
    assert tokens > 2 * TOKENS_A_TEXT and reader.read < 2 * 8


def test_one_that_fails_is_a_value(translator: Translator, poison: str, monkeypatch: pytest.MonkeyPatch) -> None:
    encode = translator.tokenizer.encode

    def odd(text: str) -> list[int]:
        if text == "unspeakable":
            raise RuntimeError("no ids")
        return encode(text)

    monkeypatch.setattr(translator.tokenizer, "encode", odd)
    texts = [*sentences(5), poison, f"The cat. {poison}", "unspeakable", *sentences(5, seed=1)]
    found = list(translator.stream(texts, ahead=4))
    for failed, source in zip(found[5:7], texts[5:7], strict=True):
        assert isinstance(failed, Failure) and failed.source == source
        assert failed.problem == ("the text that begins 'poison' cannot be translated: ValueError: not this one")
    assert found[7] == Failure("unspeakable", "RuntimeError: no ids")
    assert all(isinstance(each, Translation) for each in (*found[:5], *found[8:]))
    assert not translator.engine.busy


def test_others_can_use_the_translator_meanwhile(translator: Translator) -> None:
    texts = sentences(30)
    expected = [found.text for found in translator.translate(texts)]
    streams = [translator.stream(texts, ahead=4) for _ in range(2)]
    found: list[list[str]] = [[], []]
    for place in range(30):
        for stream, mine in zip(streams, found, strict=True):
            mine.append(text_of(next(stream)))
        assert translator.translate([texts[place]])[0].text == expected[place]
    assert found == [expected, expected]


def test_what_is_interrupted_leaves_nothing_behind(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(engine: AnyEngine) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(type(translator.engine), "step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            translator.translate(sentences(3))
    assert not translator.engine.busy
    assert translator.translate(sentences(1))[0].text


def test_what_cannot_be_asked_for_is_said_at_once(translator: Translator) -> None:
    with pytest.raises(LanguageError):
        translator.stream([], source="xx")
    with pytest.raises(RequestError):
        translator.stream([], options=replace(translator.options, beam_size=0))


def test_a_step_settles_for_a_short_time_only(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mt.engine.bulk.SETTLING", 0.0)
    desk, text = translator.desk, " ".join(sentences(20))
    expected = translator.translate([text])[0].text
    plan = translator.planner().plan(text)
    desk.submit([plan])
    while not plan.done:
        before = len(desk._waiting)
        desk.step()
        assert before - len(desk._waiting) <= 1
    assert plan.translation().text == expected and not desk.busy


def test_results_that_nobody_waits_for_are_dropped(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mt.engine.bulk.SETTLING", 0.0)
    desk = translator.desk
    plan = translator.planner().plan(" ".join(sentences(1) * 20))
    desk.submit([plan])
    while not desk._results:
        desk.step()
    desk.cancel([plan])
    assert not desk.busy and desk.step() == []
