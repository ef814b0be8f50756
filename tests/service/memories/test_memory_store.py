"""Stored translation memories: whose they are, what they find, and what the limits delete."""

import asyncio
import random
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from threading import Event

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.languages import Direction
from mt.text.fuzzy_match import similarity, words
from service.access.database import Database
from service.errors import InvalidRequest, NotFound, StorageFull, StorageUnavailable
from service.memories import index as memory_index
from service.memories import store as memory_store
from service.memories.store import (
    OPERATOR,
    PURGED_ROWS,
    SLICE,
    UNFINISHED_SECONDS,
    MemoryLimits,
    MemoryStore,
    add_units,
    find_matches,
    find_or_create,
    slices,
)
from service.memories.units import MemoryUnit, clean_unit
from tests.service.conftest import PassTime
from tests.service.doubles import UnreliableDatabase

EN_DE = Direction("en", "de")
KEY = "key:0a"
LIMITS = MemoryLimits()
ANIMALS = [MemoryUnit("The dog sleeps.", "Der Hund schläft."), MemoryUnit("Two cats eat.", "Zwei Katzen fressen.")]


@pytest.fixture
def store(database: Database) -> MemoryStore:
    return MemoryStore(database, LIMITS)


def numbered(slices: int) -> list[MemoryUnit]:
    """Units that are stored in so many transactions."""
    return [MemoryUnit(f"{number}", "x") for number in range(slices * SLICE)]


def rows(database: Database) -> int:
    tables = ("memories", "memory_units", "memory_words", "memory_lengths")
    union = " UNION ALL ".join(f"SELECT count(*) FROM {table}" for table in tables)
    return sum(count for (count,) in database.run_sync(lambda connection: connection.execute(union).fetchall()))


async def test_a_sentence_is_found_in_other_characters(store: MemoryStore) -> None:
    memory = await store.put(KEY, "dogs", EN_DE, [MemoryUnit("Ma\u0308dchen\u00a0go\u00ading", "a\u00a0b")])
    for asked in ("Mädchen going", "Mädchen\u202fgoing\u200b", "\ufeffMädchen ｇｏｉｎｇ"):
        (match,) = await store.matches(KEY, memory.id, EN_DE, [asked], 0.7)
        assert (match.sentence, match.score) == (asked, 1.0)


async def test_units_with_the_same_source_are_replaced_in_their_own_memory_only(store: MemoryStore) -> None:
    first = await store.put(KEY, "animals", EN_DE, ANIMALS)
    places = (KEY, "b"), ("key:0b", "animals")
    others = [(owner, await store.put(owner, name, EN_DE, ANIMALS)) for owner, name in places]
    changed = [MemoryUnit("The dog\tsleeps.", "Der Hund ruht."), MemoryUnit("Yes", "Ja")]
    again = await store.put(KEY, "animals", EN_DE, changed)
    assert (again.id, again.units) == (first.id, 3)
    expected = [MemoryUnit("The dog sleeps.", "Der Hund ruht."), ANIMALS[1], MemoryUnit("Yes", "Ja")]
    for owner, memory, units in ((KEY, first, expected), *((*other, ANIMALS) for other in others)):
        assert [unit async for part in store.units(owner, memory.id) for unit in part] == units
    (match,) = await store.matches(KEY, first.id, EN_DE, [ANIMALS[0].source], 1.0)
    assert match.target == "Der Hund ruht."
    other = await store.put(KEY, "animals", Direction("de", "en"), [MemoryUnit("Ja", "Yes")])
    assert [memory.id for memory in await store.owned(KEY)] == [first.id, others[0][1].id, other.id]


async def test_a_unit_without_text_or_with_a_long_text_is_left_out(store: MemoryStore) -> None:
    units = [MemoryUnit("a", " "), MemoryUnit("\x01", "b"), MemoryUnit("c" * 4001, "c"), MemoryUnit("d", "e\x00f")]
    memory = await store.put(KEY, "x", EN_DE, units)
    assert [unit async for slice in store.units(KEY, memory.id) for unit in slice] == [MemoryUnit("d", "e f")]


