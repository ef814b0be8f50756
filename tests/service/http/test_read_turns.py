"""Order in which connections parse what they have received."""

import asyncio
import time
from dataclasses import dataclass, field

from service.http.read_turns import SECONDS, ReadTurns


@dataclass(eq=False)
class Connection:
    """A connection with parts to parse, each of which takes `seconds`."""

    address: str
    parts: int
    seconds: float
    log: list[tuple[int, str]]
    iteration: list[int] = field(default_factory=lambda: [0])

    def parse_some(self) -> bool:
        if not self.parts:
            return False
        end = time.perf_counter() + self.seconds
        while time.perf_counter() < end:
            pass
        self.log.append((self.iteration[0], self.address))
        self.parts -= 1
        return self.parts > 0


def parsed(*connections: tuple[str, int], seconds: float, closed: int | None = None) -> list[tuple[int, str]]:
    """Return iteration and address of each parsed part. All connections (address, parts) receive bytes at once."""

    async def run() -> list[tuple[int, str]]:
        turns, log, iteration = ReadTurns(), list[tuple[int, str]](), [0]
        readers = [Connection(address, parts, seconds, log, iteration) for address, parts in connections]
        for reader in readers:
            turns.add(reader)
            turns.add(reader)  # more bytes do not give it another place
        if closed is not None:
            turns.remove(readers[closed])
        for _ in range(100):
            iteration[0] += 1
            await asyncio.sleep(0)
        return log

    return asyncio.run(run())


def test_long_parts_have_an_iteration_each_and_addresses_take_turns() -> None:
    log = parsed(("a", 3), ("a", 2), ("b", 2), seconds=SECONDS)
    assert "".join(address for _, address in log) == "a" + "ab" * 2 + "aa"
    assert len({iteration for iteration, _ in log}) == len(log)


def test_short_parts_share_an_iteration() -> None:
    log = parsed(*[("a", 1)] * 20, seconds=0)
    assert len(log) == 20
    assert len({iteration for iteration, _ in log}) < 10


def test_a_closed_connection_loses_its_place() -> None:
    assert [address for _, address in parsed(("a", 1), ("b", 1), ("c", 1), seconds=SECONDS, closed=1)] == ["a", "c"]
