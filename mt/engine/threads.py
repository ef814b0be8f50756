"""Several engines over one model, each in a thread of its own: for kernels that leave the interpreter's lock."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from weakref import finalize

from mt.engine.batches import Batch, Decoder
from mt.engine.engine import Engine
from mt.engine.messages import Request, Result
from mt.engine.scheduler import Limits

PATIENCE = 0.001
"""Seconds that a step waits for a result, so that its caller can submit and cancel in between."""

TOGETHER = 0.002
"""Seconds in which results are handed over together while more is to come: each time wakes the thread that waits, which
takes a core from those that decode."""

Order = Request | frozenset[int] | None
"""A request, requests to forget, or the end."""


@dataclass
class Hand:
    """An engine in a thread. `load` is a measure of what it has been given and not finished."""

    engine: Engine
    orders: SimpleQueue[Order] = field(default_factory=SimpleQueue)
    load: int = 0

    def work(self, answers: SimpleQueue[list[Result] | BaseException]) -> None:
        """The thread's life."""
        found: list[Result] = []
        due = 0.0
        try:
            while True:
                while not self.engine.busy or not self.orders.empty():
                    if found and not self.engine.busy:
                        answers.put(found)
                        found = []
                    order = self.orders.get()
                    if order is None:
                        return
                    if isinstance(order, frozenset):
                        self.engine.cancel(order)
                    else:
                        self.engine.submit(order)
                found += self.engine.step()
                if found and (now := monotonic()) >= due:
                    answers.put(found)
                    found, due = [], now + TOGETHER
        except BaseException as error:  # the caller's step raises it
            answers.put(error)


class EngineThreads:
    """An Engine to its caller; each request goes to the thread that has least to do. Owned by one thread itself."""

    def __init__(self, decoder: Decoder[Batch], limits: Limits, threads: int) -> None:
        self._answers: SimpleQueue[list[Result] | BaseException] = SimpleQueue()
        self._hands = [Hand(Engine(decoder, limits)) for _ in range(threads)]
        self._waiting: dict[int, tuple[Hand, int]] = {}  # who has it, and what it adds to his load
        self._death: BaseException | None = None  # what a thread died of
        for hand in self._hands:
            Thread(target=hand.work, args=(self._answers,), name="engine", daemon=True).start()
        finalize(self, _dismiss, self._hands)

    @property
    def busy(self) -> bool:
        """Whether anything waits or runs."""
        return bool(self._waiting)

    @property
    def steps(self) -> int:
        """Decoder steps so far, of all threads."""
        return sum(hand.engine.steps for hand in self._hands)

    @property
    def rows(self) -> int:
        """Decoder rows of all these steps."""
        return sum(hand.engine.rows for hand in self._hands)

    @property
    def rows_at_a_time(self) -> int:
        """Decoder rows that can run together."""
        return sum(hand.engine.rows_at_a_time for hand in self._hands)

    @property
    def marks(self) -> tuple[int, ...]:
        """The steps of each thread, or -1 for one with nothing to do: who looks again and again sees one that hangs."""
        return tuple(hand.engine.steps if hand.load else -1 for hand in self._hands)

    def submit(self, request: Request) -> None:
        """Queue a request; its result comes out of a later `step`."""
        hand = min(self._hands, key=lambda each: each.load)
        cost = len(request.source) * request.options.rows
        self._waiting[request.id] = (hand, cost)
        hand.load += cost
        hand.orders.put(request)

    def cancel(self, request_ids: Collection[int]) -> None:
        """Forget requests, waiting or in flight: no result will come."""
        gone: dict[int, list[int]] = {}
        for request_id in request_ids:
            if request_id in self._waiting:
                gone.setdefault(self._hands.index(self._settle(request_id)), []).append(request_id)
        for index, ids in gone.items():
            self._hands[index].orders.put(frozenset(ids))

    def step(self) -> list[Result]:
        """What finished since the last step, or soon after it. Raises what a thread died of, from then on each time."""
        found: list[Result] = []
        try:
            answer = self._answers.get(timeout=PATIENCE) if self._death is None else self._death
            while True:
                if isinstance(answer, BaseException):
                    self._death = answer
                    raise answer
                found += answer
                answer = self._answers.get_nowait()
        except Empty:
            pass
        wanted = [result for result in found if result.id in self._waiting]
        for result in wanted:
            self._settle(result.id)
        return wanted

    def drain(self) -> Iterator[Result]:
        """Step until nothing is left."""
        while self.busy:
            yield from self.step()

    def _settle(self, request_id: int) -> Hand:
        hand, cost = self._waiting.pop(request_id)
        hand.load -= cost
        return hand


AnyEngine = Engine | EngineThreads


def _dismiss(hands: Sequence[Hand]) -> None:
    for hand in hands:
        hand.orders.put(None)
