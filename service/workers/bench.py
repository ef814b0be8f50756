"""The worker's whole life, wherever it runs: load a model, try it, translate until told to stop.

It hears and speaks in messages alone (messages.py); what carries them is the concern of process.py, or of thread.py.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2b

import torch

from mt.engine.plan import Plan, Planner
from mt.engine.results import Translation
from mt.engine.translator import Translator
from mt.errors import ModelError, MTError
from service.errors import CannotTranslate, DeadlineExceeded, InternalError, where
from service.languages import Direction
from service.workers.messages import (
    Ask,
    Cancel,
    Close,
    Done,
    Failed,
    FromWorker,
    Order,
    Pulse,
    Ready,
    Refused,
    Setup,
    ToWorker,
    Translate,
    Work,
)
from service.workers.versions import version_of

Load = Callable[[Setup], Translator]
Receive = Callable[[bool], Sequence[ToWorker]]
"""The messages that have come; waits for one if the argument is true."""
Deliver = Callable[[Sequence[FromWorker]], None]

CANARY = "The cat sat on the mat."
PLANNING = 0.01  # seconds that texts are taken apart before those in work get their next step
PLANNERS = 64  # that are kept: texts of one request share one
LOADS = 3  # attempts, where files change while they are read


def work(setup: Setup, load: Load, receive: Receive, deliver: Deliver) -> None:
    """Until told to stop. New texts join between two decoder steps."""
    try:
        translator, version = _settled(setup, load)
        _try_out(translator)
    except MTError as error:
        deliver([Refused(str(error))])
        return
    directions = tuple(map(Direction.of, translator.directions))
    capacity = max(1, translator.engine.rows_at_a_time // translator.options.rows)
    devices, no_gpu = _devices(setup, translator), _why_no_gpu(setup, translator)
    deliver([Ready(directions, translator.options, version, devices, capacity, no_gpu)])
    bench = Bench(translator)
    while not bench.closed:
        if answers := [*bench.take(receive(not bench.busy)), *bench.begin()]:
            deliver(answers)
        if answers := bench.step():
            deliver(answers)
    deliver([bench.pulse()])


def load(setup: Setup) -> Translator:
    """The model of a directory, which may then change, or vanish, without harm. Raises MTError."""
    translator = Translator.load(setup.model, setup.device, setup.dtype, setup.threads, shortlist=setup.shortlist)
    for parameter in translator.model.parameters():
        parameter.data = parameter.data.clone()  # the loader maps the file, and who writes into it would crash us
    return translator


class Bench:
    """The worker's state: a translator, the texts that it works on, and those that it has not begun."""

    def __init__(self, translator: Translator) -> None:
        self.translator = translator
        self.closed = False
        self._arrivals: OrderedDict[int, Translate] = OrderedDict()
        self._ids: dict[Plan, int] = {}  # of the messages that brought the texts
        self._plans: dict[int, Plan] = {}
        self._done = Work(steps=-translator.engine.steps, rows=-translator.engine.rows)  # the canary's do not count
        self._planner = lru_cache(maxsize=PLANNERS)(self._make_planner)

    @property
    def busy(self) -> bool:
        return bool(self._arrivals) or self.translator.desk.busy

    def pulse(self) -> Pulse:
        """How it is now."""
        engine = self.translator.engine
        working = len(self._arrivals) + len(self._ids)
        return Pulse(self._done + Work(steps=engine.steps, rows=engine.rows), working, engine.marks)

    def take(self, messages: Sequence[ToWorker]) -> list[FromWorker]:
        """Act on messages; what can be answered at once."""
        answers: list[FromWorker] = []
        for message in messages:
            match message:
                case Translate():
                    self._arrivals[message.id] = message
                case Cancel(ids):
                    self._forget(ids)
                case Ask():
                    answers.append(self.pulse())
                case Close():
                    self.closed = True
        return answers

    def begin(self) -> list[FromWorker]:
        """Take new texts apart, for a short time, and hand them to the engine; those that are done or fail at once."""
        answers: list[FromWorker] = []
        begun: list[Plan] = []
        stop = time.monotonic() + PLANNING
        while self._arrivals and (now := time.monotonic()) < stop:
            id, message = self._arrivals.popitem(last=False)
            if message.deadline is not None and now >= message.deadline:
                answers.append(Failed(id, DeadlineExceeded.code, ""))
                continue
            plan = self._plan(message)
            if isinstance(plan, Failed):
                answers.append(plan)
            elif plan.done:  # there is nothing in it to translate
                answers.append(self._finish(plan, id))
            else:
                self._ids[plan], self._plans[id] = id, plan
                begun.append(plan)
        self.translator.desk.submit(begun)
        return answers

    def step(self) -> list[FromWorker]:
        """One decoder step; what it finished."""
        if not self.translator.desk.busy:
            return []
        answers = []
        for plan in self.translator.desk.step():
            id = self._ids.pop(plan)
            del self._plans[id]
            answers.append(self._finish(plan, id))
        return answers

    def _plan(self, message: Translate) -> Plan | Failed:
        try:
            return self._planner(message.order).plan(message.text.text, kept=message.text.kept)
        except MTError as error:
            return Failed(message.id, CannotTranslate.code, str(error))
        except Exception as error:  # whatever a tokenizer can raise concerns this text alone
            return Failed(message.id, InternalError.code, where(error))

    def _finish(self, plan: Plan, id: int) -> FromWorker:
        try:
            translation = plan.translation()
        except MTError as error:
            return Failed(id, CannotTranslate.code, str(error))
        except Exception as error:
            return Failed(id, InternalError.code, where(error))
        self._done += Work(
            texts=1,
            source_tokens=sum(len(request.source) for request in plan.requests),
            target_tokens=_tokens(translation),
        )
        return Done(id, translation)

    def _forget(self, ids: Sequence[int]) -> None:
        for id in ids:
            self._arrivals.pop(id, None)
        gone = [plan for id in ids if (plan := self._plans.pop(id, None))]
        self.translator.desk.cancel(gone)
        for plan in gone:
            del self._ids[plan]

    def _make_planner(self, order: Order) -> Planner:
        planner = self.translator.planner(
            source=order.direction.source,
            target=order.direction.target,
            options=order.options,
            sentences=order.sentences,
            terms=order.terms,
            insight=order.insight,
        )
        number = int.from_bytes(blake2b(order.caller.encode("utf-8", "surrogatepass"), digest_size=7).digest(), "big")
        return replace(planner, caller=number)


