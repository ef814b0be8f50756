"""The core over models that a person can follow: one writes words in capitals, another puts them in reverse order."""

import asyncio
import gc
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.pipeline.results import SentenceReport
from mt.text.terms import Terms
from service.errors import DeadlineExceeded, Overloaded, UnsupportedLanguage
from service.translation import service
from service.translation.answers import reports_of
from service.translation.cache import keys_of
from service.translation.jobs import Answer, Format, Job, StreamedSentence
from service.translation.service import TranslationService
from service.workers.fleet import Fleet
from tests.service.doubles import DirectParsers, Guesses, WordModels, backwards, upper
from tests.service.running import until

DIRECT = {"en-de": upper}
BRIDGED = {"en-de": upper, "de-fr": backwards}


def over(models: WordModels, cache: int = 0) -> TranslationService:
    return TranslationService(cast(Fleet, models), cache, detector=Guesses, parsers=DirectParsers())


def job(*texts: str, **more: Any) -> Job:
    return Job(texts, **{"source": "en", "target": "de", **more})


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


def translated(models: WordModels, asked: Job) -> list[Answer]:
    found: list[Answer] = run(over(models).translate(asked))
    return found


def texts_of(answers: list[Answer]) -> list[str]:
    return [answer.text for answer in answers]


def test_order_is_kept_and_texts_go_together() -> None:
    models = WordModels()
    assert texts_of(translated(models, job("a b", "", "c", "a b"))) == ["A B", "", "C", "A B"]
    assert [[text.text for text in call.texts] for call in models.calls] == [["a b", "c"]]


@pytest.mark.parametrize("text", ["", " ", "\n\n", "...", "👍", "— …", "\u200b"])
def test_what_has_no_words_reaches_no_model(text: str) -> None:
    models = WordModels()
    (answer,) = translated(models, job(text))
    assert answer.text == text and answer.confidence == 1.0 and answer.alternatives == ()
    assert not models.calls


# Languages told


@pytest.mark.parametrize(
    ("text", "language", "format", "untranslated"),
    [
        (" ecco il cane\n", "it", Format.TEXT, ("ecco il cane",)),  # no model has this language
        ("da ist der Hund", "de", Format.TEXT, ("da ist der Hund",)),  # no model translates it into English
        ("<p>ecco <b>il</b> cane</p><p>dorme</p>", "it", Format.HTML, ("ecco il cane", "dorme")),
    ],
)
def test_detected_language_that_is_not_served(text: str, language: str, format: Format, untranslated: object) -> None:
    models = WordModels({"en-de": upper, "fr-en": upper})
    asked = job("voici le chien", text, source=None, target="en", format=format)
    served, other = translated(models, asked)
    assert (served.text, served.served) == ("VOICI LE CHIEN", True)
    assert (other.text, other.source, other.served, other.confidence) == (text, language, False, None)
    assert other.detected and other.detected.language == language and other.untranslated == untranslated
    segments, answers = run(streamed(over(models), asked))
    assert [segment.translation for segment in segments] == ["VOICI LE CHIEN", text]
    assert [answer.detected for answer in answers] == [served.detected, other.detected]
    assert answers[1].untranslated == untranslated
    with pytest.raises(UnsupportedLanguage, match=rf"\({language}\)|{language} is not supported"):
        run(over(models).translate_document("a.txt", b"ecco il cane" if language == "it" else b"der Hund", asked))


def test_markup_is_read_by_the_rules_of_the_detected_language() -> None:
    """A line in lower case ends a text, or goes on, depending on its words."""
    html, seen = "<p>the dog<br>the cat</p>", []
    for source in ("en", None):
        models = WordModels()
        asked = job("<p>", html, source=source, format=Format.HTML)
        assert texts_of(translated(models, asked)) == ["<p>", "<p>THE DOG<br>THE CAT</p>"]
        run(over(models).translate_document("a.html", html.encode(), asked))
        seen.append([[text.text for text in call.texts] for call in models.calls])
    assert seen == [[["the dog", "the cat"], ["the dog", "the cat"]]] * 2


def test_in_doubt_a_language_that_can_be_translated_is_taken() -> None:
    class Unsure(Guesses):
        def detect(self, text: str) -> list[tuple[str, float]]:
            return [("de", 0.5), ("fr", 0.4), ("en", 0.1)]

    models = WordModels(dict.fromkeys(("en-de", "fr-en", "fr-de"), upper))
    translations = TranslationService(cast(Fleet, models), detector=Unsure)
    for target in ("en", "de"):  # few texts are in their target language
        (answer,) = run(translations.translate(job("ok", source=None, target=target)))
        assert (answer.source, answer.text) == ("fr", "OK")


