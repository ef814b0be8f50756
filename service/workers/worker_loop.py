"""The main loop of a worker: loads a model, tries the model, and translates until the service sends Close.

The loop communicates only by the messages of messages.py. worker_process.py connects it to a socket.
"""

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from importlib import import_module
from itertools import islice
from typing import TypeVar

from cachetools import LRUCache

from mt.checkpoint import model_digest
from mt.engine.devices import why_no_gpu, why_no_kernel
from mt.engine.turns import TurnQueue
from mt.errors import ModelError, MTError
from mt.pipeline.results import ExplainOptions, SentenceTranslation, Translation
from mt.pipeline.text_task import TextPlanner, TextTask
from mt.pipeline.translator import Translator
from service.errors import CannotTranslate, InternalError, error_location
from service.workers.messages import (
    PART_CHARACTERS,
    PART_SENTENCES,
    Cancel,
    Close,
    Deliver,
    FromWorker,
    Heartbeat,
    LoadFailed,
    ModelSetup,
    Ping,
    Ready,
    TextDone,
    TextFailed,
    TextProgress,
    TextSentences,
    ToWorker,
    Translate,
    WorkCounts,
)

Translated = TypeVar("Translated", Translation, SentenceTranslation)
Load = Callable[[ModelSetup], Translator]
Receive = Callable[[bool], Sequence[ToWorker]]
"""Function that returns the messages that have arrived. If its argument is true, it waits for at least one message."""

TRIAL_TEXT = "The cat sat on the mat."
MAX_TRIALS = 8  # number of directions that a trial of a new model translates
PLANNING_SECONDS = 0.002  # maximum time for splitting and encoding new texts between two decoder steps
TURN_SECONDS = 0.002  # longest time that one caller plans before the next caller plans, or that a step answers
MAX_PLANNERS = 64  # planners in the cache; the texts of one request share a planner
MAX_TERMS = 50_000  # terms of all planners in the cache; the index of a term takes some kilobytes
MAX_LOADS = 3  # attempts to load a model, if its files change while they are read
SECOND_WORKER_BYTES = 32 * 10**9  # free memory of a GPU from which on a model gets a second worker there by default


