"""The messages of a worker, the turns of callers in it, and the processes that replace each other."""

import asyncio
import ctypes
import gc
import pickle
import shutil
import socket
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from types import SimpleNamespace
from typing import cast

import pytest
import torch

from mt import Translator
from mt.checkpoint import model_digest
from mt.decoding.options import SearchOptions
from mt.errors import ModelError
from mt.languages import Direction, DirectionSet
from mt.pipeline.results import Alternative, Translation
from mt.pipeline.text_task import TextTask
from mt.text.terms import Terms
from service.errors import InternalError
from service.freed_memory import LongList
from service.pauses import FULL_EVERY, SWITCH_SECONDS
from service.processes import LENGTH
from service.workers import messages as protocol
from service.workers import worker_loop
from service.workers.messages import (
    Deliver,
    FromWorker,
    ModelSetup,
    Ready,
    SourceText,
    ToWorker,
    Translate,
    TranslateOptions,
)
from service.workers.worker import FleetCounts, ProcessTransport, Worker, WorkerOwner, WorkerTimeouts
from service.workers.worker_loop import work, worker_devices
from service.workers.worker_process import Channel
from tests.kernels.conftest import library as library

OPTIONS = SearchOptions()


def talk(model: Path, translator: Translator, messages: list[ToWorker]) -> list[FromWorker]:
    """What a worker answers to these, each of which goes through pickle both ways."""
    inbox: SimpleQueue[bytes] = SimpleQueue()
    outbox: list[bytes] = []
    for message in (*messages, protocol.Close()):
        inbox.put(pickle.dumps(message))

    def receive(wait: bool) -> list[ToWorker]:
        answers = sum(not isinstance(pickle.loads(each), protocol.TextProgress) for each in outbox)
        return [pickle.loads(inbox.get())] if wait or answers > len(messages) else []

    work(ModelSetup(model), lambda _: translator, receive, lambda answers: outbox.extend(map(pickle.dumps, answers)))
    return [pickle.loads(answer) for answer in outbox]


def without_pieces(translation: Translation) -> Translation:
    def stripped(alternatives: Iterable[Alternative]) -> tuple[Alternative, ...]:
        return tuple(
            replace(each, pieces=(), piece_log_probabilities=(), omitted=(), copied=()) for each in alternatives
        )

    sentences = tuple(replace(each, alternatives=stripped(each.alternatives)) for each in translation.sentences)
    return replace(translation, alternatives=stripped(translation.alternatives), sentences=sentences)


def test_the_worker_speaks_in_messages_that_can_cross_a_process(small_model: Path) -> None:
    translator = Translator.load(small_model, "cpu")
    direction = Direction("en", "de")
    expected, two = (translator.translate_many([text])[0] for text in ("The dog sees the cat.", "The dog. The cat."))
    order, other = TranslateOptions(direction), TranslateOptions(Direction("de", "en"))
    asked = [("The dog sees the cat.", order), (" ", order), ("The dog.", other), ("The dog. The cat.", order)]
    messages = [Translate(id, SourceText(text), options) for id, (text, options) in enumerate(asked, start=1)]
    said = talk(small_model, translator, [*messages, protocol.Cancel(77), protocol.Ping()])
    assert isinstance(said[0], Ready) and said[0].no_gpu and said[0].capacity > 1
    assert (list(said[0].directions), said[0].options) == ([direction], translator.options)
    assert said[0].devices == ("cpu",)
    assert said[0].version == model_digest(small_model)
    assert isinstance(said[1], protocol.TextDone) and without_pieces(said[1].translation) == without_pieces(expected)
    assert isinstance(said[2], protocol.TextDone) and said[2].translation.text == " "
    assert isinstance(said[3], protocol.TextFailed) and said[3].code == "cannot_translate"
    assert "accepted: en-de" in said[3].message
    assert isinstance(said[4], protocol.TextDone) and without_pieces(said[4].translation) == without_pieces(two)
    assert said[4].translation.alternatives[0].pieces == (), "no client gets them"
    assert isinstance(said[5], protocol.Heartbeat) and said[5].work.steps > 0
    assert set(said[5].thread_steps) == {-1}


