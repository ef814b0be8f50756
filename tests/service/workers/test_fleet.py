"""Several models in processes of their own: what happens when they die, hang, are exchanged, and are asked too much."""

import asyncio
import os
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mt import Translator
from mt.errors import ModelError
from mt.languages import Direction
from service import errors
from service.settings import Settings
from service.workers.fleet import Fleet
from service.workers.messages import Deliver, FromWorker, ModelSetup, Ready, SourceText, TranslateOptions
from service.workers.model_memory import MemoryTimes
from service.workers.pool import TransportFactory
from service.workers.worker import ProcessTransport
from tests.conftest import sentences, write_model
from tests.service.controlled import Control, Rigged
from tests.service.running import until
from tests.weights import load_weights, save_weights

EN_DE = Direction("en", "de")
Load = Callable[[ModelSetup], Any]


@dataclass
class Processes:
    """Starts worker processes and keeps a list of them."""

    load: Load | None = None
    started: list[ProcessTransport] = field(default_factory=list)

    def start(self, setup: ModelSetup) -> ProcessTransport:
        self.started.append(ProcessTransport(replace(setup, threads=1), self.load))
        return self.started[-1]

    def kill(self) -> None:
        os.kill(self.started[-1].pid, signal.SIGKILL)


def plan(*models: Path, **changes: Any) -> Settings:
    limits: dict[str, Any] = {"max_pending_requests": 1000, "request_timeout_seconds": 600, **changes}
    return Settings(model=models, device="cpu", **limits)


async def ask(fleet: Fleet, *texts: str, caller: str = "") -> list[str]:
    requested = list(map(SourceText, texts))
    found = await fleet.translate(requested, TranslateOptions(EN_DE), caller=caller)
    return [each.text for each in found]


def begin(fleet: Fleet, texts: Sequence[str], caller: str = "") -> "list[asyncio.Task[list[str]]]":
    """A request for each."""
    return [asyncio.create_task(ask(fleet, text, caller=caller)) for text in texts]


def loaded_models(fleet: Fleet) -> list[str]:
    return [pool.name for pool in fleet.pools if pool.loaded]


def expected(texts: Sequence[str], model: Path) -> list[list[str]]:
    translator = Translator.load(model, "cpu", threads=1)
    return [[found.text] for found in translator.translate_many(list(texts), source="en", target="de")]


async def test_killed_in_mid_decode_nothing_is_lost(small_model: Path) -> None:
    processes = Processes(Rigged(step_seconds=0.01))
    texts = sentences(16)
    async with Fleet(plan(small_model), processes.start) as fleet:
        asked = begin(fleet, texts)
        await until(lambda: fleet.stats().finished >= 2)
        assert fleet.stats().running > 4
        *_, held = fleet.pools[0].workers[0].in_flight.values()
        processes.kill()
        await until(lambda: not fleet.ready)
        late = begin(fleet, ["The dog."])
        assert not any(each.done() and each.exception() for each in asked)
        assert await asyncio.gather(*asked, *late) == expected([*texts, "The dog."], small_model)
        assert fleet.ready
        stats = fleet.stats()
        assert (stats.restarts, stats.requests, stats.finished) == (1, 0, 17)
        again = begin(fleet, [held.text.text])
        await until(lambda: fleet.stats().running > 0)
        assert not fleet.pools[0].workers[0].isolated  # answered texts are not suspected
        await asyncio.gather(*again)


@pytest.mark.parametrize(
    ("limits", "accepted"),
    [({"max_pending_requests": 5}, 5), ({"max_pending_characters": 80, "max_characters": 80}, 3)],
)
async def test_a_full_queue_answers_what_it_accepted(small_model: Path, limits: dict[str, int], accepted: int) -> None:
    control = Control()
    texts = [f"The dog sees the cat{number:02}" for number in range(accepted + 3)]  # of one length
    async with Fleet(plan(small_model, **limits), control.start) as fleet:
        asked = begin(fleet, texts[:accepted])
        await until(lambda: fleet.stats().requests == accepted)
        for text in texts[accepted:]:
            with pytest.raises(errors.Overloaded) as refused:
                await asyncio.wait_for(ask(fleet, text), 60)
            assert int(refused.value.headers["Retry-After"]) >= 1
        assert not any(each.done() for each in asked)
        control.open()
        assert await asyncio.gather(*asked) == expected(texts[:accepted], small_model)
        await ask(fleet, "The dog.")


