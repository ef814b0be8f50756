"""Queue that serves its callers in turns."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class TurnQueue(Generic[K, V]):
    """Queue of values with unique keys. Callers take turns, and the values of one caller keep their order."""

    def __init__(self) -> None:
        self._queues: OrderedDict[Hashable, OrderedDict[K, V]] = OrderedDict()  # by caller, the next caller first
        self._callers: dict[K, Hashable] = {}

    def __len__(self) -> int:
        return len(self._callers)

    def __contains__(self, key: K) -> bool:
        return key in self._callers

    def put(self, caller: Hashable, key: K, value: V) -> None:
        """Append a value to the queue of a caller."""
        assert key not in self._callers
        self._queues.setdefault(caller, OrderedDict())[key] = value
        self._callers[key] = caller

    def pop(self) -> tuple[K, V]:
        """Remove and return the first value of the next caller, with its key. The queue must not be empty."""
        caller, queue = self._queues.popitem(last=False)
        key, value = queue.popitem(last=False)
        del self._callers[key]
        if queue:
            self._queues[caller] = queue
        return key, value

    def put_back(self, caller: Hashable, key: K, value: V) -> None:
        """Put back a value that `pop` returned, as the first value of its caller.

        The next turn of this caller comes after those of the other callers.
        """
        self.put(caller, key, value)
        self._queues[caller].move_to_end(key, last=False)

    def remove(self, key: K) -> V | None:
        """Remove and return the value with this key. Return None if the queue does not contain the key."""
        if key not in self._callers:
            return None
        caller = self._callers.pop(key)
        queue = self._queues[caller]
        value = queue.pop(key)
        if not queue:
            del self._queues[caller]
        return value
