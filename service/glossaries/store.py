"""Stored glossaries. A glossary belongs to one caller and has a dictionary for each pair of languages.

A caller without a key is known only by its address, which many people may share. Therefore a glossary of such a caller
can be used by everybody who knows its id. The id cannot be guessed, no list contains the glossary, and the glossary
expires.
"""

import asyncio
import json
import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

from cachetools import LRUCache

from mt.languages import Direction, primary_language
from mt.text.terms import Terms
from service.access.control import is_anonymous
from service.access.database import Database
from service.access.eviction import ANONYMOUS, SpaceLimits, check_count, check_name, check_space
from service.errors import InvalidRequest, NotFound, shorten
from service.glossaries.entries import GlossaryEntry, check_entries, terms_of

MAX_CACHED_TERMS = 4_000_000  # characters of the compiled terms in the cache; compiling 10,000 terms takes 30 ms
_DECODER = json.JSONDecoder()
_OF_DIRECTION = "glossary = ? AND source = ? AND target = ?"
_UPDATE_BYTES = """UPDATE glossaries SET bytes = 1024 + (
    SELECT coalesce(sum(length(CAST(entries AS BLOB))), 0) FROM dictionaries WHERE glossary = :id
) WHERE id = :id"""  # a glossary without entries counts as 1024 bytes


def glossary_direction(source: str, target: str) -> Direction:
    """Return the direction of the dictionary for two languages.

    The direction has no regions, because a dictionary serves all regional variants of its languages.
    """
    return Direction(*("nb" if language == "no" else language for language in map(primary_language, (source, target))))


@dataclass(frozen=True)
class Dictionary:
    """The entries of a glossary for one pair of languages."""

    direction: Direction
    entries: tuple[GlossaryEntry, ...]


@dataclass(frozen=True)
class Glossary:
    """A glossary without its entries. `dictionaries` lists each pair of languages with its number of entries."""

    id: str
    name: str
    created: float  # seconds since 1970
    dictionaries: tuple[tuple[Direction, int], ...]


@dataclass(frozen=True, kw_only=True)
class GlossaryLimits(SpaceLimits):
    """Limits of the stored glossaries."""

    glossaries: int = 1000  # limit for one caller
    entries: int = 10_000  # limit for one glossary
    bytes_per_glossary: int = 2_000_000  # 200 for each of 10,000 entries; the time of a request grows with it
    bytes_per_caller: int = 20_000_000
    bytes: int = 200_000_000
    anonymous_bytes: int = 50_000_000


class NoDictionary(NotFound):
    """The glossary has no dictionary for these languages."""


class GlossaryStore:
    """The glossaries of all callers.

    Methods raise NotFound if a glossary does not exist or belongs to another caller, and InvalidRequest if a limit is
    exceeded.
    """

    def __init__(self, database: Database, limits: GlossaryLimits) -> None:
        self._database = database
        self._limits = limits
        # used in the database's thread only
        self._terms: LRUCache[tuple[str, ...], Terms] = LRUCache(MAX_CACHED_TERMS, getsizeof=_characters)

    async def create(self, owner: str, name: str, dictionaries: Sequence[Dictionary]) -> Glossary:
        check_name(name)

        def write(connection: sqlite3.Connection) -> Glossary:
            check_count(connection, "glossaries", owner, self._limits.glossaries)
            id = str(uuid4())  # 122 random bits of the operating system
            statement = "INSERT INTO glossaries (id, owner, name, created) VALUES (?, ?, ?, ?)"
            connection.execute(statement, (id, owner, name, time.time()))
            for dictionary in dictionaries:
                _merge(connection, id, dictionary)
            self._measure(connection, id)
            return _read(connection, owner, id)

        return await self._database.write(write, owner)

    async def update(self, owner: str, id: str, name: str | None, dictionaries: Sequence[Dictionary]) -> Glossary:
        """Rename a glossary unless `name` is None, and add entries. A new entry replaces one with the same term."""
        if name is not None:
            check_name(name)

        def write(connection: sqlite3.Connection) -> Glossary:
            _read(connection, owner, id)
            if name is not None:
                connection.execute("UPDATE glossaries SET name = ? WHERE id = ?", (name, id))
            for dictionary in dictionaries:
                _merge(connection, id, dictionary)
            self._measure(connection, id)
            return _read(connection, owner, id)

        return await self._database.write(write, owner)

    async def replace(self, owner: str, id: str, dictionary: Dictionary) -> None:
        """Add a dictionary, or replace the dictionary for the same languages."""

        def write(connection: sqlite3.Connection) -> None:
            _read(connection, owner, id)
            _write(connection, id, dictionary)
            self._measure(connection, id)

        await self._database.write(write, owner)

    async def get(self, owner: str, id: str) -> Glossary:
        return await self._database.read(lambda connection: _read(connection, owner, id), owner)

    async def owned(self, owner: str) -> list[Glossary]:
        """Return the glossaries of a caller, the oldest first; an empty list if the caller has no key."""
        if is_anonymous(owner):
            return []

        def read(connection: sqlite3.Connection) -> list[Glossary]:
            ids = connection.execute("SELECT id FROM glossaries WHERE owner = ? ORDER BY number", (owner,)).fetchall()
            return [_read(connection, owner, id) for (id,) in ids]

        return await self._database.read(read, owner)

    async def entries(self, owner: str, id: str, direction: Direction) -> tuple[GlossaryEntry, ...]:
        """Return the glossary's entries for one pair of languages. Raises: NoDictionary if there are none."""
        read = partial(_read_entries, owner=owner, id=id, direction=direction)
        return await asyncio.to_thread(_parse, await self._database.read(read, owner))

    async def delete(self, owner: str, id: str) -> None:
        def write(connection: sqlite3.Connection) -> None:
            _read(connection, owner, id)
            connection.execute("DELETE FROM glossaries WHERE id = ?", (id,))

        await self._database.write(write, owner)

    async def delete_dictionary(self, owner: str, id: str, direction: Direction) -> None:
        def write(connection: sqlite3.Connection) -> None:
            _read_entries(connection, owner, id, direction)
            connection.execute(f"DELETE FROM dictionaries WHERE {_OF_DIRECTION}", (id, *direction.languages))
            self._measure(connection, id)

        await self._database.write(write, owner)

    async def terms(self, owner: str, ids: Sequence[str], source: str, target: str) -> Terms:
        """Return the merged terms of the glossaries `ids`. If several contain a term, the first of them applies.

        Raises: NotFound for an unknown glossary; InvalidRequest if a glossary has no dictionary for the languages, or
            there are too many terms.
        """
        direction = glossary_direction(source, target)

        def read(connection: sqlite3.Connection) -> Terms:
            try:
                entries = tuple(_read_entries(connection, owner, id, direction) for id in ids)
            except NoDictionary as error:
                raise InvalidRequest(f"No dictionary found for language pair: {error.message}") from error
            terms = self._terms.get(entries)
            if terms is None:
                terms = terms_of(dict(entry for listed in reversed(entries) for entry in _parse(listed)))
                if _characters(terms) <= MAX_CACHED_TERMS:
                    self._terms[entries] = terms
            return terms

        return await self._database.read(read, owner)

    def _measure(self, connection: sqlite3.Connection, id: str) -> None:
        """Store the size of a changed glossary in bytes, and check all limits.

        Raises: InvalidRequest if a limit of the glossary is exceeded, and the errors of `check_space`.
        """
        query = "SELECT coalesce(sum(count), 0) FROM dictionaries WHERE glossary = ?"
        (entries,) = connection.execute(query, (id,)).fetchone()
        check_entries(entries, self._limits.entries)
        owner, bytes = connection.execute(f"{_UPDATE_BYTES} RETURNING owner, bytes", {"id": id}).fetchone()
        if bytes > (limit := self._limits.bytes_per_glossary):
            raise InvalidRequest.listing(f"the glossary would have {bytes} bytes; accepted: at most {limit}")
        expired = time.time() - self._limits.anonymous_seconds
        connection.execute(f"DELETE FROM glossaries WHERE {ANONYMOUS} AND created <= ?", (expired,))
        ids = check_space(connection, "glossaries", id, owner, self._limits)
        connection.executemany("DELETE FROM glossaries WHERE id = ?", [(id,) for id in ids])