def work(setup: ModelSetup, load: Load, receive: Receive, deliver: Deliver) -> None:
    """Load a model with `load`, and run a worker until it receives Close.

    If the model cannot be used, deliver LoadFailed and return. New texts join the running batch between two decoder
    steps.
    """
    try:
        translator, version = _load_consistently(setup, load)
        _try_out(translator)
    except MTError as error:
        deliver([LoadFailed(str(error))])
        return
    capacity = max(1, translator.engine.max_rows // translator.options.rows)
    devices, no_gpu = worker_devices(setup, translator), _why_no_gpu(setup, translator)
    about, memory = translator.description.about, used_memory(translator.device)
    deliver([Ready(translator.directions, translator.options, version, devices, capacity, no_gpu, about, memory)])
    loop = WorkerLoop(translator)
    while not loop.closed:
        if messages := [*loop.take(receive(not loop.busy)), *loop.begin()]:
            deliver(messages)
        if messages := loop.step():
            deliver(messages)
    deliver([loop.heartbeat()])


def load(setup: ModelSetup) -> Translator:
    """Load a model directory into memory. The files are not needed afterwards. Raises: MTError if this fails."""
    return Translator.load(setup.model, setup.device, setup.dtype, setup.threads, backend=setup.backend)


def used_memory(device: str) -> int:
    """Return the bytes that this process uses: on a GPU, the memory of its tensors, otherwise its resident memory.

    Return 0 if the number is not known.
    """
    if device.startswith("cuda"):
        reserved: int = import_module("torch").cuda.memory_reserved(device)
        return reserved
    with suppress(OSError), open("/proc/self/statm", encoding="ascii") as file:  # Linux
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


class WorkerLoop:
    """Main loop of a worker: a translator, the texts that wait, and the texts that are being translated."""

    def __init__(self, translator: Translator, turn_seconds: float = TURN_SECONDS) -> None:
        self.translator = translator
        self._turn_seconds = turn_seconds
        self.closed = False
        self._new: TurnQueue[int, Translate] = TurnQueue()  # texts that are not planned, by message id
        self._tasks: dict[int, TextTask] = {}  # by message id
        self._ids: dict[TextTask, int] = {}
        self._done: TurnQueue[int, Iterator[FromWorker]] = TurnQueue()  # answers to finished texts, by message id
        self._reported: dict[int, TextTask] = {}  # tasks that report their progress, by message id
        # Exclude the steps of the trial translations.
        self._work = WorkCounts(steps=-translator.engine.steps, rows=-translator.engine.rows)
        self._planners: LRUCache[tuple[bytes, bool, str], TextPlanner] = LRUCache(MAX_TERMS, _cache_size)

    @property
    def busy(self) -> bool:
        """True if any text is unfinished."""
        return bool(self._new or self._done) or self.translator.dispatcher.busy

    def heartbeat(self) -> Heartbeat:
        """Return a Heartbeat with the present counters."""
        engine = self.translator.engine
        return Heartbeat(self._work + WorkCounts(steps=engine.steps, rows=engine.rows), engine.progress)

    def take(self, messages: Sequence[ToWorker]) -> list[FromWorker]:
        """Process messages, and return the answers to those that need no decoder step."""
        answers: list[FromWorker] = []
        for message in messages:
            match message:
                case Translate():
                    self._new.put(message.caller, message.id, message)
                case Cancel():
                    self._cancel(message.id)
                case Ping():
                    answers.append(self.heartbeat())
                case Close():
                    self.closed = True
        return answers

    def begin(self) -> list[FromWorker]:
        """Plan queued texts (split and encode them) for at most PLANNING_SECONDS, and submit their sentences.

        Callers take turns of `turn_seconds`. Return the answers to texts that need no decoding or cannot be planned.
        """
        answers: list[FromWorker] = []
        begun: dict[TextTask, None] = {}
        stop = time.monotonic() + PLANNING_SECONDS
        while self._new and time.monotonic() < stop:
            id, message = self._new.pop()
            try:
                task = self._tasks.get(id) or self._start(message)
                task.plan(self._turn_seconds)
            except Exception as error:  # no error of one text may stop the worker
                self._cancel(id)
                answers.append(_failed(id, error))
                continue
            if task.done:  # nothing is left to translate
                self._finish(task)
                continue
            begun[task] = None
            if not task.planned:
                self._new.put_back(message.caller, id, message)
        self.translator.dispatcher.submit(task for task in begun if task in self._ids)
        return answers

    def step(self) -> list[FromWorker]:
        """Run one decoder step. Return the messages about the texts and sentences that are now finished."""
        dispatcher = self.translator.dispatcher
        finished = dispatcher.step() if dispatcher.busy else []
        answers: list[FromWorker] = []
        for id, task in self._reported.items():
            if sentences := task.take_reports():
                answers.append(TextProgress(id, tuple(sentences)))
        for task in finished:
            self._finish(task)
        stop = time.monotonic() + self._turn_seconds
        while self._done:
            id, left = self._done.pop()
            answers.append(message := next(left))
            if isinstance(message, TextSentences):
                self._done.put_back(self._tasks[id].planner.context.caller, id, left)
            else:
                self._forget(self._tasks[id])
            if time.monotonic() >= stop:
                break
        return answers

    def _start(self, message: Translate) -> TextTask:
        asked = message.text
        task = self._planner(message).begin(asked.text, asked.protected, asked.matches, asked.marked)
        self._ids[task], self._tasks[message.id] = message.id, task
        if message.report:
            self._reported[message.id] = task
        return task

    def _forget(self, task: TextTask) -> None:
        id = self._ids.pop(task)
        del self._tasks[id]
        self._reported.pop(id, None)
        self._new.remove(id)
        self._done.remove(id)

    def _finish(self, task: TextTask) -> None:
        id = self._ids[task]
        self._reported.pop(id, None)  # the answer has what is not reported
        self._done.put(task.planner.context.caller, id, self._answers(id, task))

    def _answers(self, id: int, task: TextTask) -> Iterator[FromWorker]:
        """Yield the messages with the answer to a text: the sentences in parts, if there are many, and then the rest.

        A text may have 300,000 sentences, which take seconds.
        """
        sentences: list[SentenceTranslation] = []
        sent = 0
        try:
            for sentence in task.sentences():
                waiting = len(sentences) - sent
                if waiting == PART_SENTENCES or (waiting and sentences[-1].attention):  # a map has many numbers
                    yield TextSentences(id, tuple(map(_without_pieces, sentences[sent:])))
                    sent = len(sentences)
                sentences.append(sentence)
            translation = task.translation(sentences)
        except Exception as error:
            yield _failed(id, error)
            return
        self._work += WorkCounts(
            source_tokens=sum(len(request.source) for request in task.requests),
            target_tokens=_tokens(translation),
        )
        whole = replace(_without_pieces(translation), sentences=tuple(map(_without_pieces, sentences[sent:])))
        if sum(len(alternative.text) for alternative in whole.alternatives) > PART_CHARACTERS:
            for alternative in whole.alternatives[:-1]:
                yield TextSentences(id, (), (alternative,))
            whole = replace(whole, alternatives=whole.alternatives[-1:])
        yield TextDone(id, whole)

    def _cancel(self, id: int) -> None:
        self._new.remove(id)
        if task := self._tasks.get(id):
            self._forget(task)
            self.translator.dispatcher.cancel([task])

    def _planner(self, message: Translate) -> TextPlanner:
        options, aligned = message.options, message.text.aligned
        key = options.digest, aligned, message.caller
        planner = self._planners.get(key)
        if planner is None:
            digest = blake2b(message.caller.encode("utf-8", "surrogatepass"), digest_size=7).digest()
            planner = self._planners[key] = self.translator.planner(
                source=options.direction.source,
                target=options.direction.target,
                options=options.search(self.translator.options),
                sentences=not options.split_sentences,
                terms=options.terms,
                explain=ExplainOptions(alignment=aligned, attention=options.attention),
                caller=int.from_bytes(digest, "big"),
            ).with_formality(options.formality)
        return planner


def _cache_size(planner: TextPlanner) -> int:
    terms = planner.context.terms
    return min(MAX_TERMS, MAX_TERMS // MAX_PLANNERS + len(terms.glossary) + len(terms.untranslated))


def _failed(id: int, error: Exception) -> TextFailed:
    if isinstance(error, MTError):
        return TextFailed(id, CannotTranslate.code, str(error))
    return TextFailed(id, InternalError.code, error_location(error))


def _without_pieces(translated: Translated) -> Translated:
    """Return a translation whose alternatives lack what no client gets, to keep the message small.

    These are their token pieces, and the words that the sentences list, too: up to 49,000 in a text.
    """
    return replace(
        translated,
        alternatives=tuple(
            replace(alternative, pieces=(), piece_log_probabilities=(), omitted=(), copied=())
            for alternative in translated.alternatives
        ),
    )


def _tokens(translation: Translation) -> int:
    return sum(len(sentence.alternatives[0].piece_log_probabilities) for sentence in translation.sentences)


def _load_consistently(setup: ModelSetup, load: Load) -> tuple[Translator, str]:
    """Load a model, and return it with its version. If a file changes meanwhile, load again, up to MAX_LOADS times.

    Raises: MTError if the model cannot be loaded, or its files change during every attempt.
    """
    for _ in range(MAX_LOADS):
        version = model_digest(setup.model)
        translator = load(setup)
        if model_digest(setup.model) == version:
            return translator, version
    raise ModelError(f"{setup.model}: files of the model changed during each of {MAX_LOADS} attempts to load it")


def _try_out(translator: Translator) -> None:
    """Translate TRIAL_TEXT in the first MAX_TRIALS directions. This also warms up the engine.

    Raises: ModelError if a trial translation fails.
    """
    directions = list(islice(translator.directions, MAX_TRIALS))
    tasks = [
        translator.planner(source=direction.source, target=direction.target).task(TRIAL_TEXT)
        for direction in directions
    ]
    translator.dispatcher.run(tasks)
    for direction, task in zip(directions, tasks, strict=True):
        problem = task.problem or ("" if math.isfinite(task.translation().score) else "its score is not a number")
        if problem:
            raise ModelError(
                f"{translator.description.name} cannot translate from {direction.source} to {direction.target}: "
                f"{problem}"
            )


def worker_devices(setup: ModelSetup, translator: Translator) -> tuple[str, ...]:
    """Return the device of each worker that the setup allows, with this worker's device first.

    If the model is on a GPU and the setup says "cuda" or "auto", there are workers on all GPUs; otherwise only on the
    device of the model. The first workers of all GPUs come before the second ones.
    """
    if not translator.device.startswith("cuda"):
        return (translator.device,)
    cuda = import_module("torch").cuda
    gpus: tuple[str, ...] = (translator.device,)
    if setup.device in ("auto", "cuda"):
        gpus = tuple(f"cuda:{number}" for number in range(cuda.device_count()))
    free, _ = cuda.mem_get_info(translator.device)  # asking for the others would open a context on each of them
    default = 2 if free >= SECOND_WORKER_BYTES else 1
    return gpus * (setup.workers_per_gpu or default)


def _why_no_gpu(setup: ModelSetup, translator: Translator) -> str:
    """Return why the model is on the CPU if the setup says "auto"; "" if it is on a GPU or the setup names a device."""
    if setup.device != "auto" or translator.device.startswith("cuda"):
        return ""
    reason = why_no_gpu() or why_no_kernel("cuda")
    hint = "; a container needs the option --gpus all of docker run" if "no NVIDIA driver" in reason else ""
    return reason + hint
