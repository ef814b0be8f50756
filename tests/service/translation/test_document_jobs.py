"""Documents between upload and download, over a store and a translation that tests control."""

import asyncio
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from mt.text.documents import DocumentOptions
from mt.text.terms import Terms
from service import errors
from service.access.database import Database
from service.parsers.pool import SMALL_FILE
from service.translation import document_jobs as module
from service.translation.coroutines import WorkThreads
from service.translation.document_store import DOCUMENT_BYTES, DocumentStore, StoredDocument
from service.translation.documents import (
    MAX_LARGE,
    MAX_PER_CALLER,
    DocumentTranslator,
    DocumentTurns,
    OpenedDocument,
)
from service.translation.jobs import Job
from tests.service.conftest import PassTime
from tests.service.doubles import DirectParsers, UnreliableDatabase

JOB = Job(texts=(), source=None, target="de", terms=Terms((("dog", "Hund"),), ("cat",)), caller="key:a")
TEXT = "A dog."
JOB_BYTES = len(module.job_to_json(JOB))


@dataclass
class Translator:
    """Writes capitals, once `go` is set."""

    go: asyncio.Event = field(default_factory=asyncio.Event)
    jobs: list[Job] = field(default_factory=list)
    failing: list[Exception] = field(default_factory=list)
    given_back: list[tuple[str, int]] = field(default_factory=list)
    charged: list[float] = field(default_factory=list)  # when what is given back was charged

    async def refund(self, caller: str, when: float, characters: int) -> None:
        self.given_back.append((caller, characters))
        self.charged.append(when)

    async def translate(self, name: str, content: bytes, job: Job) -> bytes:
        self.jobs.append(job)
        if self.failing:
            raise self.failing.pop()
        await self.go.wait()
        return content.upper()


async def opened(text: str = TEXT) -> OpenedDocument:
    documents = DocumentTranslator(DocumentOptions(), DirectParsers(), WorkThreads())
    return await documents.open(Job((), "en", "de", caller="key:a"), "a.txt", text.encode())