def _read(connection: sqlite3.Connection, owner: str, id: str) -> Glossary:
    query = f"SELECT name, created FROM glossaries WHERE id = ? AND (owner = ? OR {ANONYMOUS})"
    row = connection.execute(query, (id, owner)).fetchone()
    if row is None:
        raise NotFound(f"There is no glossary {shorten(id)}")
    query = "SELECT source, target, count FROM dictionaries WHERE glossary = ? ORDER BY rowid"
    rows = connection.execute(query, (id,)).fetchall()
    return Glossary(id, row[0], row[1], tuple((Direction(source, target), count) for source, target, count in rows))


def _select(connection: sqlite3.Connection, id: str, direction: Direction) -> str | None:
    """Return the entries of a dictionary as the JSON that `_dump` wrote; None if there is no such dictionary."""
    query = f"SELECT entries FROM dictionaries WHERE {_OF_DIRECTION}"
    row = connection.execute(query, (id, direction.source, direction.target)).fetchone()
    return None if row is None else str(row[0])


def _read_entries(connection: sqlite3.Connection, owner: str, id: str, direction: Direction) -> str:
    """Return the entries of a caller's dictionary as JSON.

    Raises: NotFound if the caller cannot use the glossary `id`, NoDictionary if it has no dictionary for `direction`.
    """
    _read(connection, owner, id)
    entries = _select(connection, id, direction)
    if entries is None:
        languages = f"from {direction.source} to {direction.target}"
        raise NoDictionary(f"The glossary {shorten(id)} has no dictionary {languages}")
    return entries


def _parse(entries: str) -> tuple[GlossaryEntry, ...]:
    """Return the entries in the JSON that `_dump` wrote; parse them one by one, so that other threads can run."""
    parsed: list[GlossaryEntry] = []
    end = entries.find("[") + 1
    while entries[end : end + 1] not in ("]", ""):
        (term, translation), end = _DECODER.raw_decode(entries, end)
        parsed.append((term, translation))
        end += len(", ") if entries[end : end + 1] == "," else 0
    return tuple(parsed)


def _dump(entries: Iterable[GlossaryEntry]) -> str:
    """Return entries as JSON: a list of pairs [term, translation]."""
    return "[" + ", ".join(json.dumps(entry, ensure_ascii=False) for entry in entries) + "]"


def _characters(terms: Terms) -> int:
    return sum(len(term) + len(translation) for term, translation in terms.glossary)


def _merge(connection: sqlite3.Connection, id: str, dictionary: Dictionary) -> None:
    entries = dict((*_parse(_select(connection, id, dictionary.direction) or "[]"), *dictionary.entries))
    _write(connection, id, Dictionary(dictionary.direction, tuple(entries.items())))


def _write(connection: sqlite3.Connection, id: str, dictionary: Dictionary) -> None:
    update = "ON CONFLICT DO UPDATE SET count = excluded.count, entries = excluded.entries"
    row = (id, *dictionary.direction.languages, len(dictionary.entries), _dump(dictionary.entries))
    connection.execute(f"INSERT INTO dictionaries VALUES (?, ?, ?, ?, ?) {update}", row)
