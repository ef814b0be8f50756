"""Operations in parser processes: limits, isolation, turns."""

import asyncio
import gc
import os
import pickle
import pickletools
import subprocess
import threading
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from mt.text.documents import DocumentOptions
from mt.text.markup import MarkupOptions
from service.errors import InvalidDocument, ParsingLimitExceeded, Unavailable
from service.parsers.frames import PART, Outcome, ParserLimits, Status, dump, dump_outcome, load, load_outcome
from service.parsers.operations import pack, read_document, read_markup, write_document, write_markup
from service.parsers.pool import SMALL_FILE, ParserPool
from service.processes import SERVICE_SIGNALS
from service.workers.messages import SourceText
from tests.service.parsers import hostile_process as hostile

HOSTILE = "tests.service.parsers.hostile_process"
LIMITS = ParserLimits(processes=1, wall_seconds=600, cpu_seconds=1, memory_bytes=200 << 20, result_bytes=1 << 20)


def pool(limits: ParserLimits = LIMITS, module: str = HOSTILE) -> closing[ParserPool]:
    return closing(ParserPool(limits, module))


def children() -> set[str]:
    return set(Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split())


async def ends(processes: set[str]) -> None:
    async with asyncio.timeout(60):
        while processes & children():
            await asyncio.sleep(0.01)


EXCEEDED: dict[str, tuple[Callable[[Any], Any], Any, str]] = {
    "processor time": (hostile.spin, 60, "more than 1 s of processor time"),
    "memory": (hostile.allocate, 1 << 30, "more than 200 MiB"),
    "memory of a library": (hostile.abort, None, "more than 200 MiB"),
    "killed each time": (hostile.be_killed, None, "the system killed two processes that parsed it"),
    "nesting": (hostile.nest, 100_000, "nested too deeply"),
    "result": (hostile.identity, b"a" * (2 << 20), "more than 1,048,576 bytes"),
}


