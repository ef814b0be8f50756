"""Garbage of large requests."""

import asyncio
import gc
import weakref

import pytest

from service import freed_memory
from service.freed_memory import COLLECT_BYTES, RequestGarbage


class Node:
    """An object in a reference cycle."""

    def __init__(self) -> None:
        self.itself = self


async def is_collected(sizes: list[int]) -> bool:
    """Return whether a reference cycle is freed after requests of these sizes."""
    garbage, cycle = RequestGarbage(), weakref.ref(Node())
    for size in sizes:
        garbage.add(size)
    await asyncio.sleep(0.01)
    return cycle() is None


async def test_garbage_of_large_requests_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freed_memory, "COLLECT_SECONDS", 0)
    gc.disable()
    try:
        assert not await is_collected([1, COLLECT_BYTES - 2])
        assert await is_collected([COLLECT_BYTES - 1, 1])
    finally:
        gc.enable()