async def test_a_memory_belongs_to_its_key_and_the_operators_can_be_used_by_all(store: MemoryStore) -> None:
    mine = await store.put(KEY, "mine", EN_DE, ANIMALS)
    shared = await store.put(OPERATOR, "shared", EN_DE, ANIMALS)
    for other in ("key:0b", "192.0.2.1"):
        assert await store.owned(other) == []
        for attempt in (store.get, store.delete):
            for memory in (mine, shared):
                with pytest.raises(NotFound):
                    await attempt(other, memory.id)
        with pytest.raises(NotFound):
            await store.check(other, mine.id, "en", "de")
        assert await store.matches(other, mine.id, EN_DE, ["The dog sleeps."], 0.7) == []
        await store.check(other, shared.id, None, "de")
        assert await store.matches(other, shared.id, Direction("de", "en"), ["The dog sleeps."], 0.7) == []
        assert len(await store.matches(other, shared.id, EN_DE, ["The dog sleeps."], 0.7)) == 1
    with pytest.raises(InvalidRequest, match="is for en-de, not for en-fr"):
        await store.check(KEY, mine.id, "en", "fr")


async def test_a_memory_without_a_key_is_found_until_it_expires(store: MemoryStore, pass_time: PassTime) -> None:
    memory = await store.put("192.0.2.1", "x", EN_DE, ANIMALS)
    assert (await store.put("192.0.2.1", "x", EN_DE, ANIMALS)).id != memory.id
    assert (await store.get("192.0.2.2", memory.id)).units == 2
    assert await store.owned("192.0.2.1") == []
    pass_time(LIMITS.anonymous_seconds)
    await store.put(KEY, "y", EN_DE, ANIMALS)
    with pytest.raises(NotFound):
        await store.get("192.0.2.1", memory.id)


async def test_limits_are_named_and_leave_nothing_behind(database: Database) -> None:
    size = 2 * 1024
    limits = MemoryLimits(memories=2, units=SLICE + 1, bytes_per_caller=1_000_000, bytes=1_500_000)
    store = MemoryStore(database, limits)

    def many(count: int, length: int = 1) -> list[MemoryUnit]:
        return [MemoryUnit(f"{number}", "x" * length) for number in range(count)]

    with pytest.raises(InvalidRequest, match="would have 1002 units; accepted: at most 1001"):
        await store.put(KEY, "a", EN_DE, many(SLICE + 2))
    with pytest.raises(InvalidRequest, match="bytes; accepted: at most 1000000"):
        await store.put(KEY, "a", EN_DE, many(SLICE, size))
    assert await store.owned(KEY) == []
    assert rows(database) == 0
    await store.put(KEY, "a", EN_DE, many(300, size))
    with pytest.raises(StorageFull):
        await store.put("key:0b", "a", EN_DE, many(400, size))
    await store.put(KEY, "b", EN_DE, many(1))
    with pytest.raises(InvalidRequest, match="2 memories are stored already"):
        await store.put(KEY, "c", EN_DE, many(1))
    with pytest.raises(InvalidRequest, match="name must have 1 to 500"):
        await store.put(KEY, " ", EN_DE, many(1))


@pytest.mark.parametrize(
    ("source", "count", "sizes"),
    [
        pytest.param("one two three", 2500, [1000, 1000, 500], id="short"),
        pytest.param(" ".join(f"w{word}" for word in range(200)), 120, [49, 49, 22], id="many words"),
        pytest.param("我" * 100, 250, [100, 100, 50], id="many characters"),
        pytest.param(" ".join(f"w{word}" for word in range(201)), 1200, [1000, 200], id="not in the index"),
        pytest.param("&" * 4000, 300, [250, 50], id="long"),
        pytest.param("", 0, [], id="none"),
    ],
)
def test_a_transaction_adds_a_bounded_part_of_the_index(source: str, count: int, sizes: list[int]) -> None:
    units = [MemoryUnit(source, f"{number}") for number in range(count)]
    parts = list(slices(units))
    assert [len(part) for part in parts] == sizes
    assert [unit for part in parts for unit in part] == units


async def test_units_are_read_in_parts_of_bounded_size(store: MemoryStore) -> None:
    units = [MemoryUnit(f"{number}" + "a" * 3900, "\U0001f600" * 4000) for number in range(20)]
    memory = await store.put(KEY, "x", EN_DE, units)
    parts = [part async for part in store.units(KEY, memory.id)]
    assert [len(part) for part in parts] == [4] * 5  # of 20,000 bytes each
    assert [unit for part in parts for unit in part] == units


async def test_the_bytes_of_a_memory_include_its_index(database: Database) -> None:
    """They are compared with the growth of the database, for sources of 200 words that no other source has."""

    def size_of_database(connection: sqlite3.Connection) -> int:
        (pages,), (page_size,) = (connection.execute(f"PRAGMA page_{name}").fetchone() for name in ("count", "size"))
        return int(pages * page_size)

    before = database.run_sync(size_of_database)
    units = [MemoryUnit(" ".join(f"w{200 * unit + word}" for word in range(200)), "x") for unit in range(200)]
    await MemoryStore(database, LIMITS).put(KEY, "x", EN_DE, units)
    (size,) = database.run_sync(lambda connection: connection.execute("SELECT bytes FROM memories").fetchone())
    assert 0.8 < size / (database.run_sync(size_of_database) - before) < 1.5


