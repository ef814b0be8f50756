"""The workers of one model: which texts go to which of them and when, and what becomes of those whose worker dies."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from pathlib import Path

import structlog

from mt.decoding.options import SearchOptions
from mt.errors import ModelError
from service.errors import CannotTranslate, DeadlineExceeded, InternalError, shown
from service.languages import Direction
from service.workers.calls import Call, Ticket
from service.workers.messages import Done, Failed, Ready, Stopped, Work
from service.workers.transport import Transport
from service.workers.worker import Patience, Post, Worker, WorkerDied

AHEAD = 4  # times as many sentences as are decoded at a time: what a worker is given of one caller
PARTS = 8  # into which suspects that killed again are divided
GUILTY = 2  # deaths of a worker that worked on this text alone
SUSPECTS = 4096  # texts that are remembered
HOPELESS = 3  # failed attempts to start a worker, after which nothing more is accepted

Hire = Callable[[Path, str], Transport]
"""A worker for a model directory, on a device."""


class Team:
    """One worker for each device. The model stays the same: a team with the new one takes the place of this.

    A worker is given no more of one caller than keeps it busy for a while; the engine is fair between callers. What a
    worker that dies was given is tried again, apart from all else, and in parts if that kills again, until it is known
    which text does: it fails, and all others are translated.
    """

    def __init__(
        self, model: Path, device: str, hire: Hire, patience: Patience, changed: Callable[["Team"], None]
    ) -> None:
        """`changed` is called where a new worker finds another model in the directory."""
        self.model = model
        self.posts: list[Post] = []
        self.calls: set[Call] = set()
        self.translated = self.failed = 0  # texts
        self.done = asyncio.Event()  # whether it has retired and nothing is left to do
        self._device = device
        self._hire = hire
        self._patience = patience
        self._changed = changed
        self._ready: Ready
        self._queues: dict[str, OrderedDict[Ticket, None]] = {}  # by caller
        self._parties: deque[OrderedDict[Ticket, None]] = deque()  # suspects, to be tried apart
        self._suspects: OrderedDict[bytes, int] = OrderedDict()  # by a text's key: deaths of workers alone with it
        self._successor: Team | None = None

    async def open(self) -> None:
        """One worker on the device, or one on each that the setup allows. Raises ModelError."""
        try:
            self._ready = await self._post(self._device).open()
            await asyncio.gather(*(self._post(device).open() for device in self._ready.devices[1:]))
        except WorkerDied as error:
            raise ModelError(f"{self.model}: {error}; accepted: a model that fits this machine") from error
        log = structlog.get_logger()
        log.info("loaded", model=self.model.name, version=self.version, devices=list(self._ready.devices))
        if self._ready.no_gpu:
            log.info("no GPU: the CPU translates", why=self._ready.no_gpu)

    async def close(self) -> None:
        await asyncio.gather(*(post.close() for post in self.posts))

    @property
    def directions(self) -> tuple[Direction, ...]:
        return self._ready.directions

    @property
    def options(self) -> SearchOptions:
        return self._ready.options

    @property
    def version(self) -> str:
        return self._ready.version

    @property
    def capacity(self) -> int:
        """Sentences that a worker decodes at a time."""
        return self._ready.capacity

    @property
    def workers(self) -> list[Worker]:
        """Those that are ready."""
        return [post.worker for post in self.posts if post.worker]

    @property
    def ready(self) -> bool:
        return bool(self.workers)

    @property
    def hopeless(self) -> bool:
        return all(post.worker is None and post.failures >= HOPELESS for post in self.posts)

    @property
    def queued(self) -> int:
        """Texts that no worker has."""
        return sum(map(len, self._queues.values())) + sum(map(len, self._parties))

    @property
    def running(self) -> int:
        """Texts that a worker has."""
        return sum(len(worker.flight) for worker in self.workers)

    @property
    def work(self) -> Work:
        return sum((post.work for post in self.posts), Work())

    def submit(self, call: Call) -> None:
        call.begin(self.forget)
        self.calls.add(call)
        for ticket in call.left.values():
            known = self._suspects.get(ticket.key) if self._suspects else None
            if known is None:
                self._queues.setdefault(ticket.caller, OrderedDict())[ticket] = None
            elif known < GUILTY:
                self._parties.append(OrderedDict([(ticket, None)]))
            else:
                call.fail(_guilty(ticket))
        self.pump()

    def forget(self, call: Call) -> None:
        """Nobody waits for it any more, or it is done."""
        self.calls.discard(call)
        for ticket in call.left.values():
            if ticket.holder:
                ticket.holder.take_back(ticket)
            else:
                self._unqueue(ticket)
        self.pump()
        self._look_whether_done()

    def retire(self, successor: "Team") -> None:
        """Finish what there is, and take nothing new. What cannot be finished here begins again there."""
        self._successor = successor
        if not self.ready:
            self._hand_over(successor)
        self._look_whether_done()

    def pump(self) -> None:
        """Give the workers what they have room for."""
        workers = self.workers
        judge = self._judge(workers)
        if judge and self._parties and not judge.flight:
            judge.on_trial = True
            for ticket in self._parties.popleft():
                judge.give(ticket)
        self._hand_out([worker for worker in workers if worker is not judge])
        for worker in workers:
            worker.flush()

    def answered(self, worker: Worker, answers: Sequence[Done | Failed]) -> None:
        for answer in answers:
            ticket = worker.release(answer.id)
            if ticket is None:
                continue
            if self._suspects:
                self._suspects.pop(ticket.key, None)
            if isinstance(answer, Done):
                self.translated += 1
                ticket.call.take(ticket, answer.translation)
            else:
                self.failed += 1
                del ticket.call.left[ticket.place]
                ticket.call.fail(_failure(answer))
        self.pump()

    def ended(self, worker: Worker, last: Stopped) -> None:
        """What it was given is suspected; what it was given apart from all else, the more so."""
        at_work = [post.vacate(worker, self._successor is None) for post in self.posts]
        if not last.problem or not any(at_work):
            return
        left = [ticket for id in list(worker.flight) if (ticket := worker.release(id))]
        log = structlog.get_logger()
        told = {"model": self.model.name, "where": last.problem, "texts": len(left)}
        if last.blames:
            log.error("worker died", on_trial=worker.on_trial, **told)
            self._suspect(left, worker.on_trial)
        else:
            log.info("worker ended", **told)
            for ticket in left:
                self._queues.setdefault(ticket.caller, OrderedDict())[ticket] = None
        if self._successor and not self.ready:
            self._hand_over(self._successor)
            self._look_whether_done()
        self.pump()

    def _suspect(self, left: Sequence[Ticket], on_trial: bool) -> None:
        """One of these has killed a worker, if it was not something else."""
        for ticket in left:
            self._suspects[ticket.key] = self._suspects.pop(ticket.key, 0) + (len(left) == 1)
        while len(self._suspects) > SUSPECTS:
            self._suspects.popitem(last=False)
        if len(left) == 1 and self._suspects[left[0].key] >= GUILTY:
            self.failed += 1
            left[0].call.fail(_guilty(left[0]))
            left = []
        size = max(1, -(-len(left) // PARTS)) if on_trial else max(1, len(left))
        for begin in range(0, len(left), size):
            self._parties.append(OrderedDict.fromkeys(left[begin : begin + size]))

    def _hand_out(self, workers: Sequence[Worker]) -> None:
        """Each ticket to the worker that has least to do, as far as they have room for its caller."""
        room = AHEAD * self.capacity
        for caller, queue in list(self._queues.items()) if workers else []:
            while queue:
                ticket = next(iter(queue))
                free = [each for each in workers if not each.held[caller] or each.held[caller] + ticket.cost <= room]
                if not free:
                    break
                del queue[ticket]
                min(free, key=lambda each: each.load).give(ticket)
            if not queue:
                del self._queues[caller]

    def _judge(self, workers: Sequence[Worker]) -> Worker | None:
        """Who tries suspects, or gets nothing more to do until that can begin."""
        for worker in workers:
            worker.on_trial = worker.on_trial and bool(worker.flight)
        trying = next((worker for worker in workers if worker.on_trial), None)
        if trying or not self._parties:
            return trying
        return min(workers, key=lambda worker: worker.load, default=None)

    def _unqueue(self, ticket: Ticket) -> None:
        queue = self._queues.get(ticket.caller)
        if queue is not None and ticket in queue:
            del queue[ticket]
            if not queue:
                del self._queues[ticket.caller]
            return
        for party in [party for party in self._parties if ticket in party]:
            del party[ticket]
            if not party:
                self._parties.remove(party)

    def _hand_over(self, successor: "Team") -> None:
        successor._suspects.update(self._suspects)
        for call in list(self.calls):
            self.forget(call)
            successor.submit(call)

    def _look_whether_done(self) -> None:
        if self._successor and not self.calls:
            self.done.set()

    def _post(self, device: str) -> Post:
        def hire() -> Worker:
            return Worker(self._hire(self.model, device), self._patience, self)

        self.posts.append(Post(hire, self._manned))
        return self.posts[-1]

    def _manned(self, ready: Ready) -> bool:
        """Once the new worker has its place, there is work for it."""
        if ready.version != self.version:
            self._changed(self)
            return False
        asyncio.get_running_loop().call_soon(self.pump)
        return True


def _failure(answer: Failed) -> Exception:
    if answer.code == CannotTranslate.code:
        return CannotTranslate(answer.message)
    return DeadlineExceeded() if answer.code == DeadlineExceeded.code else InternalError(answer.message)


def _guilty(ticket: Ticket) -> CannotTranslate:
    return CannotTranslate(
        f"the text that begins {shown(ticket.text.text)!r} cannot be translated: the model's process ends in it"
    )
