"""Order in which requests start."""

import asyncio
import time

import pytest

from service.http.request_turns import RequestTurns


def starts(arrivals: str, left: tuple[int, ...] = ()) -> list[tuple[int, str]]:
    """Return iteration and address of each start, if one request of each letter's address arrives at the same time.

    The requests with the numbers `left` are cancelled before their turn.
    """

    async def run() -> list[tuple[int, str]]:
        turns, started, iteration = RequestTurns(), [], 0

        async def request(address: str) -> None:
            await turns.wait(address)
            started.append((iteration, address))

        requests = [asyncio.create_task(request(address)) for address in arrivals]
        await asyncio.sleep(0)
        for number in left:
            requests[number].cancel()
        while not all(one.done() for one in requests):
            iteration += 1
            await asyncio.sleep(0)
        return started

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("arrivals", "left", "order"),
    [
        ("a", (), "a"),
        ("aaa", (), "aaa"),
        ("aaaab", (), "aaba" + "a"),  # the first starts at once; then the others take turns from a
        ("aaabbc", (), "aabcab"),
        ("aaaab", (1,), "abaa"),  # its turn is lost
        ("aab", (1, 2), "a"),
    ],
)
def test_addresses_take_turns(arrivals: str, left: tuple[int, ...], order: str) -> None:
    assert "".join(address for _, address in starts(arrivals, left)) == order


def test_one_request_starts_in_an_iteration() -> None:
    iterations = [iteration for iteration, _ in starts("a" * 20)]
    assert max(iterations.count(iteration) for iteration in iterations) == 1


def test_a_request_that_arrives_later_does_not_wait() -> None:
    async def run() -> bool:
        turns = RequestTurns()
        await turns.wait("a")
        await asyncio.sleep(0)
        waiting = turns.wait("a")
        with pytest.raises(StopIteration):  # ends without a wait
            waiting.send(None)
        return True

    assert asyncio.run(run())


def test_after_a_large_request_the_next_large_one_rests_while_small_ones_start() -> None:
    async def run() -> tuple[list[str], float]:
        turns, started = RequestTurns(), []
        times: dict[str, float] = {}

        async def request(name: str, large: bool) -> None:
            await turns.wait("a" if large else "b", large)
            started.append(name)
            if large:
                times[name] = time.monotonic()
                while time.monotonic() - times[name] < 0.03:  # work that the event loop must wait for
                    pass

        await asyncio.gather(*(request(name, name in "LM") for name in "LMxyz"))
        return started, times["M"] - times["L"]

    order, seconds = asyncio.run(run())
    assert "".join(order) == "LxyzM"
    assert seconds >= 0.09  # the work, and a rest that is twice as long


def test_a_small_request_does_not_wait_for_the_end_of_a_rest() -> None:
    async def run() -> bool:
        turns = RequestTurns()
        await turns.wait("a", large=True)
        until = time.monotonic() + 0.03
        while time.monotonic() < until:
            pass
        await asyncio.sleep(0)
        large = asyncio.create_task(turns.wait("a", large=True))
        await asyncio.sleep(0)
        await turns.wait("b")
        resting = not large.done()
        await large
        return resting

    assert asyncio.run(run())
