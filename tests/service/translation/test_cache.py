"""Work that is shared, under callers who come, leave and fail in any order."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from mt.languages import Direction
from mt.pipeline.results import AttentionMap, SentenceTranslation
from mt.text.terms import Terms
from service.errors import CannotTranslate, DeadlineExceeded, Overloaded
from service.settings import Settings
from service.translation.cache import MAX_DETACHED, MAX_SENTENCES, SLICE, TranslationCache, keys_of
from service.translation.jobs import Answer
from service.translation.service import TranslationService
from service.workers.fleet import Fleet
from service.workers.messages import OptionsMemory, SourceText, Translate, TranslateOptions
from tests.service.doubles import DirectParsers


def answer(key: bytes) -> Answer:
    return Answer(f"<{key.decode()}>", "en")


def test_terms_are_pickled_in_the_thread_that_computes_keys() -> None:
    options = TranslateOptions(Direction("en", "de"), terms=Terms((("dog", "Hund"),)))
    keys_of([SourceText("A dog.")], b"", options)
    assert "packed" in vars(options)
    packed = OptionsMemory().pack([Translate(1, SourceText("A dog."), options)])
    assert OptionsMemory().unpack(packed) == [Translate(1, SourceText("A dog."), options)]


@dataclass
class Work:
    """Answers after some time, and notes the keys."""

    seconds: float = 0
    done: list[bytes] = field(default_factory=list)

    async def __call__(self, keys: Sequence[bytes]) -> list[Answer]:
        await asyncio.sleep(self.seconds)
        self.done += keys
        return list(map(answer, keys))


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("capacity", [0, 5])
async def test_everybody_gets_their_own_or_their_own_error(seed: int, capacity: int) -> None:
    random = Random(seed)
    working = 0

    async def work(keys: Sequence[bytes]) -> list[Answer]:
        """Nobody can translate 0; now and then there is no room."""
        nonlocal working
        working += 1
        try:
            for _ in range(random.randrange(6)):
                await asyncio.sleep(0)
            if random.random() < 0.1:
                raise random.choice([Overloaded(1), DeadlineExceeded()])
            if b"0" in keys:
                raise CannotTranslate("0")
            return list(map(answer, keys))
        finally:
            working -= 1

    async def ask(shared: TranslationCache) -> None:
        for _ in range(random.randrange(10)):
            await asyncio.sleep(0)
        keys = [b"%d" % random.randrange(8) for _ in range(random.randrange(1, 5))]
        try:
            assert await shared.get("a", keys, work) == list(map(answer, keys))
            assert b"0" not in keys
        except CannotTranslate:
            assert b"0" in keys
        except (Overloaded, DeadlineExceeded):
            pass

    shared = TranslationCache(capacity, lambda key, value: 1)
    tasks = [asyncio.create_task(ask(shared)) for _ in range(60)]
    for _ in range(10):
        await asyncio.sleep(0)
        random.choice(tasks).cancel()
    await asyncio.wait(tasks, timeout=30)
    for task in tasks:
        assert task.done()
        assert task.cancelled() or task.exception() is None
    await asyncio.sleep(0)
    assert working == 0


async def test_what_is_counted() -> None:
    work, shared = Work(), TranslationCache(100, lambda key, value: len(key) + len(value.text))
    asked = [b"a", b"b"], [b"b", b"c", b"b"], [b"b", b"c"]
    answers = await asyncio.gather(*(shared.get("x", keys, work) for keys in asked))
    assert list(answers) == [list(map(answer, keys)) for keys in asked]
    assert work.done == [b"a", b"b", b"b", b"c"]
    assert await shared.get("x", [b"c", b"d"], work) == [answer(b"c"), answer(b"d")]
    assert (shared.misses, shared.joined, shared.hits) == (5, 2, 1)


async def test_callers_share_nothing_and_the_oldest_makes_room() -> None:
    work, shared = Work(), TranslationCache(6, lambda key, value: 1)
    await asyncio.gather(shared.get("x", [b"a", b"b"], work), shared.get("y", [b"a"], work))
    assert work.done == [b"a", b"b", b"a"] and shared.joined == shared.hits == 0
    await shared.get("y", [b"c", b"d", b"e"], work)
    await shared.get("x", [b"a"], work)
    await shared.get("y", [b"f"], work)
    work.done.clear()
    await shared.get("x", [b"a"], work)
    await shared.get("y", [b"c", b"d", b"e", b"f", b"a"], work)
    assert work.done == []
    await shared.get("x", [b"b"], work)
    assert work.done == [b"b"], "the entry that was used least recently has made room"


async def test_requests_that_wait_for_an_equal_one_are_in_the_queue() -> None:
    work, fleet = Work(0.05), Fleet(Settings(model=(Path("unused"),), max_pending_requests=4))
    shared = TranslationService(fleet, parsers=DirectParsers()).cache
    for _ in range(2):
        asked = [shared.get("a", [b"a"], work) for _ in range(9)]
        outcomes = [type(outcome) for outcome in await asyncio.gather(*asked, return_exceptions=True)]
        assert outcomes == [list] * 5 + [Overloaded] * 4
    assert (work.done, shared.joined, fleet.stats().requests) == ([b"a", b"a"], 8, 0)


@pytest.mark.parametrize(("seconds", "done"), [(0.0, 2 * MAX_DETACHED), (9.0, 0)])
async def test_work_goes_on_for_few_clients_of_each_caller_that_have_waited_long(seconds: float, done: int) -> None:
    work, shared = Work(0.05), TranslationCache(1000, lambda key, value: 1)
    keys = [b"%d" % number for number in range(MAX_DETACHED + 1)]
    asked = [shared.get(caller, [key], work, time.monotonic() + seconds) for caller in "ab" for key in keys]
    waiting = list(map(asyncio.create_task, asked))
    await asyncio.sleep(0.01)
    for task in waiting:
        task.cancel()
    await asyncio.wait(waiting)
    await asyncio.sleep(0.1)
    assert len(work.done) == done
    assert await shared.get("a", keys[:1], work) == [answer(keys[0])]
    assert shared.hits == (done > 0)


@pytest.mark.parametrize(("sentences", "attention"), [(MAX_SENTENCES, False), (MAX_SENTENCES + 1, False), (1, True)])
async def test_long_texts_and_attention_maps_are_not_cached(sentences: int, attention: bool) -> None:
    sentence = SentenceTranslation("a", (), (0, 1), (0, 1), attention=AttentionMap((), (), []) if attention else None)

    async def work(keys: Sequence[bytes]) -> list[Answer]:
        return [Answer("a", "en", sentences=(sentence,) * sentences)]

    cache = TranslationCache(100_000_000)
    for _ in range(2):
        await cache.get("a", [b"1"], work)
    assert cache.hits == (sentences == MAX_SENTENCES)


async def test_results_with_many_sentences_are_cached_in_slices() -> None:
    sizes: list[int] = []
    sentence = SentenceTranslation("a", (), (0, 1), (0, 1))

    async def work(keys: Sequence[bytes]) -> list[Answer]:
        return [Answer("a", "en", sentences=(sentence,) * (SLICE // 2)) for _ in keys]

    def size(key: bytes, answer: Answer) -> int:
        sizes.append(len(answer.sentences))
        return 1

    cache, keys = TranslationCache(100, size), [bytes([number]) for number in range(20)]
    await cache.get("a", keys, work)
    assert len(sizes) < len(keys)
    while (seen := len(sizes)) < len(keys):
        await asyncio.sleep(0)
        assert sum(sizes[seen:]) <= SLICE
    await cache.get("a", keys, work)
    assert cache.hits == len(keys)