@pytest.mark.parametrize("uploader", [KEY, "key:0b"])
async def test_an_interrupted_upload_leaves_nothing(database: Database, pass_time: PassTime, uploader: str) -> None:
    store = MemoryStore(database, replace(LIMITS, memories=1))
    upload = asyncio.create_task(store.put(KEY, "x", EN_DE, numbered(6)))
    while not rows(database):
        await database.read(lambda connection: None)
    upload.cancel()
    await asyncio.wait([upload])

    def begin(connection: sqlite3.Connection) -> None:  # in a process that ends then
        add_units(connection, find_or_create(connection, KEY, "z", EN_DE, LIMITS).id, ANIMALS, LIMITS)

    database.run_sync(begin)
    assert await store.owned(KEY) == []
    pass_time(UNFINISHED_SECONDS)
    kept = await store.put(uploader, "y", EN_DE, [MemoryUnit("a", "b")])
    assert rows(database) == 4
    assert await store.owned(uploader) == [kept]


async def test_a_late_transaction_leaves_nothing() -> None:
    with UnreliableDatabase.open(None) as database:
        database.outcomes = "done", "late"
        with pytest.raises(StorageUnavailable):
            await MemoryStore(database, LIMITS).put("192.0.2.1", "x", EN_DE, numbered(3))
        assert rows(database) == 0


