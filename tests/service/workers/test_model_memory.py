"""The budget for loaded models, over models whose loads a test controls."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import pytest

from mt.errors import ModelError
from service.workers import model_memory
from service.workers.model_memory import ModelMemory


@dataclass(eq=False)
class Model:
    """A model that notes its loads in a common list. `busy` models have requests."""

    name: str
    memory: int
    events: list[str]
    loaded: bool = False
    busy: bool = False
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    async def open(self) -> None:
        await self.load()

    async def load(self) -> None:
        self.events.append(f"+{self.name}")
        self.loaded = True

    async def unload(self) -> None:
        self.events.append(f"-{self.name}")
        self.loaded = False


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a model without requests be unloaded at once."""
    monkeypatch.setattr(model_memory, "PAUSE_SECONDS", 0)


@dataclass
class Clock:
    now: float = 1000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Replace the clock, and let the memory check the time at each turn of the event loop."""
    clock = Clock()
    monkeypatch.setattr(model_memory, "CHECK_SECONDS", 0)
    monkeypatch.setattr("service.workers.model_memory.time.monotonic", lambda: clock.now)
    return clock


Test = Callable[[ModelMemory, list[Model], list[str]], Coroutine[Any, Any, None]]


def run(test: Test, budget: int | None, *sizes: int) -> None:
    """Run a test with models a, b, c of these sizes, opened in this order."""

    async def running() -> None:
        tasks: list[asyncio.Task[None]] = []
        memory = ModelMemory(budget, lambda work: tasks.append(asyncio.create_task(work)))
        events: list[str] = []
        models = [Model(name, size, events) for name, size in zip("abc", sizes, strict=False)]
        for model in models:
            await memory.open(model, model.open)
        await test(memory, models, events)
        await asyncio.gather(*tasks)

    asyncio.run(running())


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("budget", "sizes", "events"),
    [
        (None, (5, 5, 5), ["+a", "+b", "+c"]),
        (15, (5, 5, 5), ["+a", "+b", "+c"]),
        (10, (5, 5, 5), ["+a", "+b", "-a", "+c"]),
        (5, (5, 5, 5), ["+a", "-a", "+b", "-b", "+c"]),
        (9, (1, 1, 8), ["+a", "+b", "-a", "+c"]),
        (9, (1, 1, 9), ["+a", "+b", "-a", "-b", "+c"]),
    ],
)
def test_models_are_unloaded_to_make_room(budget: int | None, sizes: tuple[int, ...], events: list[str]) -> None:
    async def test(memory: ModelMemory, models: list[Model], seen: list[str]) -> None:
        assert seen == events

    run(test, budget, *sizes)


def test_the_least_used_model_makes_room() -> None:
    async def test(memory: ModelMemory, models: list[Model], events: list[str]) -> None:
        a, b, c = models
        assert events[-2:] == ["-a", "+c"]
        memory.use(b)
        memory.use(a)
        memory.use(a)  # is already waiting
        await settled()
        assert events[-2:] == ["-c", "+a"]
        memory.use(c)
        await settled()
        assert events[-2:] == ["-b", "+c"]
        assert memory.loads == 2

    run(test, 10, 5, 5, 5)


def test_a_busy_model_stays_for_a_while(clock: Clock) -> None:
    async def test(memory: ModelMemory, models: list[Model], events: list[str]) -> None:
        a, b, c = models
        b.busy = c.busy = True
        memory.use(a)
        await settled()
        assert events[-1] == "+c"
        clock.now += model_memory.BUSY_SECONDS - 1
        await settled()
        assert events[-1] == "+c"
        clock.now += 1
        await settled()
        assert events[-2:] == ["-b", "+a"]

    run(test, 10, 5, 5, 5)


def test_a_model_stays_for_a_while_after_a_request(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_memory, "PAUSE_SECONDS", 1)

    async def test(memory: ModelMemory, models: list[Model], events: list[str]) -> None:
        a, b, c = models
        for model in (b, c, a):
            memory.use(model)
        await settled()
        assert events[-1] == "+c"
        clock.now += 1
        await settled()
        assert events[-2:] == ["-b", "+a"]

    run(test, 10, 5, 5, 5)


def test_models_that_take_turns_do_not_displace_one_that_is_used_all_the_time() -> None:
    async def test(memory: ModelMemory, models: list[Model], events: list[str]) -> None:
        a, b, c = models
        for _ in range(10):
            memory.use(b)
        for _ in range(3):
            c.busy = True  # b has no request at this moment, but many uses
            memory.use(a)
            await settled()
            c.busy = False
            await asyncio.sleep(2 * model_memory.CHECK_SECONDS)
            memory.use(c)
            await asyncio.sleep(2 * model_memory.CHECK_SECONDS)
        assert "-b" not in events
        assert events[-12:] == ["-c", "+a", "-a", "+c"] * 3

    run(test, 10, 5, 5, 5)


def test_old_uses_count_less(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("service.workers.model_memory.time.monotonic", lambda: now)

    async def test(memory: ModelMemory, models: list[Model], events: list[str]) -> None:
        nonlocal now
        a, b, c = models
        for _ in range(10):
            memory.use(b)
        now += 3 * model_memory.USE_SECONDS  # b: 10 / e^3 = 0.5
        memory.use(c)
        memory.use(a)
        await settled()
        assert events[-2:] == ["-b", "+a"]

    run(test, 10, 5, 5, 5)


def test_one_busy_caller_does_not_displace_several(clock: Clock) -> None:
    async def test(memory: ModelMemory, models: list[Model], events: list[str]) -> None:
        a, b, c = models
        for _ in range(30):
            memory.use(b, "busy")
        for caller in ("one", "two"):
            for _ in range(3):
                memory.use(c, caller)
        clock.now += model_memory.BUSY_SECONDS
        memory.use(a)
        await settled()
        assert events[-2:] == ["-b", "+a"]

    run(test, 10, 5, 5, 5)


def test_the_model_of_another_caller_has_an_equal_share_of_the_time(clock: Clock) -> None:
    async def test(memory: ModelMemory, models: list[Model], events: list[str]) -> None:
        a, b = models
        memory.use(b, "one")
        memory.use(a, "busy")
        clock.now += model_memory.BUSY_SECONDS - 1
        await settled()
        assert events[-1] == "+b"
        clock.now += 1
        await settled()
        assert events[-2:] == ["-b", "+a"]

    run(test, 5, 5, 5)


def test_an_idle_model_makes_room_before_a_busy_one() -> None:
    async def test(memory: ModelMemory, models: list[Model], events: list[str]) -> None:
        a, b, c = models
        memory.use(c)
        b.busy = True
        memory.use(a)
        await settled()
        assert events[-2:] == ["-c", "+a"]

    run(test, 10, 5, 5, 5)


def test_a_model_over_the_budget_is_refused() -> None:
    async def test(memory: ModelMemory, models: list[Model], events: list[str]) -> None:
        pytest.fail("it was accepted")

    with pytest.raises(ModelError, match="b needs 3 MB of memory; the setting model_memory_mb is 2"):
        run(test, 2_000_000, 1_000_000, 3_000_000)


def test_a_closed_model_is_not_loaded() -> None:
    async def test(memory: ModelMemory, models: list[Model], events: list[str]) -> None:
        memory.use(models[0])
        memory.forget(models[0])
        await settled()
        assert events == ["+a", "-a", "+b"]

    run(test, 5, 5, 5)
