"""Bounds of the queue, and the budget for loaded models, over models whose loads a test controls."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from service.errors import Overloaded
from service.workers.admission import MEMORY_SECONDS, Admission, RequestSize, Throughput
from service.workers.model_memory import USE_SECONDS, MemoryTimes, ModelMemory


@dataclass(eq=False)
class Model:
    """A model that notes its loads in a common list. `busy` models have requests."""

    name: str
    memory: int
    events: list[str]
    loaded: bool = False
    ready: bool = True
    complete: bool = True  # whether its files are there
    busy: bool = False
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def open(self) -> None:
        await self.load()

    async def can_load(self) -> bool:
        return self.complete

    async def load(self) -> None:
        self.events.append(f"+{self.name}")
        self.loaded = True

    async def unload(self) -> None:
        self.events.append(f"-{self.name}")
        self.loaded = False


async def run(budget: int | None, sizes: Sequence[int], steps: str, pause: float) -> list[str]:
    """Open models a, b, c of these sizes in this order, take the steps, and return the loads and unloads.

    Steps: `b` and `b/caller` use a model, `b*3` three times; `+b` and `-b` begin and end a request; `lose` removes
    the files of a, and `forget` closes it; a number lets seconds pass; `?` lets the event loop turn.
    """
    tasks: list[asyncio.Task[None]] = []
    passed = [1000.0]
    times = MemoryTimes(BUSY, pause, check=0, clock=lambda: sum(passed))
    memory = ModelMemory(budget, lambda work: tasks.append(asyncio.create_task(work)), times)
    events: list[str] = []
    models: dict[str, Any] = {name: Model(name, size, events) for name, size in zip("abc", sizes, strict=False)}
    for model in models.values():
        await memory.open(model, model.open)
    for step in steps.split():
        if step[0] in "+-":
            models[step[1]].busy = step[0] == "+"
        elif step[0] in models:
            name, _, caller = step.partition("/")
            for _ in range(int(name[2:] or 1)):
                memory.use(models[name[0]], caller)
        elif step == "forget":
            memory.forget(models["a"])
        elif step == "lose":
            models["a"].complete = False
        else:
            passed.append(0 if step == "?" else float(step))
            for _ in range(20):
                await asyncio.sleep(0)
    for task in tasks:  # some wait for a model that stays
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return events[1:]  # the first is always +a


BUSY, USE = MemoryTimes().busy, USE_SECONDS
THREE, OPENED = (5, 5, 5), "+b -a +c "  # with room for two
ROWS: dict[str, tuple[int | None, Sequence[int], str, str]] = {
    "no budget": (None, THREE, "", "+b +c"),
    "room for all": (15, THREE, "", "+b +c"),
    "room for two": (10, THREE, "", "+b -a +c"),
    "room for one": (5, THREE, "", "-a +b -b +c"),
    "one small model is enough": (9, (1, 1, 8), "", "+b -a +c"),
    "two must go": (9, (1, 1, 9), "", "+b -a -b +c"),
    "the least used makes room": (10, THREE, "b a a ? c ?", OPENED + "-c +a -b +c"),
    "a busy model stays for a while": (10, THREE, f"+b +c a ? {BUSY - 1}", OPENED),
    "and no longer": (10, THREE, f"+b +c a ? {BUSY - 1} 1", OPENED + "-b +a"),
    "an idle model makes room before a busy one": (10, THREE, "c +b 1 a ?", OPENED + "-c +a"),
    "others take turns": (
        10,
        THREE,
        "b*10 " + "+c a ? -c ? c ? " * 3,  # b has no request at this moment, but many uses
        OPENED + "-c +a -a +c " * 3,
    ),
    "old uses count less": (10, THREE, f"b*10 {3 * USE} c a ?", OPENED + "-b +a"),  # b: 10 / e^3 = 0.5
    "one busy caller does not displace several": (10, THREE, f"b*30/busy c*3/one c*3/two {BUSY} a ?", OPENED + "-b +a"),
    "another caller has an equal share of the time": (5, (5, 5), f"b/one a/busy {BUSY - 1}", "-a +b"),
    "but no more": (5, (5, 5), f"b/one a/busy {BUSY - 1} 1", "-a +b -b +a"),
    "a closed model is not loaded": (5, (5, 5), "a forget ?", "-a +b"),
    "nor is a model whose files are gone, and no other makes room for it": (5, (5, 5), "a/one lose a ?", "-a +b"),
    "nor one that is closed while it waits for memory": (5, (5, 5), f"+b b a ? forget ? {BUSY} ?", "-a +b"),
}


@pytest.mark.parametrize(("budget", "sizes", "steps", "events"), ROWS.values(), ids=ROWS)
def test_models_are_unloaded_to_make_room(budget: int | None, sizes: Sequence[int], steps: str, events: str) -> None:
    assert asyncio.run(run(budget, sizes, steps, pause=0)) == events.split()


@pytest.mark.parametrize(("seconds", "events"), [("0.9", OPENED), ("1", OPENED + "-b +a")])
def test_a_model_stays_after_a_request(seconds: str, events: str) -> None:
    assert asyncio.run(run(10, THREE, f"b c a ? {seconds}", MemoryTimes().pause)) == events.split()


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