async def test_an_upload_is_refused_in_time_on_a_disk_that_stands_still(
    database: Database, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The deletion of what it has stored would take as long again."""
    outcomes = iter([StorageUnavailable()])

    async def write(*_: object) -> None:
        for error in outcomes:
            raise error
        await asyncio.sleep(60)

    monkeypatch.setattr(database, "write", write)
    monkeypatch.setattr(memory_store, "CLEANUP_SECONDS", 0.01)
    with pytest.raises(StorageUnavailable):
        async with asyncio.timeout(10):
            await store.put(KEY, "x", EN_DE, numbered(3))


@pytest.mark.parametrize("delay", range(4))
async def test_a_refused_upload_leaves_the_units_of_another_one(database: Database, delay: int) -> None:
    """Both uploads find or create the same memory; the larger one is refused in its third transaction."""
    store, small = MemoryStore(database, replace(LIMITS, units=2 * SLICE + 1)), MemoryUnit("small", "small")
    refused = asyncio.create_task(store.put(KEY, "pets", EN_DE, numbered(3)))
    for _ in range(delay):
        await database.read(lambda connection: None, KEY)
    accepted = await store.put(KEY, "pets", EN_DE, [small])
    with pytest.raises(InvalidRequest, match="the memory would have"):
        await refused
    (memory,) = await store.owned(KEY)
    assert memory.id == accepted.id
    assert small in [unit async for part in store.units(KEY, memory.id) for unit in part]


async def test_the_largest_holder_without_a_key_loses_its_oldest_memory(database: Database) -> None:
    store = MemoryStore(database, replace(LIMITS, anonymous_bytes=20_000))
    texts = [MemoryUnit(f"{number}", "x" * 700) for number in range(5)]
    lost = await store.put("192.0.2.1", "a", EN_DE, texts)
    kept = [await store.put("192.0.2.1", "b", EN_DE, texts), await store.put("192.0.2.2", "c", EN_DE, texts)]
    kept.append(await store.put("192.0.2.3", "d", EN_DE, texts))
    with pytest.raises(NotFound):
        await store.get("192.0.2.1", lost.id)
    assert [(await store.get("", memory.id)).units for memory in kept] == [5, 5, 5]
    with pytest.raises(StorageFull):
        await store.put("192.0.2.4", "e", EN_DE, [MemoryUnit(f"{number}", "x" * 900) for number in range(20)])


async def test_a_deleted_memory_leaves_no_row(database: Database, store: MemoryStore) -> None:
    kept = await store.put(KEY, "kept", EN_DE, ANIMALS)
    before = rows(database)
    memory = await store.put(KEY, "x", EN_DE, [MemoryUnit(f"w{number} v", "x") for number in range(PURGED_ROWS + 1)])
    await store.delete(KEY, memory.id)
    assert rows(database) == before
    assert len(await store.matches(KEY, kept.id, EN_DE, ["The dog sleeps."], 0.7)) == 1


async def test_deletion_while_the_disk_is_full() -> None:
    with UnreliableDatabase.open(None) as database:
        store = MemoryStore(database, LIMITS)
        memory = await store.put(KEY, "x", EN_DE, ANIMALS)
        database.outcomes = "done", "refused"
        await store.delete(KEY, memory.id)
        assert await store.owned(KEY) == []
        await store.put(KEY, "y", EN_DE, [])
        assert rows(database) == 1


async def test_the_units_of_a_memory_deleted_meanwhile_have_no_end(store: MemoryStore) -> None:
    memory = await store.put(KEY, "x", EN_DE, numbered(2))
    units = store.units(KEY, memory.id)
    first = await anext(units)
    assert list(first) == numbered(1)[: len(first)]
    await store.delete(KEY, memory.id)
    other = await store.put("192.0.2.1", "x", EN_DE, ANIMALS)
    assert other.number == memory.number
    with pytest.raises(NotFound, match="deleted"):
        await anext(units)


async def test_an_upload_into_a_deleted_memory_does_not_go_on_in_another_one(store: MemoryStore) -> None:
    memory = await store.put(KEY, "x", EN_DE, ANIMALS)
    replaced = Event()

    def units() -> Iterator[MemoryUnit]:
        yield from numbered(2)
        replaced.wait()
        yield MemoryUnit("poison", "Gift")

    upload = asyncio.create_task(store.put(KEY, "x", EN_DE, units()))
    while (await store.get(KEY, memory.id)).updated == memory.updated:
        await asyncio.sleep(0)
    await store.delete(KEY, memory.id)
    other = await store.put("192.0.2.1", "x", EN_DE, ANIMALS[:1])
    replaced.set()
    with pytest.raises(NotFound, match="deleted"):
        await upload
    assert other.number == memory.number
    assert (await store.get("", other.id)).units == 1


@pytest.mark.parametrize("block", [4, 4096])
def test_the_best_match_is_found(database: Database, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """The index finds what a comparison with all units finds, also if units are added in several slices."""
    monkeypatch.setattr(memory_index, "BLOCK", block)
    generator = random.Random(1)
    vocabulary = ["the", "The", "a", "cat", "dog", "red", "house", "42", ",", ".", "狗在"]

    def sentence() -> str:
        return " ".join(generator.choice(vocabulary) for _ in range(generator.randrange(1, 12)))

    units = [MemoryUnit(sentence(), "x") for _ in range(300)]
    asked = [sentence() for _ in range(150)]

    def use(connection: sqlite3.Connection) -> None:
        memory = find_or_create(connection, KEY, "x", EN_DE, LIMITS)
        for begin in range(0, len(units), 37):
            add_units(connection, memory.id, units[begin : begin + 37], LIMITS)
        found = {match.sentence: match.score for match in find_matches(connection, memory.number, asked, 0.6)}
        for text in asked:
            score = max(similarity(words(text), words(clean_unit(unit).source)) for unit in units)
            if score == 1.0 and text not in {unit.source for unit in units}:
                score = 0.99
            assert found.get(text, 0.0) == pytest.approx(score if score >= 0.6 else 0.0)

    database.run_sync(use)


def test_any_text_can_be_stored_and_looked_up() -> None:
    owners = count()

    @settings(max_examples=25)
    @given(st.lists(st.text(max_size=30), max_size=5), st.text(max_size=30))
    def check(texts: list[str], asked: str) -> None:
        async def use() -> None:
            store, owner = MemoryStore(database, LIMITS), f"key:{next(owners)}"
            memory = await store.put(owner, "x", EN_DE, [MemoryUnit(text, text) for text in texts])
            for match in await store.matches(owner, memory.id, EN_DE, [asked], 0.5):
                assert match.sentence == asked

        asyncio.run(use())

    with Database.open(None) as database:
        check()


async def test_a_search_reads_a_bounded_part_of_the_index(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_index, "MAX_ENTRIES", 30)
    store = MemoryStore(database, LIMITS)
    units = [MemoryUnit(f"the the common words {n} r{n}", f"{n}") for n in range(100)]
    memory = await store.put(KEY, "x", EN_DE, [*units, MemoryUnit("42 r43 in no other unit", "rare")])
    sentence = "the the common words 42 r43"
    (match,) = await store.matches(KEY, memory.id, EN_DE, [sentence], 0.7)
    assert match.target in ("42", "43")
    similar = partial(memory_index.similar_units, memory=memory.number, sentence=sentence.split(), score=0.7)
    assert max(bound for _, bound in database.run_sync(similar)) == 1.0  # of the rare words: the others are not read