@pytest.mark.parametrize(("operation", "argument", "message"), EXCEEDED.values(), ids=EXCEEDED.keys())
async def test_exceeded_limits_are_named(
    operation: Callable[[Any], Any], argument: Any, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event loop does not wait for the end of the process, whose memory the system frees meanwhile."""
    wait = subprocess.Popen.wait

    def wait_in_thread(process: "subprocess.Popen[bytes]", timeout: float | None = None) -> int:
        assert threading.current_thread() is not threading.main_thread()
        return wait(process, timeout)

    monkeypatch.setattr(subprocess.Popen, "wait", wait_in_thread)
    with pool() as opened:
        with pytest.raises(ParsingLimitExceeded, match=message):
            await opened.run("a", operation, argument)
        assert await opened.run("a", hostile.identity, 7) == 7
        assert (opened.counts.operations, opened.counts.exceeded, opened.counts.failed) == (2, 1, 0)


async def test_wall_time_is_limited() -> None:
    limits = ParserLimits(wall_seconds=0.5)
    with pool(limits) as opened, pytest.raises(ParsingLimitExceeded, match=r"longer than 0\.5 s"):
        await opened.run("a", hostile.sleep, 60)


async def test_an_operation_whose_process_is_killed_is_run_once_more(tmp_path: Path) -> None:
    with pool() as opened:
        assert await opened.run("a", hostile.kill, str(tmp_path / "notes")) == 2
        assert (opened.counts.operations, opened.counts.exceeded, opened.counts.started) == (1, 0, 2)


@pytest.mark.parametrize(
    ("operation", "argument"), [(hostile.die, 3), (hostile.fail, "a secret")], ids=["exit", "exception"]
)
async def test_failures_do_not_reveal_the_input(operation: Callable[[Any], Any], argument: Any) -> None:
    with pool() as opened:
        with capture_logs() as events, pytest.raises(InvalidDocument, match=r"^the parser failed on this input$"):
            await opened.run("a", operation, argument)
        assert [event["event"] for event in events] == ["parser failed"] and "secret" not in str(events)
        assert await opened.run("a", hostile.identity, 7) == 7
        assert (opened.counts.operations, opened.counts.exceeded, opened.counts.failed) == (2, 0, 1)


class Canary:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


async def test_nothing_that_a_process_sends_is_believed(tmp_path: Path) -> None:
    answers = (
        pickle.dumps(Canary(tmp_path / "canary")),
        b"",
        b'["no status",false,"value",1]\n',
        b'["done",false,"list",null]\n[[1]]\n',
        b'["done",false,"list",null]\n["a"',
        b'["done",false,"list",null]\n' + b"[" * 100_000 + b"\n",
    )
    with pool() as opened:
        for answer in answers:
            with pytest.raises(InvalidDocument, match=r"^the parser failed on this input$"):
                await opened.run("a", hostile.lie, answer)
        for items in (["a", "\ud800"], [], [*map(str, range(3 * PART + 1))]):  # long lists are sent in parts
            assert await opened.run("a", hostile.identity, items) == items
    assert not (tmp_path / "canary").exists()


async def test_an_answer_takes_no_memory_before_it_arrives() -> None:
    size = 90_000_000
    with pool(replace(LIMITS, result_bytes=size + 1000)) as opened:
        await opened.run("a", hostile.identity, 1)
        tracemalloc.start()
        try:
            with pytest.raises(InvalidDocument, match="failed on this input"):
                await opened.run("a", hostile.announce, size)
            assert tracemalloc.get_traced_memory()[1] < size / 10
        finally:
            tracemalloc.stop()


async def test_callers_take_turns() -> None:
    order: list[str] = []

    async def call(caller: str, number: int) -> None:
        await opened.run(caller, hostile.sleep, 0.05)
        order.append(f"{caller}{number}")

    with pool() as opened:
        await asyncio.gather(*(call("a", number) for number in range(4)), *(call("b", number) for number in range(2)))
    assert order == ["a0", "a1", "b0", "a2", "b1", "a3"]


async def test_a_long_operation_that_is_cancelled_is_killed_and_frees_its_place() -> None:
    with pool() as opened:
        others = children()
        await opened.run("a", hostile.identity, 7)
        parsers = children() - others
        running, waiting = (asyncio.create_task(opened.run("a", hostile.sleep, 60)) for _ in range(2))
        await asyncio.sleep(0.1)
        waiting.cancel()
        running.cancel()
        await asyncio.gather(running, waiting, return_exceptions=True)
        assert await opened.run("a", hostile.identity, 7) == 7
        assert parsers
        await ends(parsers)
        assert opened.counts.started == 2


async def test_the_error_of_a_cancelled_operation_is_no_error_of_the_event_loop() -> None:
    unhandled: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    with pool() as opened:
        task = asyncio.create_task(opened.run("a", hostile.sleep, 60))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    with pytest.raises(Unavailable):  # the operation has failed, too: its pool is closed
        await opened.run("a", hostile.identity, 7)
    del task
    gc.collect()
    assert not unhandled


async def test_cancelled_operations_end_no_process_that_starts(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    with pool(replace(LIMITS, grace_seconds=60)) as opened:
        for last in (False, False, True):  # the first ones before the process is ready
            task = asyncio.create_task(opened.run("a", hostile.wait, str(begun)))
            await asyncio.sleep(0.01)
            while last and not begun.exists():
                await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        begun.unlink()
        assert await opened.run("b", hostile.identity, 7) == 7
        assert (opened.counts.started, opened.counts.operations) == (1, 1)


async def test_a_caller_that_cancels_long_operations_waits_for_the_processes_that_replace_theirs() -> None:
    """Other callers never wait for a process to start."""
    with pool(ParserLimits(processes=2)) as opened:
        kept = asyncio.create_task(opened.run("b", hostile.sleep, 0.1))
        await asyncio.gather(opened.run("a", hostile.sleep, 0.1), kept)
        task = asyncio.create_task(opened.run("a", hostile.sleep, 60))
        await asyncio.sleep(0.1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert await opened.run("b", hostile.identity, 7) == 7
        await opened.run("a", hostile.identity, 7)
        assert opened.counts.started == 3
        assert await opened.run("b", hostile.identity, 7) == 7
        assert opened.counts.started == 3


async def test_processes_inherit_no_settings_and_write_no_core_dumps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MT_ADMIN_KEY", "secret-secret-secret")
    with pool() as opened:
        assert await opened.run("a", hostile.environment, "MT_ADMIN_KEY") is None
        for number in SERVICE_SIGNALS:
            assert await opened.run("a", hostile.blocks, int(number))
        assert await opened.run("a", hostile.dumpable, 3) == 0


async def test_documents_and_markup_round_trip() -> None:
    with pool(ParserLimits(), "service.parsers.process") as opened:
        name, content, options = "a.txt", b"One house.\n\nTwo dogs.\n", DocumentOptions()
        segments = await opened.run("a", read_document, name, content, options)
        assert [segment.text for segment in segments] == ["One house.", "Two dogs."]
        translations = [pack(segment.text.upper()) for segment in segments]
        written = await opened.run("a", write_document, name, content, options, translations)
        assert written == b"ONE HOUSE.\n\nTWO DOGS.\n"
        html = "<p>One <b>house</b>.</p>"
        [(number, segment)] = await opened.run("a", read_markup, [html], False, MarkupOptions())
        same = [pack(segment.text, [((4, 9), (4, 9))])] * 2
        assert (number, segment) == (0, SourceText("One house.", aligned=True, marked=((4, 9),)))
        assert await opened.run("a", write_markup, [(html, 2)], False, MarkupOptions(), same) == [html, html]


def test_a_request_is_sent_without_a_copy_of_its_file() -> None:
    content, items = b"a" * 10_000_000, [pack("ä\ud83d", [((0, 1), (0, 2))])] * (PART + 1)
    for arguments in (("read", "a.txt", content, None), ("write", content, items), ("write", b"", [])):
        parts = list(dump(arguments))
        assert any(part is argument for part in parts for argument in arguments)
        assert load(b"".join(parts)) == list(arguments)


def test_an_alignment_is_pickled_as_bytes() -> None:
    """The event loop pickles: each number of an alignment as an object of its own took it 70 ms for 100,000 words."""
    links = [((number, number + 1), (number + 1, number + 2)) for number in range(100_000)]
    for part in dump(("write", [pack("dog " * 100_000, links)])):
        assert sum(1 for _ in pickletools.genops(part)) < 50


async def test_an_answer_with_a_long_text_is_read_in_a_thread() -> None:
    """Not as escapes, which would take four times as long."""
    texts, threads = ["собака " * 100_000, "\ud83d", "a"], list[bool]()
    messages = list(dump_outcome(Outcome(Status.DONE, texts)))
    assert max(map(len, messages)) < 2 * len(texts[0])

    async def read() -> bytearray:
        return bytearray(messages.pop(0))

    def decode(item: str) -> str:
        threads.append(threading.current_thread() is threading.main_thread())
        return item

    assert (await load_outcome(read, decode)).content == texts
    assert threads == [False, True, True]


@pytest.mark.parametrize(("processes", "documents"), [(2, 3), (1, 1)])
async def test_a_caller_leaves_places_to_others_and_large_files_to_small_ones(processes: int, documents: int) -> None:
    large = bytes(SMALL_FILE + 1)
    with pool(ParserLimits(processes=processes)) as opened:
        stuck = [asyncio.create_task(opened.run("a", hostile.sleep, 60, large)) for _ in range(documents)]
        await asyncio.sleep(0)
        assert processes == 1 or await opened.run("b", hostile.identity, large) == large
        async with asyncio.timeout(30):
            assert await opened.run("b", hostile.identity, large[1:]) == large[1:]
        assert len(await opened.run("b", read_markup, ["<p>a"], False, MarkupOptions())) == 1
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)


async def test_closing_ends_operations_in_progress() -> None:
    with pool() as opened:
        await opened.run("a", hostile.identity, 7)
        stuck = asyncio.create_task(opened.run("a", hostile.sleep, 60))
        await asyncio.sleep(0.1)
        opened.close()
        with pytest.raises(Unavailable):
            await stuck
        with pytest.raises(Unavailable):
            await opened.run("a", hostile.identity, 7)


async def test_a_process_that_took_much_memory_is_replaced() -> None:
    with pool() as opened:
        others = children()
        await opened.run("a", hostile.identity, 7)
        parsers = children() - others
        await opened.run("a", hostile.allocate, 150 << 20)
        assert parsers
        await ends(parsers)
