"""Limit of torch to one thread."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch

_lock = Lock()
_users: list[int] = []  # torch's number of threads before each `one_torch_thread` that is active


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Limit torch to one thread in this thread.

    An operation on a small tensor is too short to be split among threads: additional threads would compete with the
    engine's threads for cores. Several threads may use the limit at a time; the last one restores the former number for
    the process.
    """
    with _lock:
        threads = torch.get_num_threads()  # makes torch set the number in a new thread now, not later
        _users.append(_users[0] if _users else threads)
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _lock:
            torch.set_num_threads(_users.pop())