@pytest.mark.parametrize(
    ("fault", "failing"), [("failing", ["The dog. poison"]), ("without_numbers", ["poison"]), ("failed_devices", [])]
)
async def test_faults_do_not_touch_other_texts(small_model: Path, fault: str, failing: list[str]) -> None:
    """The model raises an error, its scores are no numbers, or the worker loses its device and is replaced."""
    control, request = Control(), Translator.load(small_model, "cpu").request("poison")
    assert request is not None
    setattr(control, fault, request.source if failing else 1)
    async with Fleet(plan(small_model), control.start) as fleet:
        good, bad = begin(fleet, sentences(7)), begin(fleet, failing)
        await until(lambda: fleet.stats().requests == 7 + len(bad))
        control.open()
        assert await asyncio.gather(*good) == expected(sentences(7), small_model)
        for each in bad:
            with pytest.raises(errors.CannotTranslate):
                await each
        assert (fleet.stats().restarts, fleet.stats().requests) == (not failing, 0)


@pytest.mark.slow
async def test_a_text_that_kills_is_found_and_all_others_are_translated(small_model: Path, tmp_path: Path) -> None:
    texts = sentences(40)
    processes = Processes(Rigged(kills=("poison",), loads=tmp_path / "loads"))
    async with Fleet(plan(small_model), processes.start) as fleet:
        good, bad = begin(fleet, texts), begin(fleet, ["poison"])
        assert await asyncio.gather(*good) == expected(texts, small_model)
        with pytest.raises(errors.CannotTranslate, match="'poison' cannot be translated: it crashes the model's p"):
            await bad[0]
        await until(lambda: fleet.ready)
        deaths = len((tmp_path / "loads").read_text().splitlines()) - 1
        assert 2 <= deaths <= 6  # together twice, then in parts, at last alone, and once more
        with pytest.raises(errors.CannotTranslate, match="poison"):
            await ask(fleet, "poison", caller="another")
        assert await ask(fleet, texts[0]) == expected(texts[:1], small_model)[0]
        assert len((tmp_path / "loads").read_text().splitlines()) - 1 == deaths  # it is known now


@pytest.mark.slow
@pytest.mark.parametrize("leaves", [False, True])
async def test_alone_two_deaths_are_enough(small_model: Path, leaves: bool) -> None:
    """A client that gives up after 10 s and sends the text again would kill for ever else."""
    processes = Processes(Rigged(kills=("poison",)))
    async with Fleet(plan(small_model), processes.start) as fleet:
        for times in (1, 2) if leaves else ():
            asked = begin(fleet, ["poison"])
            await until(lambda times=times: fleet.stats().restarts >= times)  # type: ignore[misc]
            asked[0].cancel()
            await asyncio.wait(asked)
        with pytest.raises(errors.CannotTranslate):
            await ask(fleet, "poison")
        await until(lambda: fleet.ready)
        assert fleet.stats().restarts == 2


@pytest.mark.slow
async def test_one_that_hangs_is_replaced(small_model: Path) -> None:
    processes = Processes(Rigged(hangs=("poison",)))
    async with Fleet(plan(small_model, step_timeout_seconds=2), processes.start) as fleet:
        good, bad = begin(fleet, sentences(3)), begin(fleet, ["poison"])
        assert await asyncio.gather(*good) == expected(sentences(3), small_model)
        with pytest.raises(errors.CannotTranslate):
            await bad[0]


async def test_one_that_is_stopped_and_goes_on_has_not_hung(small_model: Path) -> None:
    processes = Processes()
    async with Fleet(plan(small_model), processes.start) as fleet:
        os.kill(processes.started[0].pid, signal.SIGSTOP)
        asked = begin(fleet, sentences(3))
        await asyncio.sleep(2)
        os.kill(processes.started[0].pid, signal.SIGCONT)
        assert await asyncio.gather(*asked) == expected(sentences(3), small_model)
        assert fleet.stats().restarts == 0


