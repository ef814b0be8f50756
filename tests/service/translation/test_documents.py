"""Documents in parts, threads for long work, files that wait to be downloaded, and the schema of an earlier release."""

import asyncio
import itertools
import json
import sqlite3
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from mt.pipeline.results import SentenceTranslation
from mt.scoring.confidence import DOUBTFUL
from mt.text.documents import DocumentOptions
from service.access.database import Database
from service.access.usage import UsageLedger
from service.errors import NotFound, StorageFull
from service.routes.page import WEB
from service.translation.answers import untranslated_answer
from service.translation.coroutines import THREAD_CHARACTERS, THREADS, WorkThreads
from service.translation.document_store import FILE_BYTES, PART_BYTES, DocumentStore
from service.translation.documents import (
    MAX_PARTS,
    PART_CHARACTERS,
    PART_TEXTS,
    DocumentTranslator,
    count_doubtful,
    verdicts_of,
)
from service.translation.jobs import Answer, Job
from service.workers.messages import SourceText
from tests.service.doubles import DirectParsers

Put = tuple[str, str, int]  # owner, name, bytes with FILE_BYTES


async def content(store: DocumentStore, name: str) -> bytes:
    return b"".join([part async for part in store.parts(await store.find(name, "me"))])


@pytest.mark.parametrize(
    ("puts", "left"),
    [
        ([("a", "1", 6000), ("a", "2", 6000)], "2"),
        ([("a", "1", 5000), ("b", "2", 4500)], "12"),
        ([("a", "1", 5000), ("b", "2", 5001)], "2"),  # the caller with the most bytes loses its oldest
        ([("a", "1", 4100), ("b", "2", 4200), ("a", "3", 4100)], "13"),
        ([("a", "1", 5000), ("b", "2", 10_001)], "1"),  # larger than all of the room
    ],
)
async def test_the_caller_with_the_most_bytes_makes_room(database: Database, puts: Sequence[Put], left: str) -> None:
    store = DocumentStore(database, 10_000, 60)
    names = {}
    for owner, name, size in puts:
        try:
            names[name] = await store.put(name, b"x" * (size - FILE_BYTES), owner)
        except StorageFull:
            assert size > 10_000
    kept = [name for name, stored in names.items() if await is_stored(store, stored)]
    assert "".join(kept) == left


async def is_stored(store: DocumentStore, name: str) -> bool:
    try:
        await store.find(name, "me")
    except NotFound:
        return False
    return True


async def test_a_content_is_read_in_parts(database: Database) -> None:
    data, store = bytes(range(256)) * 1200, DocumentStore(database, 10**6, 60)
    name = await store.put("../a b?.txt", data, "me")
    assert name.endswith(".a b_.txt") and (await store.find(name, "me")).name == "a b_.txt"
    assert await content(store, name) == data
    empty = await store.put("e.txt", b"", "me")
    assert await content(store, empty) == b""


async def test_a_deleted_file_ends_its_download(database: Database) -> None:
    """A later document may get the row number of a deleted one."""
    size = 2 * PART_BYTES
    store = DocumentStore(database, FILE_BYTES + size, 60)
    parts = store.parts(await store.find(await store.put("a.txt", b"a" * size, "me"), "me"))
    assert [await anext(parts), await anext(parts)] == [b"a" * PART_BYTES, b""]  # see `parts`
    await store.put("b.txt", b"b" * size, "me")
    with pytest.raises(NotFound):
        await anext(parts)


@pytest.mark.parametrize("kind", ["find", "parts", "used"])
async def test_callers_take_turns_to_read_files_and_quotas(database: Database, kind: str) -> None:
    """60 downloads of one address made another's small file take 40 times as long."""
    store, ledger, opened = DocumentStore(database, 10**6, 60), UsageLedger(database), Event()
    names = {owner: await store.put("a.txt", b"a", owner) for owner in ("a", "b")}
    files = {owner: await store.find(name, owner) for owner, name in names.items()}
    finished: list[str] = []

    async def read(caller: str) -> None:
        if kind == "find":
            await store.find(names[caller], caller)
        elif kind == "parts":
            await anext(store.parts(files[caller]))
        else:
            await ledger.used(caller, "2026-11")
        finished.append(caller)

    others = asyncio.create_task(database.read(lambda _: opened.wait(), "c"))
    reading = [asyncio.create_task(read(caller)) for caller in ("a", "a", "a", "b")]
    await asyncio.sleep(0.01)
    opened.set()
    await asyncio.gather(others, *reading)
    assert finished == ["a", "b", "a", "a"]


async def test_files_expire(database: Database) -> None:
    store = DocumentStore(database, 10**6, 0.05)
    name = await store.put("a.txt", b"a", "me")
    await asyncio.sleep(0.1)
    assert not await is_stored(store, name)


