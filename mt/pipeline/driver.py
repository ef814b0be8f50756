"""Coroutines that await decoding and attention, without an event loop.

A coroutine suspends itself when it awaits an `EngineCall`. A `Routine` contains the coroutine and shows the call. The
user of the routine obtains the answer to the call, and resumes the coroutine with it.
"""

from collections.abc import Coroutine, Generator, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, TypeVar

from mt.engine.requests import Request, Result
from mt.scoring.attention import CrossAttention, Pair

T = TypeVar("T")


@dataclass(frozen=True)
class DecodeCall:
    """Awaitable for the results of requests. The results have the order of the requests."""

    requests: Sequence[Request]

    def __await__(self) -> Generator["DecodeCall", list[Result], list[Result]]:
        return (yield self) if self.requests else []


@dataclass(frozen=True)
class AttentionCall:
    """Awaitable for the cross-attention of a pair."""

    pair: Pair

    def __await__(self) -> Generator["AttentionCall", CrossAttention, CrossAttention]:
        return (yield self)


EngineCall = DecodeCall | AttentionCall

EngineAnswer = Sequence[Result] | CrossAttention | Exception  # to an engine call; an exception is raised at the call


class Routine(Generic[T]):
    """A coroutine that was started. `call` is the engine call that the coroutine awaits, or None if it has returned."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        """Start the coroutine. An exception that the coroutine raises before its first call is raised here."""
        self._coroutine = coroutine
        self._results: dict[int, Result] = {}
        self._value: T
        self.call: EngineCall | None = None
        self.resume(None)

    @property
    def done(self) -> bool:
        return self.call is None

    @property
    def value(self) -> T:
        """Return value of the coroutine, which must have returned."""
        assert self.call is None
        return self._value

    def add_result(self, result: Result) -> list[Result] | None:
        """Store a result of the current call. Return all results in order if the call has all of them, else None."""
        assert isinstance(self.call, DecodeCall)
        self._results[result.id] = result
        if len(self._results) < len(self.call.requests):
            return None
        return [self._results.pop(request.id) for request in self.call.requests]

    def resume(self, answer: EngineAnswer | None) -> None:
        """Continue the coroutine with the answer to the current call; None starts the coroutine.

        An exception that the coroutine does not catch is raised here.
        """
        run = self._coroutine
        try:
            self.call = run.throw(answer) if isinstance(answer, Exception) else run.send(answer)
        except StopIteration as stop:
            self.call, self._value = None, stop.value


async def gather(coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """Run coroutines side by side, and return their values in order. The searches that they await are one call."""
    routines = [Routine(coroutine) for coroutine in coroutines]
    while waiting := [one for one in routines if not one.done]:
        for routine in waiting:
            while isinstance(routine.call, AttentionCall):
                routine.resume(await routine.call)
        searches = [(one, one.call.requests) for one in waiting if isinstance(one.call, DecodeCall)]
        results = iter(await DecodeCall([request for _, requests in searches for request in requests]))
        for routine, requests in searches:
            routine.resume([*islice(results, len(requests))])
    return [routine.value for routine in routines]