def other_weights(model: Path, change: float) -> None:
    weights = load_weights(model / "model.safetensors")
    save_weights(model / "other", {name: tensor * change for name, tensor in weights.items()})
    (model / "other").replace(model / "model.safetensors")


async def test_a_version_with_other_languages_is_refused(small_model: Path, tmp_path: Path) -> None:
    model = Path(shutil.copytree(small_model, tmp_path / "model"))
    texts = sentences(5)
    before = expected(texts, model)
    processes = Processes()
    async with Fleet(plan(model), processes.start) as fleet:
        version = fleet.pool_for(EN_DE).description.version
        shutil.copytree(write_model(tmp_path / "m", ["en-fr"]), model, dirs_exist_ok=True)
        with pytest.raises(errors.ReloadRefused, match="the new version does not translate en-de"):
            await fleet.reload()
        assert fleet.pool_for(EN_DE).description.version == version
        assert (fleet.ready, fleet.stats().refused_reloads) == (True, 1)
        assert await asyncio.gather(*begin(fleet, texts)) == before
        assert len(processes.started) == 2


@pytest.mark.slow
async def test_who_starts_again_and_finds_another_model_has_it_exchanged(small_model: Path, tmp_path: Path) -> None:
    model = Path(shutil.copytree(small_model, tmp_path / "model"))
    processes = Processes(Rigged(step_seconds=0.01))
    texts = sentences(30)
    async with Fleet(plan(model), processes.start) as fleet:
        asked = asyncio.create_task(ask(fleet, *texts))
        await until(lambda: 1 <= fleet.stats().finished < 20)
        other_weights(model, 1.3)
        processes.kill()
        assert await asked == [text for (text,) in expected(texts, model)]
        assert fleet.stats().reloads == 1


@pytest.mark.slow
async def test_a_model_that_is_gone_when_its_worker_dies(small_model: Path, tmp_path: Path) -> None:
    """What was accepted waits, what comes is refused once that looks hopeless, and all is well when it is back."""
    model = Path(shutil.copytree(small_model, tmp_path / "model"))
    processes = Processes()
    async with Fleet(plan(model), processes.start) as fleet:
        shutil.move(model, tmp_path / "away")
        processes.kill()
        await until(lambda: not fleet.ready)
        asked = begin(fleet, sentences(2))
        await until(lambda: fleet.pools[0].unrecoverable)
        with pytest.raises(errors.Unavailable):
            await ask(fleet, "The dog.")
        shutil.move(tmp_path / "away", model)
        assert await asyncio.gather(*asked) == expected(sentences(2), model)
        assert fleet.ready


async def test_several_models_of_a_direction(small_model: Path, several_directions: Path) -> None:
    small, several = small_model.name, several_directions.name
    options = [TranslateOptions(EN_DE, model=name) for name in ("", small, several)]
    control = Control()
    control.open()
    for preferred, default in (((), small), ((several,), several)):
        async with Fleet(plan(small_model, several_directions, preferred_models=preferred), control.start) as fleet:
            assert fleet.pools[0].name == default
            answers = [await fleet.translate([SourceText("The dog sees the cat.")], option) for option in options]
            texts = dict(zip(("", small, several), [answer[0].text for answer in answers], strict=True))
            assert fleet.pool_for(EN_DE, several).model == several_directions
            with pytest.raises(errors.UnknownModel, match=f"model other is not served; accepted: {several}, {small}"):
                fleet.pool_for(EN_DE, "other")
            with pytest.raises(errors.UnsupportedLanguage, match=f"en-fr is not supported by the model {small}"):
                fleet.pool_for(Direction("en", "fr"), small)
            assert fleet.pool_for(Direction("en", "fr")).model == several_directions
            assert fleet.pools[0].description.options.beam_size == 3
            for asked, error in (
                (TranslateOptions(Direction("fr", "en")), errors.UnsupportedLanguage),
                (TranslateOptions(EN_DE, beam_size=0), errors.InvalidRequest),
            ):
                with pytest.raises(error, match=r"fr-en|beam_size"):
                    await fleet.translate([SourceText("a")], asked)
        assert texts[small] == expected(["The dog sees the cat."], small_model)[0][0] != texts[several]
        assert texts[""] == texts[default]