def _tokens(translation: Translation) -> int:
    return sum(len(each.alternatives[0].piece_log_probabilities) for each in translation.sentences)


def _settled(setup: Setup, load: Load) -> tuple[Translator, str]:
    """A model and its version. Raises MTError."""
    for _ in range(LOADS):
        version = version_of(setup.model)
        translator = load(setup)
        if version_of(setup.model) == version:
            return translator, version
    raise ModelError(f"{setup.model}: its files change while they are read; accepted: files that stay as they are")


def _try_out(translator: Translator) -> None:
    """Translate something of each direction, all at a time, which also warms up. Raises ModelError."""
    known = dict.fromkeys(map(Direction.of, translator.directions), CANARY)
    plans = [translator.planner(source=source, target=target).plan(text) for (source, target), text in known.items()]
    translator.desk.run(plans)
    for direction, plan in zip(known, plans, strict=True):
        problem = plan.problem or ("" if math.isfinite(plan.translation().score) else "its score is no number")
        if problem:
            raise ModelError(
                f"{translator.description.name} cannot translate from {direction.source} to {direction.target}: "
                f"{problem}; accepted: a model that can"
            )


def _devices(setup: Setup, translator: Translator) -> tuple[str, ...]:
    """All GPUs, where none is named."""
    device = next(translator.model.parameters()).device
    if device.type == "cuda" and setup.device in ("auto", "cuda"):
        return tuple(f"cuda:{number}" for number in range(torch.cuda.device_count()))
    return (str(device),)


def _why_no_gpu(setup: Setup, translator: Translator) -> str:
    """Nothing where there is one, or where none was looked for."""
    if setup.device != "auto" or next(translator.model.parameters()).device.type == "cuda":
        return ""
    if torch.version.cuda is None:
        return f"torch {torch.__version__} is built for CPUs alone"
    return "no NVIDIA driver or no GPU was found; a container is given them by --gpus all"