def test_a_glossary_is_sent_to_a_worker_once_and_forgotten_by_both_ends() -> None:
    service, worker = protocol.OptionsMemory(), protocol.OptionsMemory()

    def send(number: int) -> int:
        terms = Terms(tuple((f"term {number} {entry}", "Wort") for entry in range(1000)))
        message = Translate(1, SourceText("a"), TranslateOptions(Direction("en", "de"), terms=terms))
        data = service.pack([message, message, protocol.Ping()])
        assert worker.unpack(data) == [message, message, protocol.Ping()]
        return len(data)

    assert [send(number) > 1000 for number in (0, 0, 1, 0, 1)] == [True, False, True, False, False]
    service, worker = (protocol.OptionsMemory(3_000_000) for _ in range(2))  # two glossaries of 1.3 MB
    assert [send(number) > 1000 for number in (2, 3, 2, 3, 0)] == [True, True, False, False, True]


def test_parts_of_long_translations_are_sent_one_by_one() -> None:
    """The service reads each in one piece; attention maps of a turn took the event loop 11 ms."""
    part, other = protocol.TextSentences(1, ()), protocol.Heartbeat(protocol.WorkCounts())
    ours, theirs = socket.socketpair()
    channel = Channel(theirs.detach())
    channel.send([other, other, part, part, other])
    sent = ours.recv(1 << 16)
    ours.close()
    frames = []
    while sent:
        (size,) = LENGTH.unpack_from(sent)
        frames.append(pickle.loads(sent[LENGTH.size : LENGTH.size + size]))
        sent = sent[LENGTH.size + size :]
    assert frames == [[other, other], [part], [part], [other]]


@pytest.mark.parametrize(
    ("sentences", "characters", "parts"),
    [(1, 500_000, [1]), (50, 500_000, [50]), (51, 500_000, [50, 1]), (120, 500_000, [50, 50, 20]), (51, 9, [50, 0, 1])],
)
def test_a_long_translation_is_answered_in_parts(
    small_model: Path, monkeypatch: pytest.MonkeyPatch, sentences: int, characters: int, parts: list[int]
) -> None:
    """Its sentences take up to seconds: the next caller is answered between two parts."""
    monkeypatch.setattr(worker_loop, "PART_CHARACTERS", characters)
    translator = Translator.load(small_model, "cpu")
    loop = worker_loop.WorkerLoop(translator, turn_seconds=0)  # one message in each step
    text = "The dog. " * sentences
    options, answered = TranslateOptions(Direction("en", "de"), n_best=2), list[protocol.TextAnswer]()
    owner = SimpleNamespace(answered=lambda worker, answers: answered.extend(answers))
    worker = Worker(lambda: Process(True, True), WorkerTimeouts(), cast(WorkerOwner, owner), FleetCounts())
    asked = [Translate(id, SourceText(text), options, "a") for id in (1, 2)]
    for message in (*asked, Translate(3, SourceText("12"), options, "b")):
        worker.give(message)
        loop.take([message])
    sizes, withdrawn = list[int](), False
    while loop.busy:
        loop.begin()
        messages = loop.step()
        worker._receive(messages)
        for said in cast(list[protocol.TextSentences | protocol.TextDone], messages):
            part = said.sentences if isinstance(said, protocol.TextSentences) else said.translation.sentences
            sizes += [len(part)] if said.id == 1 else []
            if said.id == 2 and len(parts) > 1 and not withdrawn:
                loop.take([protocol.Cancel(2)])
                worker.cancel(2)
                withdrawn = True
    done = [cast(protocol.TextDone, answer) for answer in answered]
    ids = [answer.id for answer in done]  # the two long texts end in any order
    assert sizes == parts and ids[0] == 3 and sorted(ids[1:]) == ([1] if withdrawn else [1, 2])
    translations = [one.translation for one in done]
    assert all(isinstance(one.sentences, LongList) for one in translations)  # it frees them in a thread
    translation = replace(translations[1], sentences=tuple(translations[1].sentences))
    assert translation == without_pieces(translator.translate(text, n_best=2))
    assert not worker._parts