async def test_models_that_cannot_be_served_together(small_model: Path, tmp_path: Path) -> None:
    control = Control()
    control.open()
    same = shutil.copytree(small_model, tmp_path / small_model.name)
    kills = Processes(Rigged(kills=("The cat sat on the mat.",)))
    for how, start, problem in (
        (plan(small_model, same), control.start, rf"{same} have the same name, {small_model.name}; set `name` in a"),
        (plan(small_model, preferred_models=("x",)), control.start, "preferred_models: model x is not served; acc"),
        (plan(Path("/nothing"), Path("/nowhere")), Control().start, r"(?s)nothing.*nowhere"),
        (plan(small_model), kills.start, r"ended before it was ready: killed by SIGKILL"),
        (plan(small_model, model_memory_mb=1), Processes().start, r"needs \d+ MB of memory; the setting model_memory_"),
    ):
        with pytest.raises(ModelError, match=problem):
            async with Fleet(how, start):
                pytest.fail("it has started")


async def test_models_take_turns_in_memory(small_model: Path, several_directions: Path) -> None:
    names = (small_model.name, several_directions.name)
    texts = sentences(40)
    wanted = {names[0]: expected(texts, small_model), names[1]: expected(texts, several_directions)}
    large = {small_model: 1_500_000_000, several_directions: 1_500_000_000}
    config, control = plan(small_model, several_directions, model_memory_mb=2000), Control()
    control.open()
    async with Fleet(config, sized(control.start, large), MemoryTimes(busy=0.1)) as fleet:
        assert loaded_models(fleet) == [names[0]] and fleet.ready
        assert fleet.stats().workers_ready == 1
        asked = [([SourceText(text)], TranslateOptions(EN_DE, model=name)) for text in texts for name in names]
        tasks = [asyncio.create_task(fleet.translate(*each, caller=each[1].model)) for each in asked]
        while not all(task.done() for task in tasks):
            assert fleet.ready and len(loaded_models(fleet)) <= 1
            await asyncio.sleep(0.01)
        found = [[answer.text for answer in task.result()] for task in tasks]
        assert found[::2] == wanted[names[0]] and found[1::2] == wanted[names[1]]
        stats = fleet.stats()
        assert stats.pools[1].loads >= 2 and (stats.failed, stats.restarts) == (0, 0)
        assert (stats.workers, stats.workers_ready) == (1, 1)


async def test_requests_that_wait_for_their_model_end_before_the_shutdown(
    small_model: Path, several_directions: Path
) -> None:
    control, config = Control(), plan(small_model, several_directions, model_memory_mb=1)
    sizes = {small_model: 600_000, several_directions: 600_000}
    async with Fleet(config, sized(control.start, sizes), MemoryTimes(pause=0.1)) as fleet:

        async def admitted(name: str) -> str:
            with fleet.gate.entered():
                options = TranslateOptions(EN_DE, model=name)
                return (await fleet.translate([SourceText("The dog.")], options))[0].text

        running = asyncio.create_task(admitted(small_model.name))
        await until(lambda: control.entered.acquire(blocking=False))
        waiting = asyncio.create_task(admitted(several_directions.name))
        await until(lambda: fleet.gate.active == 2)
        draining = asyncio.create_task(fleet.drain(30))
        await asyncio.sleep(0.2)
        control.open()
        assert await draining
        assert [await running] == expected(["The dog."], small_model)[0]
        assert [await waiting] == expected(["The dog."], several_directions)[0]