async def content(path: Path, document: StoredDocument) -> bytes:
    with Database.open(path) as database:
        return b"".join([part async for part in DocumentStore(database, 10**9, 60).parts(document)])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The database of a service."""
    return tmp_path / "service.db"


@asynccontextmanager
async def lived(
    path: Path, translator: Translator, limits: module.DocumentJobLimits | None = None, killed: bool = False
) -> AsyncIterator[module.DocumentJobs]:
    """A service that begins and ends; if it is killed, its end changes nothing in the database."""
    left, limits = path.with_name("left.db"), limits or module.DocumentJobLimits()
    with Database.open(path) as store:
        document_jobs = module.DocumentJobs(store, limits, translator.translate, translator.refund, DocumentTurns())
        async with document_jobs.open():
            yield document_jobs
            if killed:
                with closing(sqlite3.connect(path)) as live, closing(sqlite3.connect(left)) as copy:
                    live.backup(copy)
    if killed:
        for file in path.parent.glob(f"{path.name}*"):
            file.unlink()
        left.rename(path)


async def has(translator: Translator, jobs: int) -> None:
    """Wait until so many translations have begun."""
    while len(translator.jobs) < jobs:
        await asyncio.sleep(0)


async def test_what_was_not_done_is_begun_anew_and_the_rest_is_there(path: Path, pass_time: PassTime) -> None:
    stuck, free, unused = Translator(), Translator(), Translator()
    free.go.set()
    async with lived(path, stuck) as document_jobs:
        handles = [await document_jobs.put(await opened(text), JOB) for text in (TEXT, "Two.")]
        await has(stuck, 2)
        assert not (await document_jobs.find("key:a", *handles[0], wait_seconds=0.01)).settled
    async with lived(path, free) as document_jobs:
        for handle, translation in zip(handles, (b"A DOG.", b"TWO."), strict=True):
            found = await document_jobs.find("key:a", *handle, wait_seconds=60.0)
            assert (found.done, found.error, found.name, found.characters) == (True, "", "a.txt", len(translation))
            assert await content(path, found) == translation
        assert [job == JOB for job in free.jobs] == [True, True]
    async with lived(path, unused) as document_jobs:
        await document_jobs.remove(handles[1][0])
        found = await document_jobs.find("key:a", *handles[1])  # the client may not have received it
        assert found.done and await content(path, found) == b"TWO."
        pass_time(module.FETCHED_SECONDS)
        with pytest.raises(errors.NotFound):
            await document_jobs.find("key:a", *handles[1])
        assert (await document_jobs.find("key:a", *handles[0])).done
    assert not unused.jobs and not stuck.given_back and not free.given_back


@pytest.mark.parametrize("killed", [True, False])
async def test_one_that_kills_the_service_does_so_only_so_often(path: Path, killed: bool) -> None:
    """A service that ends as it should has not died of what it was translating."""
    translator = Translator()
    async with lived(path, translator, killed=killed) as document_jobs:
        handle = await document_jobs.put(await opened(), JOB)
        await has(translator, 1)
    for times in range(2, module.MAX_ATTEMPTS + 1):
        async with lived(path, translator, killed=killed):
            await has(translator, times)
    translator.go.set()
    async with lived(path, translator) as document_jobs:
        found = await document_jobs.find("key:a", *handle, wait_seconds=60.0)
        assert found.done is not killed and (f"ended {module.MAX_ATTEMPTS} times" in found.error) is killed
    assert translator.given_back == ([("key:a", len(TEXT))] if killed else [])


async def test_a_document_is_not_lost_while_the_service_ends(path: Path) -> None:
    ending, next_one = Translator(failing=[errors.Unavailable() for _ in range(10**4)]), Translator()
    next_one.go.set()
    async with lived(path, ending) as document_jobs:
        handle = await document_jobs.put(await opened(), JOB)
        await has(ending, 2)
    async with lived(path, next_one) as document_jobs:
        assert (await document_jobs.find("key:a", *handle, wait_seconds=60.0)).done


async def test_two_processes_with_one_store_settle_a_document_once(path: Path) -> None:
    """The later answer changes nothing, and what failed is given back once."""
    first, second = (Translator(failing=[errors.CannotTranslate(words)]) for words in ("never", "nor here"))
    with Database.open(path) as one, Database.open(path) as two:
        begun, held = asyncio.Event(), asyncio.Event()

        async def later(name: str, content: bytes, job: Job) -> bytes:
            begun.set()
            await held.wait()
            return await first.translate(name, content, job)

        slow = module.DocumentJobs(one, module.DocumentJobLimits(), later, first.refund, DocumentTurns())
        async with slow.open():
            handle = await slow.put(await opened(), JOB)
            await begun.wait()
            quick = module.DocumentJobs(
                two, module.DocumentJobLimits(), second.translate, second.refund, DocumentTurns()
            )
            async with quick.open():
                assert (await quick.find("key:a", *handle, wait_seconds=60.0)).error == "nor here"
                held.set()
                while not first.jobs:
                    await asyncio.sleep(0)
                await asyncio.sleep(0.1)  # the late answer is written
                assert (await quick.find("key:a", *handle)).error == "nor here"
    assert second.given_back == [("key:a", len(TEXT))] and not first.given_back and first.jobs


async def test_not_all_of_them_are_in_work_at_once_and_nobody_has_all_turns(path: Path) -> None:
    translator = Translator()
    callers = ["key:a"] * (MAX_LARGE + 3) + ["key:b"] * (MAX_LARGE + 3)
    async with lived(path, translator) as document_jobs:
        large = await opened("A dog. " * (SMALL_FILE // 7 + 1))
        for caller in callers:
            await document_jobs.put(large, replace(JOB, caller=caller))
        await has(translator, MAX_LARGE)
        await asyncio.sleep(0.05)
        one, both = MAX_PER_CALLER, MAX_LARGE
        assert Counter(job.caller for job in translator.jobs) == {"key:a": one, "key:b": both - one}
        await document_jobs.put(await opened(), replace(JOB, caller="key:c"))  # a small one does not wait
        await has(translator, MAX_LARGE + 1)
        translator.go.set()
        await has(translator, len(callers) + 1)


async def test_a_store_that_cannot_be_written_to_for_a_while(path: Path) -> None:
    translator = Translator()
    async with lived(path, translator) as document_jobs:
        handle = await document_jobs.put(await opened(), JOB)
        await has(translator, 1)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        translator.go.set()
        await asyncio.sleep(0.4)  # a write fails
        other.execute("ROLLBACK")
        assert (await document_jobs.find("key:a", *handle, wait_seconds=60.0)).done


async def test_the_service_ends_though_its_store_is_locked(path: Path) -> None:
    translator = Translator()
    with Database.open(path):
        other = sqlite3.connect(path, isolation_level=None)
    async with asyncio.timeout(30), lived(path, translator) as document_jobs:
        await document_jobs.put(await opened(), JOB)
        await has(translator, 1)
        other.execute("BEGIN IMMEDIATE")
    other.execute("ROLLBACK")
    assert other.execute("SELECT attempts, done, error FROM documents").fetchall() == [(1, 0, "")]


@pytest.mark.parametrize(
    ("error", "said", "reported"), [(errors.CannotTranslate("no"), "no", 0), (ValueError("ours"), "Internal error", 1)]
)
async def test_one_that_fails_says_why_and_costs_nothing(
    path: Path, error: Exception, said: str, reported: int
) -> None:
    translator, begun = Translator(failing=[error]), time.time()
    with capture_logs() as logs:
        async with lived(path, translator) as document_jobs:
            found = await document_jobs.find(
                "key:a", *(await document_jobs.put(await opened(), JOB)), wait_seconds=60.0
            )
            assert (found.done, found.error) == (False, said)
    assert translator.given_back == [("key:a", len(TEXT))]
    assert [line["event"] for line in logs].count("failed") == reported
    assert begun <= translator.charged[0] <= time.time()


async def test_a_refused_upload_that_is_stored_too_late_is_refunded_once() -> None:
    """By the caller of `put`: neither by its translation nor when it expires."""
    translator = Translator()
    with UnreliableDatabase.open(None) as store:
        limits = module.DocumentJobLimits(seconds=0.0)
        document_jobs = module.DocumentJobs(store, limits, translator.translate, translator.refund, DocumentTurns())

        async def is_stored(condition: str = "1") -> bool:
            query = f"SELECT 1 FROM documents WHERE {condition}"
            return bool(await store.read(lambda connection: connection.execute(query).fetchall()))

        async with asyncio.timeout(60), document_jobs.open():
            for outcome in ("late", "refused"):  # the second upload deletes what has expired
                store.outcomes = "done", outcome
                with pytest.raises(errors.StorageUnavailable):
                    await document_jobs.put(await opened(), JOB)
                while await is_stored("error = ''"):
                    await asyncio.sleep(0.01)
            assert not await is_stored()
    assert (translator.given_back, translator.jobs) == ([], [])


async def test_nobody_else_finds_it_and_the_store_cannot_tell_its_key(path: Path) -> None:
    translator = Translator()
    async with lived(path, translator) as document_jobs:
        handle = await document_jobs.put(await opened(), JOB)
        wrong_ones = ((handle[0], "0" * 64), ("x", "y"))
        for owner, wrong in (("key:b", handle), *(("key:a", wrong) for wrong in wrong_ones)):
            with pytest.raises(errors.NotFound, match="There is no document"):
                await document_jobs.find(owner, *wrong)
        kept = list(sqlite3.connect(path).execute("SELECT * FROM documents"))
        assert len(kept) == 1 and handle[0] in kept[0] and handle[1] not in str(kept)


async def test_what_is_too_old_goes_though_nobody_asks(pass_time: PassTime) -> None:
    translator, limits = Translator(), module.DocumentJobLimits(cleanup_seconds=0.01)
    with Database.open(None) as store:
        document_jobs = module.DocumentJobs(store, limits, translator.translate, translator.refund, DocumentTurns())
        async with document_jobs.open():
            handle = await document_jobs.put(await opened(), JOB)
            await has(translator, 1)
            pass_time(limits.seconds)
            while await store.write(lambda connection: connection.execute("SELECT * FROM documents").fetchall()):
                await asyncio.sleep(0.01)
            with pytest.raises(errors.NotFound, match="fetched or expired"):
                await document_jobs.find("key:a", *handle)
    assert translator.given_back == [("key:a", len(TEXT))]


async def test_failed_documents_take_no_room_and_few_of_each_caller_stay(path: Path) -> None:
    limits = module.DocumentJobLimits(documents_per_caller=2)
    translator = Translator(failing=[errors.CannotTranslate("never") for _ in range(5)])
    async with lived(path, translator, limits) as document_jobs:
        failed = []
        for _ in range(5):
            failed.append(await document_jobs.put(await opened(), JOB))
            assert (await document_jobs.find("key:a", *failed[-1], wait_seconds=60.0)).error == "never"
        for _ in range(2):
            await document_jobs.put(await opened(), JOB)
        for handle in failed[:-2]:
            with pytest.raises(errors.NotFound):
                await document_jobs.find("key:a", *handle)
        for handle in failed[-2:]:
            assert (await document_jobs.find("key:a", *handle)).error == "never"


async def test_only_a_document_that_was_alone_is_blamed_for_the_end_of_a_process(path: Path) -> None:
    """Three documents are in progress in each process that is killed; then they are tried one at a time."""
    translators = [Translator() for _ in range(module.MAX_ATTEMPTS + 2)]
    async with lived(path, translators[0], killed=True) as document_jobs:
        handles = [await document_jobs.put(await opened(), JOB) for _ in range(3)]
        await has(translators[0], 3)
    for translator in translators[1:-1]:
        async with lived(path, translator, killed=True) as document_jobs:
            late = await document_jobs.put(await opened(), JOB)
            await has(translator, 1)
            await asyncio.sleep(0.02)
            assert len(translator.jobs) == 1  # the new document waits, too
            assert not (await document_jobs.find("key:a", *late)).settled
    translators[-1].go.set()
    async with lived(path, translators[-1]) as document_jobs:
        states = [await document_jobs.find("key:a", *handle, wait_seconds=60.0) for handle in handles]
        assert [state.done for state in states] == [False, True, True]
        assert f"ended {module.MAX_ATTEMPTS} times" in states[0].error


SIZE, TWO_JOBS = DOCUMENT_BYTES + len(TEXT) + JOB_BYTES, 2 * (len(TEXT) + JOB_BYTES)


@pytest.mark.parametrize(
    ("limits", "callers", "finished", "left", "refusal"),
    [
        # the oldest document of the caller with the most goes
        (module.DocumentJobLimits(bytes=4 * SIZE), "aaabcd", True, "abcd", None),
        # of room for 4 unfinished documents, one caller may take 2, the next 1
        (module.DocumentJobLimits(bytes=4 * SIZE), "aaabb", False, "aab", errors.Overloaded),
        (module.DocumentJobLimits(bytes=3 * SIZE - 1), "aa", False, "a", errors.Overloaded),
        (module.DocumentJobLimits(documents_per_caller=1), "aa", False, "a", errors.TooManyRequests),
        (module.DocumentJobLimits(bytes_per_caller=TWO_JOBS - 1), "aa", False, "a", errors.TooManyRequests),
    ],
)
async def test_which_documents_are_stored(
    path: Path,
    limits: module.DocumentJobLimits,
    callers: str,
    finished: bool,
    left: str,
    refusal: type[errors.ServiceError] | None,
) -> None:
    """Callers upload one after the other; each document is finished before the next one, or none is."""
    translator, refused = Translator(), set[type[errors.ServiceError]]()
    stored: list[tuple[str, tuple[str, str]]] = []
    if finished:
        translator.go.set()
    async with lived(path, translator, limits) as document_jobs:
        for caller in callers:
            try:
                stored.append((caller, await document_jobs.put(await opened(), replace(JOB, caller=f"key:{caller}"))))
            except errors.ServiceError as error:
                refused.add(type(error))
            if finished:
                await document_jobs.find(f"key:{caller}", *stored[-1][1], wait_seconds=60.0)
        translator.go.set()
        done = ""
        for caller, handle in stored:
            with suppress(errors.NotFound):
                done += caller * (await document_jobs.find(f"key:{caller}", *handle, wait_seconds=60.0)).done
        assert (done, refused) == (left, {refusal} - {None})
        await document_jobs.remove(stored[-1][1][0])
        await document_jobs.put(await opened(), replace(JOB, caller=f"key:{callers[-1]}"))  # there is room again