def test_callers_take_turns_at_planning(small_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_loop, "PLANNING_SECONDS", 0.35)  # three turns of 0.1 s on the clock below
    translator = Translator.load(small_model, "cpu")
    loop = worker_loop.WorkerLoop(translator, turn_seconds=0)  # one step of planning in each turn
    options = TranslateOptions(Direction("en", "de"))
    long, short = SourceText("The dog sees the cat. The horse. " * 100), SourceText("The dog.")
    loop.take([Translate(1, long, options, "a"), Translate(2, long, options, "a"), Translate(3, short, options, "b")])
    clock = iter(range(10))
    monkeypatch.setattr(worker_loop, "time", SimpleNamespace(monotonic=lambda: next(clock) / 10))
    loop.begin()
    monkeypatch.undo()
    finished = []
    while loop.busy:
        finished += [answer for answer in (*loop.begin(), *loop.step()) if isinstance(answer, protocol.TextDone)]
    assert finished[0].id == 3
    expected = translator.translate(long.text).text
    assert [answer.translation.text for answer in finished[1:]] == [expected, expected]


def test_a_text_is_withdrawn_while_it_is_planned(small_model: Path) -> None:
    loop = worker_loop.WorkerLoop(Translator.load(small_model, "cpu"), turn_seconds=0)
    text = SourceText("The dog sees the cat. " * 2000)
    loop.take([Translate(1, text, TranslateOptions(Direction("en", "de")))])
    loop.begin()
    assert loop.busy
    loop.take([protocol.Cancel(1)])
    assert not loop.busy
    loop.take([Translate(1, SourceText("The dog."), TranslateOptions(Direction("en", "de")), report=True)])
    finished: list[FromWorker] = []
    while loop.busy:
        finished += [*loop.begin(), *loop.step()]
    progress, answer = finished
    assert isinstance(progress, protocol.TextProgress) and isinstance(answer, protocol.TextDone)
    assert [sentence.source for sentence in answer.translation.sentences] == ["The dog."]
    assert not any(isinstance(kept, TextTask) for kept in gc.get_referents(*vars(loop).values()))


