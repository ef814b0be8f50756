"""Stored translation memories. A memory belongs to one caller and translates from one language into another.

If a caller without a key stores a memory, everybody who knows its id can use it, as with glossaries. Such a memory
expires. The operator's memories can be used by every caller who knows their ids, but only the operator can read or
delete them.
"""

import asyncio
import sqlite3
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import filterfalse
from uuid import uuid4
from xml.sax.saxutils import escape

from mt.languages import Direction
from mt.text.fuzzy_match import MAX_FUZZY_SCORE, MemoryMatch, similarity, words
from service.access.control import KEY_PREFIX, is_anonymous
from service.access.database import Database
from service.access.eviction import ANONYMOUS, SpaceLimits, check_count, check_name, check_space
from service.errors import InvalidRequest, NotFound, StorageUnavailable, shorten
from service.fair_semaphore import FairSemaphore
from service.glossaries.store import glossary_direction
from service.memories.index import add, entry_count, similar_units
from service.memories.units import MAX_TEXT_LENGTH, MemoryUnit, clean_source, clean_unit, digest_of, unit_problem

OPERATOR = f"{KEY_PREFIX}operator"
"""Owner of the operator's memories. No caller has this id, because the ids of API keys are hexadecimal."""

SUGGESTIONS = "suggestions"  # name of the operator's memories of suggestions
UNIT_BYTES = 250  # bytes of a unit in addition to its texts and to new rows of the index
ROW_BYTES = 35  # bytes of a row of the index with one unit
SLICE = 1000  # units that one transaction stores or reads; transactions of other callers run in between
PART_BYTES = 65_536  # of units in TMX that one transaction reads: an answer to a slow reader holds them
TMX_BYTES = 100  # of a unit in TMX besides its texts
SLICE_ENTRIES = 10_000  # entries of the index that one transaction adds, in about 0.1 s
ENTRY_CHARACTERS = 100  # characters of a unit take as long as an entry
UNFINISHED_SECONDS = 3600.0  # from the last transaction of an interrupted upload to the deletion of its new memory
PURGED_ROWS = 5000  # rows that one transaction deletes
UPLOADS = 4  # files of more than SMALL_FILE whose units are in memory at a time: 200,000 units take 34 MB
SMALL_FILE = 100_000  # bytes
CLEANUP_SECONDS = 2.0  # time for the deletion of a refused upload, whose caller waits for the answer
LOOKUPS = 8  # sentences that one transaction looks up

_DELETED = f"{KEY_PREFIX}deleted"  # owner of deleted memories, until `_purge` has deleted all their units
_COLUMNS = "number, id, owner, name, source, target, created, updated, count"


@dataclass(frozen=True)
class Memory:
    """A translation memory without its units. Times are seconds since 1970."""

    number: int  # key in the database; `id` is for callers
    id: str
    owner: str
    name: str
    source: str
    target: str
    created: float
    updated: float
    units: int

    @property
    def direction(self) -> Direction:
        return Direction(self.source, self.target)


@dataclass(frozen=True, kw_only=True)
class MemoryLimits(SpaceLimits):
    """Limits of the stored translation memories."""

    memories: int = 100  # limit for one caller
    units: int = 200_000  # limit for one memory
    bytes_per_caller: int = 200_000_000
    bytes: int = 2_000_000_000
    anonymous_bytes: int = 100_000_000


