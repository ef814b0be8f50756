"""Texts through the engine, whoever asked for them: one at a time, many, or a stream without end."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from time import monotonic

from mt.engine.attention import Pair, Weights
from mt.engine.messages import Request, Result
from mt.engine.plan import Plan, Sentence
from mt.engine.results import Failure, Translation
from mt.engine.sentence import Looks
from mt.engine.threads import AnyEngine

TOKENS_A_TEXT = 64
"""A chunk of a stream ends where its texts have this many source tokens on average, so that long ones fit in memory."""

SETTLING = 0.01
"""Seconds of a step after which what else has finished waits for the next one: to put back a number that a model lost
takes another pass through it, and a page of them must neither keep other callers waiting nor look like a worker that
hangs."""

LOOKS = 16  # sentences of one such pass


class Desk:
    """Hands the engine's results to the plans that wait for them, so that several callers can share it."""

    def __init__(self, engine: AnyEngine, attend: Callable[[Sequence[Pair]], list[Weights]]) -> None:
        self.engine = engine
        self._attend = attend
        self._waiting: dict[int, Plan] = {}  # by request
        self._results: deque[Result] = deque()  # that no plan has taken yet
        self._looking: dict[Plan, None] = {}  # those that want to see something, in turn

    @property
    def busy(self) -> bool:
        """Whether anything is yet to be done."""
        return self.engine.busy or bool(self._results or self._looking)

    def submit(self, plans: Iterable[Plan]) -> None:
        """Queue the sentences of these plans, the longest first, so that those of like length run together."""
        asked: list[tuple[Request, Plan]] = [(request, plan) for plan in plans for request in plan.requests]
        for request, plan in sorted(asked, key=lambda each: -len(each[0].source)):
            self._waiting[request.id] = plan
            self.engine.submit(request)

    def cancel(self, plans: Iterable[Plan]) -> None:
        """Forget what these plans still wait for."""
        plans = list(plans)
        for plan in plans:
            self._looking.pop(plan, None)
        ids = [request.id for plan in plans for request in plan.requests if self._waiting.pop(request.id, None)]
        if ids:
            self.engine.cancel(ids)

    def step(self) -> list[Plan]:
        """One step of the engine; the plans that are done. Where a sentence fails, the others are not waited for."""
        finished = []
        if self.engine.busy:
            self._results += self.engine.step()
        stop = monotonic() + SETTLING
        while self._results or self._looking:
            if not self._results:
                finished += self._look()
            else:
                result = self._results.popleft()
                if plan := self._waiting.pop(result.id, None):
                    finished += self._go_on(plan, plan.take(result))
            if monotonic() >= stop:
                break
        return finished

    def _look(self) -> list[Plan]:
        """Show plans, in turn, what some of their translations look at; those that are done with that."""
        chosen: list[tuple[Plan, Sentence, Looks]] = []
        while self._looking and len(chosen) < LOOKS:
            plan = next(iter(self._looking))
            del self._looking[plan]
            chosen.append((plan, *plan.looks.popleft()))
            if plan.looks:
                self._looking[plan] = None
        finished = []
        for (plan, sentence, _), seen in zip(chosen, self._seen([looks for _, _, looks in chosen]), strict=True):
            if not plan.problem:
                finished += self._go_on(plan, plan.see(sentence, seen))
        return finished

    def _seen(self, asked: Sequence[Looks]) -> Iterator[list[Weights] | Exception]:
        """The weights of each; where the model fails on all together, one at a time."""
        try:
            weights = iter(self._attend([pair for looks in asked for pair in looks.pairs]))
        except Exception as error:  # whatever a model can raise concerns the sentence to blame alone
            if len(asked) == 1:
                yield error
            else:
                for looks in asked:
                    yield from self._seen([looks])
        else:
            for looks in asked:
                yield list(islice(weights, len(looks.pairs)))

    def _go_on(self, plan: Plan, asked: Sequence[Request]) -> list[Plan]:
        """Hand on what a plan asks now; the plan, if it is done."""
        for request in asked:
            self._waiting[request.id] = plan
            self.engine.submit(request)
        if plan.looks:
            self._looking.setdefault(plan)
        if plan.problem:
            self.cancel([plan])
        return [plan] if plan.done else []

    def finish(self, plan: Plan) -> None:
        """Step until this plan, which was submitted, is done."""
        while not plan.done:
            assert self.busy
            self.step()

    def run(self, plans: list[Plan]) -> None:
        """Submit these and step until all are done. If that is interrupted, nothing of them is left behind."""
        try:
            self.submit(plans)
            for plan in plans:
                self.finish(plan)
        finally:
            self.cancel(plans)

    def stream(self, plans: Iterator[Plan], ahead: int) -> Iterator[Translation | Failure]:
        """The outcome of each plan, in order, while at most two chunks of `ahead` plans are held.

        The next chunk is in the engine before the last sentences of one are finished, so that it never runs dry; each
        is sorted by length by itself.
        """
        held: deque[Plan] = deque()
        chunks: deque[int] = deque()  # how many of them are of each chunk
        try:
            while True:
                while len(chunks) < 2 and (chunk := _chunk(plans, ahead)):
                    held.extend(chunk)
                    chunks.append(len(chunk))
                    self.submit(chunk)
                if not chunks:
                    return
                for _ in range(chunks[0]):
                    self.finish(held[0])
                    yield held.popleft().outcome()
                chunks.popleft()
        finally:
            self.cancel(held)


def _chunk(plans: Iterator[Plan], ahead: int) -> list[Plan]:
    """The next `ahead` plans, or fewer if they are long or there are no more."""
    chunk, tokens = [], 0
    for plan in plans:
        chunk.append(plan)
        tokens += sum(len(request.source) for request in plan.requests)
        if len(chunk) >= ahead or tokens >= TOKENS_A_TEXT * ahead:
            break
    return chunk