# Bridges


def test_through_a_bridge_and_said_so() -> None:
    models = WordModels(BRIDGED)
    asked = job("one two. three four.\n\n- five", target="fr", alternatives=1, alignment=True)
    (answer,) = translated(models, asked)
    assert answer.text == "TWO ONE. FOUR THREE.\n\n- FIVE"
    assert (answer.source, answer.bridge, answer.confidence) == ("en", "de", 0.25)
    assert [(str(call.options.direction), call.options.n_best) for call in models.calls] == [("en-de", 1), ("de-fr", 2)]
    assert [each.source_range for each in answer.sentences] == [(0, 8), (9, 20), (22, 28)]
    words = [(asked.texts[0][a:b], answer.text[c:d]) for each in answer.sentences for (a, b), (c, d) in each.links]
    assert sorted(words) == [("five", "FIVE"), ("four", "FOUR"), ("one", "ONE"), ("three", "THREE"), ("two", "TWO")]
    assert answer.alternatives == ("TWO ONE.~1 FOUR THREE.~1\n\n- FIVE~1",)


def test_terms_across_a_bridge(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first model carries them across as they are, so that the last, which knows them, finds them.

    They are not checked again on the event loop: 10,000 terms took 30 ms.
    """
    models = WordModels(BRIDGED)
    terms, names = Terms((("cat", "chat"),), ("Rex",)), Terms((), ("Rex", "cat"))
    monkeypatch.setattr(Terms, "_problems", None)
    assert texts_of(translated(models, job("a cat and Rex", target="fr", terms=terms))) == ["Rex AND chat A"]
    assert [call.options.terms for call in models.calls] == [names, terms]


def test_many_terms_are_pickled_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = list[bool]()

    def recorded(*arguments: Any) -> list[bytes]:
        threads.append(threading.current_thread() is threading.main_thread())
        return keys_of(*arguments)

    monkeypatch.setattr("service.translation.service.keys_of", recorded)
    translated(WordModels(), job("a cat", terms=Terms((), tuple(f"Rex {number}" for number in range(100)))))
    assert threads == [False]


# Markup


def test_only_where_there_are_marks_the_alignment_is_asked_for() -> None:
    models = WordModels()
    translated(models, job("<p>one</p><p>two <i>three</i></p><p>four</p>", format=Format.HTML))
    (call,) = models.calls
    assert [(text.text, text.aligned) for text in call.texts] == [("one", False), ("two three", True), ("four", False)]


@pytest.mark.parametrize(
    ("asked", "threads"),
    [
        (job("<b>a</b>", format=Format.HTML), 0),
        (job(*[""] * 1000, format=Format.HTML), 4),  # read, prepared, written, and made answers
        (job("<b>a</b>" * 20, format=Format.HTML, alternatives=10), 1),  # is written eleven times
        (job("a " * 50, source=None), 0),
        (job("a " * 500, source=None), 1),
    ],
)
def test_a_thread_works_on_many_texts_and_versions(asked: Job, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The event loop took 16 to 26 ms for texts that have few characters."""
    begun, to_thread = [0], asyncio.to_thread

    def counted(work: Any) -> Coroutine[Any, Any, Any]:
        begun[0] += 1
        return to_thread(work)

    async def translate() -> None:
        translations = over(WordModels())
        await translations.warm_up()
        monkeypatch.setattr(asyncio, "to_thread", counted)
        await translations.translate(asked)
        monkeypatch.undo()

    run(translate())
    assert begun == [threads]


def test_only_long_markup_is_parsed_in_a_process() -> None:
    markup = DirectParsers()
    translations = TranslationService(cast(Fleet, WordModels()), parsers=markup)
    for times, operations in ((100, []), (1000, ["read_markup", "write_markup"])):
        html = "<p>a</p>" * times
        (answer,) = run(translations.translate(job(html, format=Format.HTML)))
        assert answer.text == html.upper().replace("P>", "p>")
        assert markup.names == operations


# The same work, once


@dataclass
class InFlight:
    """A service whose models wait until `opened`, and its calls."""

    models: WordModels = field(default_factory=WordModels)

    def __post_init__(self) -> None:
        self.service = over(self.models)
        self.models.opened.clear()

    async def begin(self, *texts: str, calls: int | None = None, **more: Any) -> "asyncio.Task[list[Answer]]":
        """Begin a translation. Wait for so many calls of the models, or a while."""
        task = asyncio.create_task(self.service.translate(job(*texts, **more)))
        for _ in range(20):
            await asyncio.sleep(0)
        if calls is not None:
            await until(lambda: len(self.models.calls) == calls)
        return task

    @property
    def texts(self) -> list[list[str]]:
        return [[text.text for text in call.texts] for call in self.models.calls]


async def test_one_text_does_not_wait_for_anothers_many() -> None:
    flight = InFlight()
    many, one = await flight.begin("a", "b", "c", calls=1), await flight.begin("b", calls=2)
    as_many = await flight.begin("c", "a", "d", calls=3)
    flight.models.opened.set()
    assert [texts_of(await each) for each in (many, one, as_many)] == [["A", "B", "C"], ["B"], ["C", "A", "D"]]
    assert flight.texts == [["a", "b", "c"], ["b"], ["c", "a", "d"]]


async def test_anothers_deadline_is_not_mine() -> None:
    flight = InFlight()
    one = await flight.begin("a", calls=1, deadline=time.monotonic() + 0.1)
    two = await flight.begin("a")
    with pytest.raises(DeadlineExceeded):
        await one
    flight.models.opened.set()
    assert texts_of(await two) == ["A"]
    assert flight.texts == [["a"]]
    with pytest.raises(DeadlineExceeded):
        await flight.service.translate(job("b", deadline=time.monotonic() - 1))
    assert flight.texts == [["a"]]


def late_errors() -> list[DeadlineExceeded]:
    return [error for error in gc.get_objects() if issubclass(type(error), DeadlineExceeded)]


async def test_a_stream_that_is_late_leaves_no_cycle() -> None:
    """Its texts would stay in memory until a full garbage collection."""
    flight = InFlight()
    gc.collect()
    gc.disable()
    try:
        before = late_errors()
        with suppress(DeadlineExceeded):
            await streamed(flight.service, job("a", deadline=time.monotonic() + 0.05))
        await asyncio.sleep(0)
        assert [error for error in late_errors() if error not in before] == []
    finally:
        gc.enable()


ALIKE: list[dict[str, Any]] = [{"deadline": 1e12}, {"format": Format.HTML}]
DIFFERENT: list[dict[str, Any]] = [
    *({"terms": terms} for terms in (Terms((("a", "b"),)), Terms((), ("a",)))),
    *({name: True} for name in ("alignment", "attention")),
    *({"caller": "another"}, {"beam_size": 2}, {"split_sentences": False}, {"alternatives": 1}),
]


async def test_what_the_cache_knows_apart() -> None:
    models = WordModels({"en-de": upper, "en-fr": backwards})
    translations = over(models, cache=100_000)
    first = await translations.translate(job("a b"))
    assert await translations.translate(job("a b")) == first
    for more in ALIKE:
        await translations.translate(job("a b", **more))
    assert len(models.calls) == 1
    for more in DIFFERENT:
        await translations.translate(job("a b", **more))
    assert len(models.calls) == 1 + len(DIFFERENT)
    assert texts_of(await translations.translate(job("a b", target="fr"))) == ["b a"]
    assert texts_of(await translations.translate(job("a b "))) == ["A B "]
    kept = await translations.translate(job("<p>a <code>b</code></p>", format=Format.HTML))
    assert texts_of(kept) == ["<p>A <code>b</code></p>"], "though the same text without a kept range is stored"
    models.revision = 2  # another model answers now
    await translations.translate(job("a b"))
    assert len(models.calls) == 5 + len(DIFFERENT)


# Streams


async def streamed(translations: TranslationService, asked: Job) -> tuple[list[StreamedSentence], list[Answer]]:
    found = [each async for each in translations.stream(asked)]
    assert isinstance(found[-1], list)
    return [each for each in found[:-1] if isinstance(each, StreamedSentence)], found[-1]


@given(
    st.one_of(
        st.text("ab .!?\n-1\u200b", max_size=60),
        st.sampled_from(["The dog.\u200b", "  One two.  Three!\r\n\r\n- five six\n1. Seven. 2. Eight? \n"]),
    ),
    st.sampled_from([("de", DIRECT), ("fr", BRIDGED)]),
)
@settings(max_examples=80)
def test_any_stream_joins_to_the_answer(text: str, route: tuple[str, dict[str, Any]]) -> None:
    target, ways = route
    asked = job(text, text, target=target, alternatives=1, alignment=True)

    async def compare() -> None:
        sentences, answers = await streamed(over(WordModels(ways)), asked)
        whole = await over(WordModels(ways)).translate(asked)
        assert texts_of(list(answers)) == texts_of(whole)
        assert [answer.sentences for answer in answers] == [answer.sentences for answer in whole]
        for number in (0, 1):
            mine = [sentence for sentence in sentences if sentence.text == number]
            assert [sentence.index for sentence in mine] == list(range(len(mine))) and mine
            assert "".join(sentence.translation for sentence in mine) == whole[number].text
            assert "".join(text[slice(*sentence.source)] for sentence in mine) == text

    run(compare())


async def test_sentences_come_as_soon_as_they_can_and_no_sooner_than_they_may() -> None:
    models = WordModels()
    stream = over(models).stream(job(" ".join(f"Sentence number {n}." for n in range(40))))
    first = await anext(stream)
    assert isinstance(first, StreamedSentence) and first.translation == "SENTENCE NUMBER 0."
    assert models.finished == 0, "the rest of the text is still in work"
    assert [each.index async for each in stream if isinstance(each, StreamedSentence)] == list(range(1, 40))


async def test_others_are_served_between_sentences_that_arrive_together() -> None:
    translations, asked = over(WordModels(), cache=1_000_000), job(" ".join(f"Sentence number {n}." for n in range(40)))
    await translations.translate(asked)
    sent, served = 0, list[object]()
    async for each in translations.stream(asked):
        asyncio.get_running_loop().call_soon(served.append, each)
        sent += 1
        assert sent - len(served) <= 2
    assert sent == 41


async def test_a_long_answer_of_the_cache_is_divided_as_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """All sentences of 16,500 at once took 2.3 MB of memory for each client that reads slowly."""
    made = 0

    def reports(answer: Answer) -> Iterator[SentenceReport]:
        nonlocal made
        for report in reports_of(answer):
            made += 1
            yield report

    monkeypatch.setattr(service, "reports_of", reports)
    translations = over(WordModels(), cache=1_000_000)
    asked = job(" ".join(f"Sentence number {n}." for n in range(3 * service.PART_REPORTS)))
    first = await streamed(translations, asked)
    assert not made
    await anext(translations.stream(asked))
    assert 0 < made <= service.PART_REPORTS
    made = 0
    assert (await streamed(translations, asked)) == first and len(first[0]) == made == 3 * service.PART_REPORTS


async def test_a_stream_is_refused_at_its_beginning_or_not_at_all() -> None:
    with pytest.raises(Overloaded):
        await streamed(over(WordModels(errors=[Overloaded(1)])), job("One. Two."))
    models = WordModels()
    stream = over(models).stream(job("One. Two.", "<p>three</p>", "Four.", format=Format.HTML))
    found = [await anext(stream)]
    models.errors = [Overloaded(1)]
    found += [each async for each in stream]
    assert isinstance(found[-1], list)
    assert texts_of(found[-1]) == ["ONE. TWO.", "<p>THREE</p>", "FOUR."]
    models = WordModels(BRIDGED)
    count = 32
    stream = over(models).stream(job(" ".join(f"Number {n}." for n in range(count)), target="fr"))
    await anext(stream)
    models.errors = [Overloaded(1)]
    assert len([each async for each in stream]) == count  # the end is one of them


# Documents


async def test_a_document_in_its_own_language_told_as_a_whole() -> None:
    translations = over(WordModels())
    content = b"the first line\nsecond\n\n  third: x \n"
    asked = job(source=None)
    assert await translations.translate_document("a.txt", content, asked) == b"THE FIRST LINE\nSECOND\n\n  THIRD: X \n"
    both = over(WordModels({"en-de": upper, "de-en": upper}))
    for target in ("de", "en"):
        no_letters = b"12345 67 \n"
        assert await both.translate_document("a.txt", no_letters, job(source=None, target=target)) == no_letters
    with pytest.raises(UnsupportedLanguage, match="equal"):
        await translations.translate_document("a.txt", no_letters, job(source=None, target="en"))


def test_a_document_is_not_parsed_again_while_the_queue_is_full() -> None:
    parsers, models = DirectParsers(), WordModels(errors=[Overloaded(1)])
    translations = TranslationService(cast(Fleet, models), detector=Guesses, parsers=parsers)
    assert run(translations.translate_document("a.txt", b"one", job())) == b"ONE"
    assert parsers.names == ["read_document", "write_document"]


async def test_what_is_too_much_at_a_time_is_asked_for_in_halves() -> None:
    models = WordModels(errors=[DeadlineExceeded(), DeadlineExceeded()])
    found = await over(models).translate_document("a.txt", b"one\ntwo\nthree\nfour", job())
    assert found == b"ONE\nTWO\nTHREE\nFOUR"
    assert [len(call.texts) for call in models.calls] == [4, 2, 1, 1, 2]
    models = WordModels(errors=[DeadlineExceeded()])
    with pytest.raises(DeadlineExceeded):
        await over(models).translate_document("a.txt", b"one", job())


def test_markup_is_not_parsed_while_the_queue_is_full() -> None:
    with pytest.raises(Overloaded):
        translated(WordModels(full=True), job("<p>one</p>", format=Format.HTML))