class MemoryStore:
    """The translation memories of all callers.

    Methods raise NotFound if a memory does not exist or belongs to another caller, and InvalidRequest if a limit is
    exceeded.
    """

    def __init__(self, database: Database, limits: MemoryLimits) -> None:
        self.limits = limits
        self.uploads = FairSemaphore(UPLOADS)
        self._database = database

    async def put(self, owner: str, name: str, direction: Direction, units: Iterable[MemoryUnit]) -> Memory:
        """Add units to the caller's memory with this name and direction; create the memory if necessary.

        A caller without a key always gets a new memory. A new unit replaces the stored unit with the same source. Each
        transaction stores one of `slices`. The first one creates the memory, and the last one makes it visible. If a
        transaction is refused, `units` raises an error or the call is cancelled, a memory that is not visible yet is
        deleted. If the process ends, or the first transaction is cancelled too late, such a memory is deleted after
        UNFINISHED_SECONDS. Units with a `unit_problem` are left out.
        """

        def store(connection: sqlite3.Connection, id: str, part: Sequence[MemoryUnit], is_last: bool) -> Memory:
            id = id or find_or_create(connection, owner, name, direction, self.limits).id
            memory = add_units(connection, id, part, self.limits)
            if is_last:
                _show(connection, id)
            return memory

        parts = slices(units)
        id = ""
        part: list[MemoryUnit] | None = await asyncio.to_thread(next, parts, [])
        try:
            while part is not None:
                following = await asyncio.to_thread(next, parts, None)
                work = partial(store, id=id, part=part, is_last=following is None)
                memory = await self._database.write(work, owner)
                id, part = memory.id, following
        except BaseException:
            unfinished = partial(_mark_deleted, condition="id = ? AND NOT ready", values=(id,))
            with suppress(StorageUnavailable, TimeoutError):  # then it stays invisible; the next change purges it
                async with asyncio.timeout(CLEANUP_SECONDS):
                    if id:
                        await self._database.write(unfinished)
                    await self._purge(owner)
            raise
        await self._purge(owner)
        return memory

    async def get(self, owner: str, id: str) -> Memory:
        """Return the memory with this id, if the caller may read it."""
        return await self._database.read(lambda connection: _find(connection, owner, id), owner)

    async def owned(self, owner: str) -> list[Memory]:
        """Return the memories of a caller, the oldest first; an empty list if the caller has no key."""
        if is_anonymous(owner):
            return []
        return await self._database.read(lambda connection: list_owned(connection, owner), owner)

    async def delete(self, owner: str, id: str) -> None:
        def write(connection: sqlite3.Connection) -> None:
            _mark_deleted(connection, "id = ?", (_find(connection, owner, id).id,))

        await self._database.write(write, owner)
        await self._purge(owner)

    async def units(self, owner: str, id: str) -> AsyncIterator[Sequence[MemoryUnit]]:
        """Yield all units of a memory, the oldest first, in lists as `page` returns them.

        Raises: NotFound also if the memory is deleted meanwhile. An export that fails closes the connection without the
            final chunk, so that clients see an error.
        """
        memory, first = await self.get(owner, id), 0
        while part := await self.page(owner, memory, first):
            first += len(part)
            yield part
            del part

    async def page(self, owner: str, memory: Memory, first: int) -> Sequence[MemoryUnit]:
        """Return units of a memory, beginning with unit number `first`: up to SLICE units, and about PART_BYTES."""
        return await self._database.read(partial(read_units, id=memory.id, first=first), owner)

    async def check(self, caller: str, id: str, source: str | None, target: str) -> None:
        """Raise NotFound if the caller may not use the memory, InvalidRequest if it is not from `source` to `target`.

        `source` is None if the source language of the request is not known yet; then only `target` is compared.
        """
        memory = await self._database.read(lambda connection: _find_usable(connection, caller, id), caller)
        wanted = glossary_direction(source or memory.direction.source, target)
        if wanted != memory.direction:
            raise InvalidRequest.listing(f"the memory {shorten(id)} is for {memory.direction}, not for {wanted}")

    async def matches(
        self, caller: str, id: str, direction: Direction, sentences: Sequence[str], score: float
    ) -> list[MemoryMatch]:
        """Return the best match of each sentence. A sentence is left out if no match has a score of `score` or more.

        The list is empty if the memory does not exist, has a direction other than `direction`, or may not be used by
        the caller.
        """
        matches: list[MemoryMatch] = []
        wanted = glossary_direction(direction.source, direction.target)
        distinct = list(dict.fromkeys(sentences))

        def look_up(connection: sqlite3.Connection, slice: Sequence[str]) -> list[MemoryMatch]:
            try:
                memory = _find_usable(connection, caller, id)
            except NotFound:
                return []
            if memory.direction != wanted:
                return []
            return list(find_matches(connection, memory.number, slice, score))

        for begin in range(0, len(distinct), LOOKUPS):
            matches += await self._database.read(partial(look_up, slice=distinct[begin : begin + LOOKUPS]), caller)
        return matches

    async def _purge(self, owner: str) -> None:
        with suppress(StorageUnavailable):  # nobody finds what is marked as deleted; the next change purges it
            while await self._database.write(_purge, owner):
                pass


