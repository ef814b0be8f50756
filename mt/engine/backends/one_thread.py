"""A limit on the threads of torch."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import torch

_lock = Lock()
_users: list[int] = []  # the number of threads of torch before each present use


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Limit torch to one thread in this thread.

    An operation of a small tensor is too short to be split among threads, and additional threads would wait, busily,
    for cores that the engine's threads occupy. Several threads may use the limit at a time; the last one restores the
    former number for the process.
    """
    with _lock:
        threads = torch.get_num_threads()  # sets the number in a new thread, which would happen later otherwise
        _users.append(_users[0] if _users else threads)
        torch.set_num_threads(1)
    try:
        yield
    finally:
        with _lock:
            torch.set_num_threads(_users.pop())