def test_a_tokenizer_that_breaks_on_a_text_is_no_end(small_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = Translator.load(small_model, "cpu")
    encode = translator.tokenizer.encode

    def breaks(text: str) -> list[int]:
        if "secret" in text:
            raise ValueError(text)
        return encode(text)

    monkeypatch.setattr(translator.tokenizer, "encode", breaks)
    secret = Translate(1, SourceText("a secret text"), TranslateOptions(Direction("en", "de")))
    failed = talk(small_model, translator, [secret])[1]
    assert isinstance(failed, protocol.TextFailed) and failed.code == InternalError.code
    assert failed.message.startswith("ValueError at ") and "secret" not in failed.message


def test_a_model_that_cannot_translate_is_refused(small_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    translator = Translator.load(small_model, "cpu")
    monkeypatch.setattr(translator.tokenizer, "encode", lambda text: [5] * 10_000)
    (refused,) = talk(small_model, translator, [])
    assert isinstance(refused, protocol.LoadFailed) and "small cannot translate from en to de" in refused.message


def test_a_model_that_changes_while_it_is_loaded_is_loaded_again(small_model: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(small_model, model)
    versions = [model_digest(model)]

    def load(setup: ModelSetup) -> Translator:
        translator = Translator.load(setup.model, "cpu")
        if len(versions) == 1:
            (model / "calibration.json").write_text("[]")
            versions.append(model_digest(model))
        return translator

    said: list[FromWorker] = []
    work(ModelSetup(model), load, lambda wait: [protocol.Close()], said.extend)
    assert isinstance(said[0], Ready) and said[0].version == versions[1] != versions[0]


class Process(ProcessTransport):
    """A process that cannot be started if `starts` is false, and otherwise never becomes ready or is ready at once.

    If `dies` is true, it ends as soon as it is ready.
    """

    def __init__(self, starts: bool, ready: bool, dies: bool = False) -> None:
        super().__init__(ModelSetup(Path()))
        self.starts, self.ready, self.dies = starts, ready, dies

    def start(self, deliver: Deliver) -> None:
        if not self.starts:
            raise OSError("no room for another process")
        self.deliver = deliver
        if self.ready:
            asyncio.get_running_loop().call_soon(deliver, [Ready(DirectionSet.parse(["en-de"]), OPTIONS, "", (), 1)])
        if self.dies:
            asyncio.get_running_loop().call_soon(deliver, [protocol.WorkerStopped("killed")])

    def send(self, messages: Sequence[ToWorker]) -> None:
        if messages == [protocol.Close()]:
            self.kill()

    def kill(self) -> None:
        asyncio.get_running_loop().call_soon(self.deliver, [protocol.WorkerStopped("")])


@pytest.mark.parametrize(
    ("processes", "closed", "ready"),
    [
        ([Process(starts=True, ready=True)], False, True),
        ([Process(starts=False, ready=False), Process(starts=True, ready=True)], False, True),
        ([Process(starts=True, ready=True, dies=True), Process(starts=True, ready=True)], False, True),
        ([Process(starts=True, ready=False)], True, False),  # while it loads
    ],
)
async def test_a_worker_is_loaded(processes: list[Process], closed: bool, ready: bool) -> None:
    owner = SimpleNamespace(restarted=lambda ready: True)
    left = iter(processes)
    worker = Worker(left.__next__, WorkerTimeouts(), cast(WorkerOwner, owner), FleetCounts())
    loading = asyncio.create_task(worker.load())
    await asyncio.sleep(0.01)
    if closed:
        await worker.unload()
    await asyncio.wait_for(loading, 60)
    for _ in range(1000):
        if worker.ready != ready:
            await asyncio.sleep(0.01)
    assert worker.ready == ready and not list(left), "each process was started"
    await worker.unload()


class FailingProcess(Process):
    """A process whose model cannot be loaded, and which ends some time later unless it is killed."""

    def __init__(self, events: list[str]) -> None:
        super().__init__(starts=True, ready=False)
        self.events = events

    def start(self, deliver: Deliver) -> None:
        self.events.append("start")
        super().start(deliver)
        asyncio.get_running_loop().call_soon(deliver, [protocol.LoadFailed("no memory")])

    def kill(self) -> None:
        self.events.append("end")
        super().kill()


async def test_a_process_that_failed_has_ended_before_the_next_one_starts() -> None:
    events: list[str] = []
    processes = iter([FailingProcess(events), FailingProcess(events)])
    owner = SimpleNamespace(restarted=lambda ready: True)
    worker = Worker(processes.__next__, WorkerTimeouts(), cast(WorkerOwner, owner), FleetCounts())
    loading = asyncio.create_task(worker.load())
    while events.count("start") < 2:
        await asyncio.sleep(0.01)
    await worker.unload()
    await loading
    assert events[:3] == ["start", "end", "start"]


def tell(setup: ModelSetup) -> Translator:
    """Refuse to load, and state how often this process switches threads and collects garbage, and whether it dumps."""
    dumpable = ctypes.CDLL(None).prctl(3)  # PR_GET_DUMPABLE
    raise ModelError(f"{sys.getswitchinterval()} {gc.get_threshold()[2]} {gc.get_freeze_count() > 0} {dumpable}")


async def test_the_process_of_a_worker_has_short_pauses_and_writes_no_core_dumps() -> None:
    said = asyncio.Queue[Sequence[FromWorker]]()
    transport = ProcessTransport(ModelSetup(Path()), tell)
    transport.start(said.put_nowait)
    assert await said.get() == [protocol.LoadFailed(f"{SWITCH_SECONDS} {FULL_EVERY} True 0")]
    assert isinstance((await said.get())[0], protocol.WorkerStopped)


@pytest.mark.parametrize(
    ("device", "wanted", "free", "devices"),
    [
        ("auto", None, 24, ("cuda:0", "cuda:1")),
        ("cuda", None, 80, ("cuda:0", "cuda:1", "cuda:0", "cuda:1")),
        ("cuda", 1, 80, ("cuda:0", "cuda:1")),
        ("cuda:1", 3, 24, ("cuda:1", "cuda:1", "cuda:1")),
        ("cpu", 3, 80, ("cpu",)),
    ],
)
def test_each_gpu_gets_workers(
    monkeypatch: pytest.MonkeyPatch, device: str, wanted: int | None, free: int, devices: tuple[str, ...]
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda gpu: (free * 10**9, 80 * 10**9))
    translator = SimpleNamespace(device="cuda" if device == "auto" else device)
    setup = ModelSetup(Path("model"), device, workers_per_gpu=wanted)
    assert worker_devices(setup, cast(Translator, translator)) == devices