async def test_a_model_on_demand_whose_files_are_gone_is_refused_at_once(
    small_model: Path, several_directions: Path, tmp_path: Path
) -> None:
    gone, control = shutil.copytree(several_directions, tmp_path / "gone"), Control()
    control.open()
    sizes = dict.fromkeys((small_model, gone), 1_500_000_000)
    async with Fleet(plan(small_model, gone, model_memory_mb=2000), sized(control.start, sizes)) as fleet:
        shutil.rmtree(gone)
        with pytest.raises(errors.Unavailable, match="The model gone cannot be loaded"):
            await fleet.translate([SourceText("The dog.")], TranslateOptions(EN_DE, model="gone"))
        assert loaded_models(fleet) == [small_model.name]


async def test_queued_texts_of_an_unloaded_model(
    small_model: Path, several_directions: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No later request for the model arrives: the queue alone lets the model be loaded again."""
    monkeypatch.setattr("service.workers.pool.PREFETCH", 0)  # a worker has one text at a time
    control, config = Control(), plan(small_model, several_directions, model_memory_mb=1)
    sizes = {small_model: 600_000, several_directions: 600_000}
    texts = sentences(3)
    async with Fleet(config, sized(control.start, sizes), MemoryTimes(busy=0)) as fleet:
        asked = begin(fleet, texts)
        await until(lambda: control.entered.acquire(blocking=False))
        assert fleet.pools[0].queued
        options = TranslateOptions(EN_DE, model=several_directions.name)
        other = asyncio.create_task(fleet.translate([SourceText("The dog.")], options))
        await until(lambda: not fleet.pools[0].loaded)
        control.open()
        async with asyncio.timeout(60):
            await other
            assert await asyncio.gather(*asked) == expected(texts, small_model)


def sized(start: TransportFactory, sizes: Mapping[Path, int]) -> TransportFactory:
    """Start workers which report these sizes, in bytes, for their models."""

    def start_sized(setup: ModelSetup) -> ProcessTransport:
        transport = start(setup)
        begin = transport.start

        def report(deliver: Deliver, messages: Sequence[FromWorker]) -> None:
            deliver([replace(one, memory=sizes[setup.model]) if isinstance(one, Ready) else one for one in messages])

        transport.start = lambda deliver: begin(partial(report, deliver))  # type: ignore[method-assign]
        return transport

    return start_sized


async def test_what_expires_in_the_queue_never_reaches_the_engine(small_model: Path) -> None:
    control = Control()
    async with Fleet(plan(small_model), control.start) as fleet:
        first = begin(fleet, ["The dog."])
        await until(lambda: control.entered.acquire(blocking=False))
        for text in ("The cat.", "The horse."):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(ask(fleet, text), 0.2)
        control.open()
        await first[0]
        await ask(fleet, "The river.")
        stats = fleet.stats()
        assert (stats.finished, stats.requests) == (2, 0)
        asked = map(Translator.load(small_model, "cpu").request, ("The cat.", "The horse."))
        assert {request.source for request in asked if request}.isdisjoint(control.scorers[0].sources)


async def one_step(control: Control) -> None:
    """Let the engine take the step that it has entered. Return when it has entered the next one."""
    control.permits.release()
    await until(lambda: control.entered.acquire(blocking=False))


async def test_rows_leave_within_two_steps(small_model: Path) -> None:
    control, texts = Control(), sentences(30)
    async with Fleet(plan(small_model), control.start) as fleet:
        staying = begin(fleet, ["The dog sees the cat."])
        leaving = asyncio.create_task(ask(fleet, *texts))
        await until(lambda: control.entered.acquire(blocking=False))
        while control.scorers[0].rows != 31 * 3:  # three beams
            await one_step(control)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        assert fleet.stats().running == 1
        for _ in range(2):
            await one_step(control)
        assert control.scorers[0].rows == 3
        control.open()
        assert await asyncio.gather(*staying) == expected(["The dog sees the cat."], small_model)


async def test_a_fleet_that_ends_lets_nobody_wait(small_model: Path) -> None:
    control = Control()
    async with Fleet(plan(small_model), control.start) as fleet:
        left = begin(fleet, sentences(3))
        await until(lambda: fleet.stats().running == 3)
        asyncio.get_running_loop().call_later(0.5, control.open)
    for each in left:
        with pytest.raises(errors.Unavailable):
            await each
    with pytest.raises(errors.Unavailable):
        await ask(fleet, "The dog.")
