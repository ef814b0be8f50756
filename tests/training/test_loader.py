import threading
from collections.abc import Iterator

import numpy as np
import pytest
from torch import Tensor

from mt.data.batching import Position, Update, make_batch
from mt.training import loader


@pytest.fixture(autouse=True)
def without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tensor, "pin_memory", Tensor.detach)


def numbered(count: int, fail: bool = False) -> Iterator[Update]:
    for number in range(count):
        yield Update([make_batch([[4, 3]], [[5]], np.array([number]))], Position(0, number + 1))
    if fail:
        raise ValueError("line 7")


def test_an_error_comes_after_the_updates_before_it_in_their_order() -> None:
    updates = loader.prefetch(numbered(30, fail=True))
    assert [next(updates).next_position.update for _ in range(30)] == list(range(1, 31))
    with pytest.raises(ValueError, match="line 7"):
        next(updates)


def test_the_thread_ends_with_who_reads() -> None:
    others = set(threading.enumerate())  # some of them may end
    updates = loader.prefetch(numbered(1000))
    next(updates)
    assert len(set(threading.enumerate()) - others) == 1
    updates.close()  # type: ignore[attr-defined]
    assert not set(threading.enumerate()) - others
