"""Selection of the items to delete from a full store."""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush


def evicted(stored: Iterable[tuple[str, str, int]], excess: int) -> Iterator[str]:
    """Yield the ids of the items to delete, so that at least `excess` bytes become free.

    Repeatedly choose the owner whose remaining items have the most bytes, and yield the id of this owner's oldest item.
    `stored` contains (id, owner, bytes) of all items, the oldest first.
    """
    items: dict[str, deque[tuple[str, int]]] = defaultdict(deque)
    for id, owner, size in stored:
        items[owner].append((id, size))
    largest: list[tuple[int, str]] = []
    for owner, entries in items.items():
        heappush(largest, (-sum(size for _, size in entries), owner))
    while excess > 0 and largest:
        total, owner = heappop(largest)
        id, size = items[owner].popleft()
        excess -= size
        yield id
        if items[owner]:
            heappush(largest, (total + size, owner))