def find_or_create(
    connection: sqlite3.Connection, owner: str, name: str, direction: Direction, limits: MemoryLimits
) -> Memory:
    """Return the memory of `owner` with this name and direction. If there is none, create it.

    If `owner` is a caller without a key, always create a new memory. A new memory is invisible until `put` shows it, or
    until another call of this function returns it: then it has units of several uploads. First, delete what has
    expired: nobody sees an interrupted upload, and it counts as a memory of its owner.

    Raises: InvalidRequest if the name is not valid, or `owner` has too many memories.
    """
    check_name(name)
    now = time.time()
    expired = f"{ANONYMOUS} AND created <= ? OR NOT ready AND updated <= ?"
    _mark_deleted(connection, expired, (now - limits.anonymous_seconds, now - UNFINISHED_SECONDS))
    wanted = (owner, name, direction.source, direction.target)
    if not is_anonymous(owner):
        query = "SELECT id FROM memories WHERE owner = ? AND name = ? AND source = ? AND target = ?"
        if row := connection.execute(query, wanted).fetchone():
            _show(connection, *row)
            return _read(connection, *row)
    check_count(connection, "memories", owner, limits.memories)
    columns = "id, owner, name, source, target, created, updated, ready"
    insert = f"INSERT INTO memories ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, 0)"
    connection.execute(insert, (id := str(uuid4()), *wanted, now, now))
    return _read(connection, id)


def _show(connection: sqlite3.Connection, id: str) -> None:
    """Make a memory visible, once its first upload has ended."""
    connection.execute("UPDATE memories SET ready = 1 WHERE id = ?", (id,))


def slices(units: Iterable[MemoryUnit]) -> Iterator[list[MemoryUnit]]:
    """Divide units into parts for one transaction each: of up to SLICE units, and of about SLICE_ENTRIES entries."""
    part: list[MemoryUnit] = []
    entries = 0
    for unit in units:
        part.append(unit)
        entries += entry_count(clean_source(unit.source)) + sum(map(len, unit)) // ENTRY_CHARACTERS
        if len(part) >= SLICE or entries >= SLICE_ENTRIES:
            yield part
            part, entries = [], 0
    if part:
        yield part


def _find(connection: sqlite3.Connection, owner: str, id: str) -> Memory:
    """Return the memory with this id. Raises: NotFound if `owner` may not read and delete it."""
    return _select(connection, id, f"owner = ? OR {ANONYMOUS}", owner)


def _find_usable(connection: sqlite3.Connection, caller: str, id: str) -> Memory:
    """Return the memory with this id. Raises: NotFound if the caller may not use its matches in translations."""
    return _select(connection, id, f"owner IN (?, '{OPERATOR}') OR {ANONYMOUS}", caller)


def list_owned(connection: sqlite3.Connection, owner: str) -> list[Memory]:
    """Return the memories of an owner, the oldest first."""
    rows = connection.execute(f"SELECT {_COLUMNS} FROM memories WHERE owner = ? AND ready ORDER BY number", (owner,))
    return [Memory(*row) for row in rows]


def list_all(connection: sqlite3.Connection) -> list[Memory]:
    """Return all memories, the oldest first."""
    query = f"SELECT {_COLUMNS} FROM memories WHERE owner != ? AND ready ORDER BY number"
    rows = connection.execute(query, (_DELETED,))
    return [Memory(*row) for row in rows]


def add_units(connection: sqlite3.Connection, id: str, units: Iterable[MemoryUnit], limits: MemoryLimits) -> Memory:
    """Add units to the memory with this id, and return the memory. Units with a `unit_problem` are left out.

    A new unit replaces the stored unit with the same source.

    Raises: InvalidRequest if a limit of the memory or of its owner is exceeded; StorageFull if a limit that callers
        share is exceeded; NotFound if the memory has been deleted.
    """
    before = _read(connection, id)
    number, first = before.number, before.units
    new = {digest_of(unit.source): unit for unit in map(clean_unit, filterfalse(unit_problem, units))}
    marks = ",".join("?" * len(new))
    query = f"SELECT digest FROM memory_units WHERE memory = ? AND digest IN ({marks})"
    known = {digest for (digest,) in connection.execute(query, (number, *new))}
    connection.executemany(
        "UPDATE memory_units SET target = ? WHERE memory = ? AND digest = ?",
        ((unit.target, number, digest) for digest, unit in new.items() if digest in known),
    )
    added = {digest: unit for digest, unit in new.items() if digest not in known}
    connection.executemany(
        "INSERT INTO memory_units VALUES (?, ?, ?, ?, ?)",
        ((number, first + place, digest, *unit) for place, (digest, unit) in enumerate(added.items())),
    )
    rows = add(connection, number, first, (unit.source for unit in added.values()))
    size = ROW_BYTES * rows
    size += sum(UNIT_BYTES + len(unit.source.encode()) + len(unit.target.encode()) for unit in added.values())
    connection.execute(
        "UPDATE memories SET count = count + ?, bytes = bytes + ?, updated = ? WHERE number = ?",
        (len(added), size, time.time(), number),
    )
    memory = _read(connection, id)
    if memory.units > limits.units:
        raise InvalidRequest.listing(f"the memory would have {memory.units} units; accepted: at most {limits.units}")
    for evicted in check_space(connection, "memories", id, memory.owner, limits):
        _mark_deleted(connection, "id = ?", (evicted,))
    return memory


