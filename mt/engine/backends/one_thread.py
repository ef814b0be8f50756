"""A context in which torch computes with one thread."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch

_lock = Lock()
_users: list[int] = []  # torch's number of threads before each `one_torch_thread` that is active


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Make torch compute with one thread in the calling thread.

    An operation on a small tensor is too short to be split among threads: additional threads would compete with the
    engine's threads for cores. Several threads may be in this context at a time. The last one that leaves it restores
    the number of threads for the process.
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
