"""The limit on torch's threads is restored, whoever leaves first."""

from collections.abc import Iterator
from contextlib import ExitStack
from threading import Barrier, Thread

import pytest
import torch

from mt.engine.backends.one_thread import one_torch_thread


@pytest.fixture
def threads() -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield 3
    torch.set_num_threads(before)


@pytest.mark.parametrize("first_leaves_first", [True, False])
def test_uses_that_overlap(threads: int, first_leaves_first: bool) -> None:
    barrier, seen = Barrier(2, timeout=30), {}

    def use(name: str, leaves_first: bool) -> None:
        with ExitStack() as stack:
            stack.enter_context(one_torch_thread())
            barrier.wait()
            if leaves_first:
                stack.close()
                seen[f"{name} after"] = torch.get_num_threads()
            barrier.wait()
            if not leaves_first:
                seen[f"{name} inside"] = torch.get_num_threads()
        seen[name] = torch.get_num_threads()

    users = [Thread(target=use, args=("a", first_leaves_first)), Thread(target=use, args=("b", not first_leaves_first))]
    for user in users:
        user.start()
    for user in users:
        user.join()
    early, late = ("a", "b") if first_leaves_first else ("b", "a")
    assert seen == {f"{early} after": threads, f"{late} inside": 1, "a": threads, "b": threads}
    with one_torch_thread():
        pass
    assert torch.get_num_threads() == threads