def read_units(connection: sqlite3.Connection, id: str, first: int) -> list[MemoryUnit]:
    """Return units of the memory with this id, beginning with unit `first`; none if it has no more.

    Their number is at most SLICE. The last one is that with which they have PART_BYTES or more. Raises: NotFound.
    """
    number, units, size = _read(connection, id).number, list[MemoryUnit](), 0
    query = "SELECT source, target FROM memory_units WHERE memory = ? AND number >= ? AND number < ? ORDER BY number"
    for row in connection.execute(query, (number, first, first + SLICE)):
        units.append(MemoryUnit(*row))
        size += TMX_BYTES + sum(len(escape(text).encode()) for text in row)
        if size >= PART_BYTES:
            break
    return units


def _mark_deleted(connection: sqlite3.Connection, condition: str, values: Sequence[int | float | str]) -> None:
    """Mark the memories with a condition as deleted. Call `_purge` afterwards to delete their units."""
    connection.execute(f"UPDATE memories SET owner = ?, bytes = 0 WHERE {condition}", (_DELETED, *values))


def _purge(connection: sqlite3.Connection) -> bool:
    """Delete a part of one memory that is marked as deleted. Return False if no such memory is left."""
    row = connection.execute("SELECT number FROM memories WHERE owner = ? LIMIT 1", (_DELETED,)).fetchone()
    if row is None:
        return False
    for table, column in (("memory_units", "number"), ("memory_words", "word"), ("memory_lengths", "block")):
        first = f"SELECT {column} FROM {table} WHERE memory = ? ORDER BY {column} LIMIT {PURGED_ROWS}"
        last = f"SELECT max({column}) FROM ({first})"
        if connection.execute(f"DELETE FROM {table} WHERE memory = ? AND {column} <= ({last})", row * 2).rowcount:
            return True
    connection.execute("DELETE FROM memories WHERE number = ?", row)
    return True


def find_matches(
    connection: sqlite3.Connection, number: int, sentences: Iterable[str], score: float
) -> Iterator[MemoryMatch]:
    """Yield, for each sentence, the best match in the memory `number` if the match's score is at least `score`."""
    for sentence in sentences:
        if len(sentence) > MAX_TEXT_LENGTH:  # no unit is so long
            continue
        text = clean_source(sentence)
        query = "SELECT source, target FROM memory_units WHERE memory = ? AND digest = ?"
        row = connection.execute(query, (number, digest_of(text))).fetchone()
        if row and row[0] == text:
            yield MemoryMatch(sentence, row[0], row[1], 1.0)
        elif score <= MAX_FUZZY_SCORE and (match := _fuzzy_match(connection, number, sentence, score)):
            yield match


def _fuzzy_match(connection: sqlite3.Connection, number: int, sentence: str, score: float) -> MemoryMatch | None:
    wanted = words(clean_source(sentence))
    candidates = similar_units(connection, number, wanted, score)
    marks = ",".join("?" * len(candidates))
    query = f"SELECT number, source, target FROM memory_units WHERE memory = ? AND number IN ({marks})"
    rows = connection.execute(query, (number, *(candidate for candidate, _ in candidates))).fetchall()
    units = {row[0]: row[1:] for row in rows}
    best: MemoryMatch | None = None
    for candidate, bound in candidates:
        if best and bound <= best.score:
            break
        source, target = units[candidate]
        reached = min(similarity(wanted, words(source)), MAX_FUZZY_SCORE)
        if reached >= score and (best is None or reached > best.score):
            best = MemoryMatch(sentence, source, target, reached)
    return best


def _select(connection: sqlite3.Connection, id: str, condition: str, owner: str) -> Memory:
    query = f"SELECT {_COLUMNS} FROM memories WHERE id = ? AND ready AND ({condition})"
    row = connection.execute(query, (id, owner)).fetchone()
    if row is None:
        raise NotFound(f"There is no translation memory {shorten(id)}")
    return Memory(*row)


def _read(connection: sqlite3.Connection, id: str) -> Memory:
    """Return the memory with this id. Raises: NotFound if another call has deleted it. A new one may get its number."""
    row = connection.execute(f"SELECT {_COLUMNS} FROM memories WHERE id = ? AND owner != ?", (id, _DELETED))
    if (values := row.fetchone()) is None:
        raise NotFound("The translation memory has been deleted")
    return Memory(*values)
