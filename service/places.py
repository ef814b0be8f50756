"""Limit of the number of pieces of work that run at a time."""

import asyncio
from collections import Counter, OrderedDict, deque


class Places:
    """Places for work: each piece of work that runs holds a place, and their number is limited.

    Callers take turns. If there are several places, no caller can hold all of them.
    """

    def __init__(self, places: int) -> None:
        self._free, self._most = places, max(1, places - 1)
        self._held = Counter[str]()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def acquire(self, caller: str) -> None:
        """Wait for a place. The requests of one caller keep their order."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        self._assign()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.release(caller)
            raise

    def release(self, caller: str) -> None:
        """Release a place that a caller has acquired."""
        self._free += 1
        self._held -= Counter([caller])
        self._assign()

    def _assign(self) -> None:
        """Assign free places to the callers that have waited longest, and to the oldest request of each."""
        for caller in list(self._waiting):
            turns = self._waiting[caller]
            while turns and turns[0].done():  # cancelled
                turns.popleft()
            if turns and self._free and self._held[caller] < self._most:
                self._free -= 1
                self._held[caller] += 1
                turns.popleft().set_result(None)
                self._waiting.move_to_end(caller)
            if not turns:
                del self._waiting[caller]
