"""Quarantine for the texts of crashed workers: a search for the text that causes the crashes."""

from collections import OrderedDict, deque
from collections.abc import Sequence

from cachetools import TTLCache

from service.workers.messages import Translate

SPLIT_GROUPS = 8  # a group that crashes its worker is divided into this many groups
MAX_CRASHES = 2  # a text is blocked after it has crashed this many workers that had no other text
MAX_SUSPECTS = 4096  # suspected texts that are remembered
SUSPECT_SECONDS = 3600  # time after its last crash for which a text is remembered


class Quarantine:
    """Queue of the groups of suspected texts. One isolated worker translates one group at a time and nothing else.

    A group that crashes the isolated worker is divided into smaller groups. A text that has crashed MAX_CRASHES workers
    which had no other text is blocked: it fails without another attempt, also in later requests.
    """

    def __init__(self) -> None:
        # By text key: number of workers that crashed while they had only this text.
        self._crashes: TTLCache[bytes, int] = TTLCache(MAX_SUSPECTS, SUSPECT_SECONDS)
        self._groups: deque[OrderedDict[int, Translate]] = deque()  # by text id

    def __len__(self) -> int:
        """Return the number of texts that wait for the isolated worker."""
        return sum(map(len, self._groups))

    def suspects(self, message: Translate) -> bool:
        """Return whether a worker has crashed while it had this text, and the text has not been answered since."""
        return bool(self._crashes) and message.key in self._crashes

    def blocks(self, message: Translate) -> bool:
        """Return whether the text has crashed MAX_CRASHES workers that had no other text."""
        return bool(self._crashes) and self._crashes.get(message.key, 0) >= MAX_CRASHES

    def record_crash(self, messages: Sequence[Translate], isolated: bool) -> None:
        """Record the texts of a crashed worker as suspected, and queue those that are not blocked.

        The texts form one group. If the worker was the isolated worker (`isolated`), they form several smaller groups.
        """
        for message in messages:
            self._crashes[message.key] = self._crashes.pop(message.key, 0) + (len(messages) == 1)
        suspects = [message for message in messages if not self.blocks(message)]
        self.add(suspects, groups=SPLIT_GROUPS if isolated else 1)

    def add(self, messages: Sequence[Translate], groups: int = 1) -> None:
        """Divide texts into at most `groups` groups of about equal size, and queue the groups."""
        size = max(1, -(-len(messages) // groups))
        for begin in range(0, len(messages), size):
            self._groups.append(OrderedDict((message.id, message) for message in messages[begin : begin + size]))

    def clear(self, message: Translate) -> None:
        """Remove the suspicion from a text that has been answered."""
        if self._crashes:
            self._crashes.pop(message.key, None)

    def discard(self, id: int) -> None:
        """Remove a withdrawn text from its group. The text stays suspected."""
        for group in [group for group in self._groups if id in group]:
            del group[id]
            if not group:
                self._groups.remove(group)

    def next_group(self) -> list[Translate]:
        """Remove the oldest group from the queue and return its texts."""
        return list(self._groups.popleft().values())

    def inherit(self, other: "Quarantine") -> None:
        """Copy the recorded crashes from `other`, the quarantine of the pool that is being replaced."""
        self._crashes.update(other._crashes)
