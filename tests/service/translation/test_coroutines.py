"""WorkThreads for long work."""

import asyncio
from functools import partial
from threading import Event

import pytest

from service.translation.coroutines import THREAD_CHARACTERS, THREADS, WorkThreads


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
