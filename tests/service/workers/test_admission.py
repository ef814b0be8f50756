"""Bounds of the queue, and the time after which a refused client should try again."""

import math

import pytest

from service.errors import Overloaded
from service.workers.admission import MEMORY_SECONDS, Admission, RequestSize, Throughput


def test_one_caller_cannot_fill_the_house() -> None:
    admission = Admission(RequestSize(8, 100, 1000))
    with pytest.raises(Overloaded), admission.admitted("one", RequestSize(1, 1, 1001)):
        pytest.fail("too large for the queue")
    held = [admission.admitted("one", RequestSize(1, 1, 10)) for _ in range(8)]
    for each in held:
        each.__enter__()
    with pytest.raises(Overloaded), admission.admitted("one", RequestSize(1, 1, 10)):
        pytest.fail("the queue is full")
    with admission.admitted("another", RequestSize(1, 1, 10)), admission.admitted("a third", RequestSize(1, 1, 10)):
        assert admission.held == RequestSize(10, 10, 100)
        with pytest.raises(Overloaded), admission.admitted("a fourth", RequestSize(1, 1, 10)):
            pytest.fail("the reserve is full")
    for each in held:
        each.__exit__(None, None, None)
    assert admission.held == RequestSize() and admission.refused == 3


def test_when_to_come_again() -> None:
    throughput = Throughput()
    admission = Admission(RequestSize(10, 100, 100_000), throughput=throughput)
    assert admission.retry_after() == 1  # nothing is known
    throughput.note(100.0, 0, busy=True)
    throughput.note(110.0, 1000, busy=True)
    throughput.note(110.0, 0, busy=False)
    throughput.note(200.0, 0, busy=True)  # while there was nothing to do, no time passed
    with admission.admitted("", RequestSize(1, 1, 2000)):
        assert admission.retry_after() == pytest.approx(10, abs=2)
    with admission.admitted("", RequestSize(1, 1, 90_000)):
        assert admission.retry_after() == 60


def test_recent_seconds_count_more() -> None:
    throughput = Throughput()
    throughput.note(0.0, 0, busy=True)
    throughput.note(MEMORY_SECONDS, 1000, busy=True)
    throughput.note(2 * MEMORY_SECONDS, 3000, busy=True)
    speed = (1000 / math.e + 3000) / (MEMORY_SECONDS / math.e + MEMORY_SECONDS)  # plain average: 4000 / 60
    assert throughput.seconds_for(1000) == pytest.approx(1000 / speed)
