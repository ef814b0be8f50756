"""A fleet whose one worker is all the replicas of somebody else: which may die, leave, or have a later model."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from mt.checkpoint import model_digest
from mt.decoding.options import SearchOptions
from mt.errors import ModelError
from mt.languages import Direction, DirectionSet
from service.errors import CannotTranslate, DeadlineExceeded, InternalError, ReloadRefused
from service.translation.answers import answer_of, reports_of
from service.workers.admission import RequestSize
from service.workers.fleet import Fleet, FleetConfig
from service.workers.messages import (
    LoadFailed,
    Ready,
    SourceText,
    TextDone,
    TextFailed,
    TextProgress,
    Translate,
    TranslateOptions,
    WorkCounts,
)
from service.workers.replicas import ReplicaAnswer, ReplicaDied, ReplicasTransport
from service.workers.worker import WorkerTimeouts
from tests.service.doubles import upper, written

EN_DE = Direction("en", "de")


@dataclass
class Double:
    """Writes capitals, and the version of the model behind them."""

    model: Path
    deaths: int = 0  # of the next ones to be asked
    leaving: int = 0
    refuses: str = ""
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)  # that were asked for
    working: list[str] = field(default_factory=list)  # the versions that are being asked for
    most: Counter[str] = field(default_factory=Counter)  # texts at a time, by version

    async def describe(self, model: Path) -> Ready | LoadFailed:
        if self.deaths:
            self.deaths -= 1
            raise ReplicaDied
        if self.refuses:
            return LoadFailed(self.refuses)
        return Ready(DirectionSet.of([EN_DE]), SearchOptions(), model_digest(model), ("replicas",), 4)

    async def translate(
        self, model: Path, version: str, message: Translate, on_progress: Callable[[TextProgress], None]
    ) -> ReplicaAnswer:
        self.asked.append(message.text.text)
        self.versions.append(version)
        self.working.append(version)
        self.most[version] = max(self.most[version], self.working.count(version))
        try:
            await self.gate.wait()
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.cancelled.append(message.text.text)
            raise
        finally:
            self.working.remove(version)
        if self.deaths:
            self.deaths -= 1
            raise ReplicaDied
        if self.leaving:
            self.leaving -= 1
            return ReplicaAnswer(None, model_digest(model), "leaving", WorkCounts())
        now = model_digest(model)
        if now != version:
            return ReplicaAnswer(None, now, "only", WorkCounts())
        if message.text.text == "poison":
            return ReplicaAnswer(TextFailed(message.id, CannotTranslate.code, "poison"), now, "only", WorkCounts())
        if message.text.text == "bug":
            raise KeyError("a mistake of ours")
        found = written(SourceText(f"{message.text.text} {now}"), TranslateOptions(EN_DE), upper)
        if message.report:
            for report in reports_of(answer_of(found, "en")):
                on_progress(TextProgress(message.id, (report,)))
        return ReplicaAnswer(TextDone(message.id, found), now, "only", WorkCounts(texts=len(self.asked), steps=7))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("1")
    return tmp_path


def run(double: Double, test: Callable[[Fleet], Coroutine[Any, Any, None]]) -> None:
    async def running() -> None:
        limits = RequestSize(1000, 20_000, 1_000_000)
        plan = FleetConfig((double.model,), "cpu", limits, WorkerTimeouts(5, 5), request_seconds=30)
        async with Fleet(plan, lambda model, _: ReplicasTransport(model, double)) as fleet:
            await test(fleet)

    double.gate.set()
    asyncio.run(running())


async def ask(fleet: Fleet, text: str, deadline: float | None = None) -> str:
    (found,) = await fleet.translate([SourceText(text)], TranslateOptions(EN_DE), deadline=deadline)
    return found.text


def test_a_text_whose_replica_dies_or_leaves_goes_to_another(model: Path) -> None:
    double = Double(model, deaths=1)

    async def test(fleet: Fleet) -> None:
        double.deaths, double.leaving = 3, 2
        found = await asyncio.gather(*(ask(fleet, f"dog {number}") for number in range(20)))
        assert found == [f"DOG {number} {model_digest(model).upper()}" for number in range(20)]
        assert len(double.asked) == 25
        stats = await fleet.fresh_stats()
        assert (stats.finished, stats.restarts, stats.work.steps, stats.running) == (20, 0, 7, 0)

    run(double, test)


def test_errors_are_those_of_the_text(model: Path) -> None:
    async def test(fleet: Fleet) -> None:
        with pytest.raises(CannotTranslate, match="poison"):
            await ask(fleet, "poison")
        with pytest.raises(InternalError):
            await ask(fleet, "bug")
        assert await ask(fleet, "dog")

    run(Double(model), test)


def test_who_leaves_or_runs_out_of_time_ends_the_work(model: Path) -> None:
    double = Double(model)

    async def test(fleet: Fleet) -> None:
        double.gate.clear()
        leaver = asyncio.create_task(ask(fleet, "leaver"))
        late = asyncio.create_task(ask(fleet, "late", deadline=asyncio.get_running_loop().time() + 0.05))
        stayer = asyncio.create_task(ask(fleet, "stayer"))
        with pytest.raises(DeadlineExceeded):
            await late
        leaver.cancel()
        await asyncio.wait([leaver])
        double.gate.set()
        assert (await stayer).startswith("STAYER")
        assert sorted(double.cancelled) == ["late", "leaver"]

    run(double, test)


def test_a_reload_takes_the_old_models_work_along(model: Path) -> None:
    """None of it is suspected of anything: it goes to the new model all at a time."""
    double = Double(model)
    before = model_digest(model)

    async def test(fleet: Fleet) -> None:
        double.gate.clear()
        asked = [asyncio.create_task(ask(fleet, f"dog {number}")) for number in range(12)]
        while len(double.asked) < 12:
            await asyncio.sleep(0)
        (model / "config.json").write_text("2")
        await fleet.reload()
        double.gate.set()
        after = model_digest(model)
        assert after != before and fleet.model_for(EN_DE).version == after
        assert await asyncio.gather(*asked) == [f"DOG {number} {after.upper()}" for number in range(12)]
        assert double.versions == 12 * [before] + 12 * [after] and double.most[after] == 12

    run(double, test)


def test_a_new_model_that_a_replica_finds_first_is_taken_up(model: Path) -> None:
    async def test(fleet: Fleet) -> None:
        (model / "config.json").write_text("2")
        assert await ask(fleet, "dog") == f"DOG {model_digest(model).upper()}"
        assert fleet.model_for(EN_DE).version == model_digest(model)

    run(Double(model), test)


def test_a_model_that_the_replicas_refuse(model: Path) -> None:
    double = Double(model)

    async def test(fleet: Fleet) -> None:
        before = model_digest(model)
        (model / "config.json").write_text("2")
        double.refuses = "it is broken"
        with pytest.raises(ReloadRefused, match="it is broken"):
            await fleet.reload()
        assert fleet.model_for(EN_DE).version == before

    run(double, test)
    with pytest.raises(ModelError, match="it is broken"):
        run(double, test)
