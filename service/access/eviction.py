"""Limits of what callers store: names, numbers, and bytes; selection of the items to delete from a full store."""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from sqlite3 import Connection

from service.access.control import KEY_PREFIX, is_anonymous
from service.errors import InvalidRequest, StorageFull

MAX_NAME_LENGTH = 500  # characters
ANONYMOUS = f"owner NOT LIKE '{KEY_PREFIX}%'"
"""SQL condition for the rows of callers without a key."""


@dataclass(frozen=True, kw_only=True)
class SpaceLimits:
    """Limits of a table, in bytes, and the time after which a row of a caller without a key is deleted."""

    bytes_per_caller: int
    bytes: int  # limit for all callers with a key together
    anonymous_bytes: int  # limit for all callers without a key; `evicted` selects rows to delete
    anonymous_seconds: float = 7 * 86_400.0


def check_name(name: str) -> None:
    """Raise InvalidRequest if a glossary or a memory cannot have this name."""
    if not name.strip() or len(name) > MAX_NAME_LENGTH:
        raise InvalidRequest.listing(f"name must have 1 to {MAX_NAME_LENGTH} characters")


def check_count(connection: Connection, table: str, owner: str, limit: int) -> None:
    """Raise InvalidRequest if `owner` has `limit` rows of the table `table` and may not add another one."""
    (count,) = connection.execute(f"SELECT count(*) FROM {table} WHERE owner = ?", (owner,)).fetchone()
    if count >= limit:
        raise InvalidRequest.listing(f"{count} {table} are stored already; accepted: at most {limit}. Delete one first")


def check_space(connection: Connection, table: str, id: str, owner: str, limits: SpaceLimits) -> list[str]:
    """Check the limits of the table `table` after a change of the row `id` of `owner`.

    All callers without a key share one limit. If it is exceeded, return the ids of older rows to delete, otherwise [].

    Raises: InvalidRequest if the limit of the owner is exceeded; StorageFull if a limit that callers share is exceeded.
    """

    def total(condition: str, *values: str) -> int:
        query = f"SELECT coalesce(sum(bytes), 0) FROM {table} WHERE {condition}"
        return int(connection.execute(query, values).fetchone()[0])

    size = total("owner = ?", owner)
    if size > limits.bytes_per_caller:
        limit = limits.bytes_per_caller
        raise InvalidRequest.listing(f"your {table} would have {size} bytes; accepted: at most {limit}")
    if not is_anonymous(owner):
        if total(f"NOT {ANONYMOUS}") > limits.bytes:
            raise StorageFull
        return []
    excess = total(ANONYMOUS) - limits.anonymous_bytes
    if excess <= 0:
        return []
    ids = list(
        evicted(connection.execute(f"SELECT id, owner, bytes FROM {table} WHERE {ANONYMOUS} ORDER BY number"), excess)
    )
    if id in ids:
        raise StorageFull
    return ids


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