def test_a_database_of_an_earlier_release_keeps_its_keys(tmp_path: Path) -> None:
    path = tmp_path / "service.db"
    Database.open(path).close()
    old = sqlite3.connect(path)
    old.execute("INSERT INTO keys VALUES ('a', x'00', 'wiki', NULL, NULL, 1, NULL, 0)")
    old.execute("DROP TABLE documents")
    old.execute("CREATE TABLE documents (id TEXT PRIMARY KEY, content BLOB NOT NULL)")
    old.execute("CREATE TABLE editable_documents (number INTEGER PRIMARY KEY)")
    old.execute("ALTER TABLE memories DROP COLUMN ready")
    old.execute("PRAGMA user_version = 6")
    old.commit()
    old.close()
    with Database.open(path) as database:
        query = "SELECT name FROM sqlite_master WHERE type = 'table' UNION ALL SELECT name FROM keys"
        names = database.run_sync(lambda connection: connection.execute(query).fetchall())
        assert ("editable_documents",) not in names and ("wiki",) in names
        asyncio.run(DocumentStore(database, 10**6, 60).put("a.txt", b"a", "me"))


PARTS = 20


async def test_other_requests_run_between_parts_that_are_translated_without_waiting() -> None:
    """Every translation comes from the cache. Another task counts the parts that each of its turns finds done."""
    lines = [f"line {number}" for number in range(PARTS * PART_TEXTS)]
    translated = 0
    seen: list[int] = []

    async def translate(texts: Sequence[SourceText]) -> list[Answer]:
        nonlocal translated
        translated += 1
        return [Answer(text.text.upper(), "en") for text in texts]

    async def other() -> None:
        while translated < PARTS:
            seen.append(translated)
            await asyncio.sleep(0)

    documents = DocumentTranslator(DocumentOptions(), DirectParsers(), WorkThreads())
    opened = await documents.open(Job((), "en", "de", caller="caller"), "a.txt", "\n".join(lines).encode())
    task = asyncio.create_task(other())
    document = await documents.translated("caller", opened, "en", translate)
    await task
    assert document.content.decode() == "\n".join(lines).upper()
    assert max(after - before for before, after in itertools.pairwise(seen)) <= MAX_PARTS
    assert seen[-1] >= PARTS - MAX_PARTS


@pytest.mark.parametrize("line", ["A dog.\n", "A dog. ", "A。", "A"])
async def test_a_long_segment_is_translated_in_pieces(line: str) -> None:
    text, sizes = line * (2 * PART_CHARACTERS // len(line) + 1), list[int]()

    async def translate(texts: Sequence[SourceText]) -> list[Answer]:
        sizes.extend(len(one.text) for one in texts)
        return [untranslated_answer(one.text, "en") for one in texts]

    documents = DocumentTranslator(DocumentOptions(), DirectParsers(), WorkThreads())
    opened = await documents.open(Job((), "en", "de", caller="a"), "a.json", json.dumps({"a": text}).encode())
    document = await documents.translated("a", opened, "en", translate)
    assert json.loads(document.content) == {"a": text}
    assert sum(sizes) == len(text.strip()) and max(sizes) <= PART_CHARACTERS and len(sizes) == 3
    assert [source for source, _ in document.sentences] == [target for _, target in document.sentences]
    assert "".join("".join(source.split()) for source, _ in document.sentences) == "".join(text.split())


@pytest.mark.parametrize(
    ("confidences", "count"),
    [
        ([0.9, 0.549, 0.5496, 0.55, None, 0.1], 2),  # 54.9, and 55.0 twice, as /translate answers
        ([0.9, "untranslated"], 1),
        ([None, "untranslated"], 1),
        ([None, None], None),  # the model estimates nothing
        ([], 0),
    ],
)
def test_doubtful_sentences_are_counted(confidences: list[float | str | None], count: int | None) -> None:
    sentences = []
    for each in confidences:
        confidence = None if isinstance(each, str) else each
        sentences.append(SentenceTranslation("a", (), (0, 1), (0, 1), confidence, untranslated=isinstance(each, str)))
    assert count_doubtful(verdicts_of(sentences)) == count


def test_the_page_marks_what_the_service_counts() -> None:
    assert f"const DOUBTFUL = {DOUBTFUL};" in (WEB / "modules" / "confidence.js").read_text()


async def test_few_threads_work_and_one_caller_leaves_room_for_others() -> None:
    threads, go, begun = WorkThreads(), Event(), list[str]()

    def work(caller: str) -> None:
        begun.append(caller)
        go.wait(60)

    tasks = [asyncio.create_task(threads.run(caller, THREAD_CHARACTERS, partial(work, caller))) for caller in "aaaab"]
    while len(begun) < THREADS:
        await asyncio.sleep(0.01)
    tasks[0].cancel()  # its thread goes on, and keeps its place
    await asyncio.sleep(0.05)
    assert sorted(begun) == ["a", "b"] and len(begun) == THREADS
    go.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert len(begun) == 5


def test_short_work_needs_no_thread() -> None:
    with pytest.raises(StopIteration) as ended:  # without a wait
        WorkThreads().run("a", THREAD_CHARACTERS - 1, lambda: 3).send(None)
    assert ended.value.value == 3
