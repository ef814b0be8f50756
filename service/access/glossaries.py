"""Glossaries that callers keep here: each belongs to one caller, and holds a dictionary for each pair of languages."""

import csv
import io
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple
from uuid import uuid4

from cachetools import LRUCache

from mt.errors import RequestError
from mt.text.terms import LONGEST_TERM, Terms
from service.access.store import Store
from service.errors import InvalidRequest, NotFound, shown

MAX_NAME = 500  # characters
MOST_TERMS_KEPT = 16  # of translations; to make 10,000 takes 30 ms
_LISTED = 10  # problems that one message names
_REGIONAL = {"no": "nb", "pb": "pt", "zt": "zh"}
_OF_PAIR = "glossary = ? AND source = ? AND target = ?"
_LINE_BREAKS = frozenset("\u2028\u2029")

Entry = tuple[str, str]


class EntriesFormat(StrEnum):
    TSV = "tsv"
    CSV = "csv"


class Pair(NamedTuple):
    """Languages of a dictionary. A glossary is for a language and all of its regional variants."""

    source: str
    target: str

    @classmethod
    def of(cls, source: str, target: str) -> "Pair":
        return cls(_REGIONAL.get(source, source), _REGIONAL.get(target, target))


@dataclass(frozen=True)
class Dictionary:
    pair: Pair
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class Glossary:
    """A glossary without its entries: `dictionaries` are pairs of languages, and how many entries each has."""

    id: str
    name: str
    created: float  # seconds since 1970
    dictionaries: tuple[tuple[Pair, int], ...]


@dataclass(frozen=True)
class GlossaryLimits:
    """How many glossaries a caller may keep, and how many entries each may have."""

    glossaries: int = 1000
    entries: int = 10_000


class Glossaries:
    """Raises NotFound for what is not there or belongs to somebody else, and InvalidRequest for what breaks a limit."""

    def __init__(self, store: Store, limits: GlossaryLimits) -> None:
        self._store = store
        self._limits = limits
        self._terms: LRUCache[tuple[str, ...], Terms] = LRUCache(MOST_TERMS_KEPT)  # used in the store's thread only

    async def create(self, owner: str, name: str, dictionaries: Sequence[Dictionary]) -> Glossary:
        _check_name(name)

        def write(connection: sqlite3.Connection) -> Glossary:
            (kept,) = connection.execute("SELECT count(*) FROM glossaries WHERE owner = ?", (owner,)).fetchone()
            if kept >= self._limits.glossaries:
                most = self._limits.glossaries
                raise InvalidRequest.listing([f"there are {kept} glossaries; accepted: at most {most}"])
            id = str(uuid4())
            made = "INSERT INTO glossaries (id, owner, name, created) VALUES (?, ?, ?, ?)"
            connection.execute(made, (id, owner, name, time.time()))
            for dictionary in dictionaries:
                _merge(connection, id, dictionary)
            self._check_size(connection, id)
            return _read(connection, owner, id)

        return await self._store.run(write)

    async def update(self, owner: str, id: str, name: str | None, dictionaries: Sequence[Dictionary]) -> Glossary:
        """Give it a name, if not None; and add the entries, in place of those that have the same terms."""
        if name is not None:
            _check_name(name)

        def write(connection: sqlite3.Connection) -> Glossary:
            _read(connection, owner, id)
            if name is not None:
                connection.execute("UPDATE glossaries SET name = ? WHERE id = ?", (name, id))
            for dictionary in dictionaries:
                _merge(connection, id, dictionary)
            self._check_size(connection, id)
            return _read(connection, owner, id)

        return await self._store.run(write)

    async def replace(self, owner: str, id: str, dictionary: Dictionary) -> None:
        """Put a dictionary in the place of the one for the same languages, if there is one."""

        def write(connection: sqlite3.Connection) -> None:
            _read(connection, owner, id)
            _write(connection, id, dictionary)
            self._check_size(connection, id)

        await self._store.run(write)

    async def get(self, owner: str, id: str) -> Glossary:
        return await self._store.run(lambda connection: _read(connection, owner, id))

    async def owned(self, owner: str) -> list[Glossary]:
        """The oldest first."""

        def read(connection: sqlite3.Connection) -> list[Glossary]:
            ids = connection.execute("SELECT id FROM glossaries WHERE owner = ? ORDER BY number", (owner,)).fetchall()
            return [_read(connection, owner, id) for (id,) in ids]

        return await self._store.run(read)

    async def entries(self, owner: str, id: str, pair: Pair) -> tuple[Entry, ...]:
        """Of the dictionary for these languages."""

        return await self._store.run(lambda connection: _entries(_kept(connection, owner, id, pair)))

    async def delete(self, owner: str, id: str) -> None:
        def write(connection: sqlite3.Connection) -> None:
            _read(connection, owner, id)
            connection.execute("DELETE FROM glossaries WHERE id = ?", (id,))

        await self._store.run(write)

    async def delete_dictionary(self, owner: str, id: str, pair: Pair) -> None:
        def write(connection: sqlite3.Connection) -> None:
            _kept(connection, owner, id, pair)
            connection.execute(f"DELETE FROM dictionaries WHERE {_OF_PAIR}", (id, *pair))

        await self._store.run(write)

    async def terms(self, owner: str, ids: Sequence[str], source: str, target: str) -> Terms:
        """For a translation with these glossaries; where they differ about a term, the first one holds."""
        pair = Pair.of(source, target)

        def read(connection: sqlite3.Connection) -> Terms:
            kept = tuple(_kept(connection, owner, id, pair) for id in ids)
            if kept not in self._terms:
                self._terms[kept] = _merged(kept)
            return self._terms[kept]

        return await self._store.run(read)

    def _check_size(self, connection: sqlite3.Connection, id: str) -> None:
        (size,) = connection.execute("SELECT sum(count) FROM dictionaries WHERE glossary = ?", (id,)).fetchone()
        if (size or 0) > self._limits.entries:
            raise InvalidRequest.listing([f"the glossary would have {size} entries of at most {self._limits.entries}"])


def _check_name(name: str) -> None:
    if not name.strip() or len(name) > MAX_NAME:
        raise InvalidRequest.listing([f"name must have from 1 to {MAX_NAME} characters"])


def _read(connection: sqlite3.Connection, owner: str, id: str) -> Glossary:
    found = connection.execute("SELECT name, created FROM glossaries WHERE id = ? AND owner = ?", (id, owner))
    row = found.fetchone()
    if row is None:
        raise NotFound(f"There is no glossary {shown(id)}")
    held = connection.execute(
        "SELECT source, target, count FROM dictionaries WHERE glossary = ? ORDER BY rowid", (id,)
    ).fetchall()
    return Glossary(id, row[0], row[1], tuple((Pair(source, target), count) for source, target, count in held))


def _kept(connection: sqlite3.Connection, owner: str, id: str, pair: Pair) -> str:
    """The entries of a dictionary, as they are written in the database. Raises NotFound."""
    _read(connection, owner, id)
    row = connection.execute(f"SELECT entries FROM dictionaries WHERE {_OF_PAIR}", (id, *pair)).fetchone()
    if row is None:
        raise NotFound(f"The glossary {shown(id)} has no dictionary from {pair.source} to {pair.target}")
    return str(row[0])


def _entries(kept: str) -> tuple[Entry, ...]:
    return tuple((term, translation) for term, translation in json.loads(kept))


def _merged(kept: Sequence[str]) -> Terms:
    """Raises InvalidRequest if they are too many."""
    merged: dict[str, str] = {}
    for each in kept:
        merged = dict(_entries(each)) | merged
    try:
        return Terms(glossary=tuple(merged.items()))
    except RequestError as error:
        raise InvalidRequest(str(error)) from error


def _merge(connection: sqlite3.Connection, id: str, dictionary: Dictionary) -> None:
    row = connection.execute(f"SELECT entries FROM dictionaries WHERE {_OF_PAIR}", (id, *dictionary.pair)).fetchone()
    known = _entries(row[0]) if row else ()
    _write(connection, id, Dictionary(dictionary.pair, tuple(dict((*known, *dictionary.entries)).items())))


def _write(connection: sqlite3.Connection, id: str, dictionary: Dictionary) -> None:
    count, entries = len(dictionary.entries), json.dumps(dictionary.entries, ensure_ascii=False)
    connection.execute(
        "INSERT INTO dictionaries VALUES (?, ?, ?, ?, ?) "
        "ON CONFLICT DO UPDATE SET count = excluded.count, entries = excluded.entries",
        (id, *dictionary.pair, count, entries),
    )


def parse_entries(text: str, format: EntriesFormat) -> tuple[Entry, ...]:
    """(term, translation) of each line; empty lines are passed over. Raises InvalidRequest, which names the lines.

    CSV may quote, and may say the languages in a third and a fourth column. TSV takes quotation marks for what they
    are: so do those who write it.
    """
    found: dict[str, tuple[str, int]] = {}
    wrong: list[str] = []
    for line, row in _rows(text.removeprefix("\ufeff"), format, wrong):
        fields = [field.strip() for field in row]
        problem = _problem(fields, format)
        if not problem and fields[0] in found:
            problem = f"{shown(fields[0])!r} is on line {found[fields[0]][1]} already"
        if problem:
            wrong.append(f"line {line}: {problem}")
        else:
            found[fields[0]] = fields[1], line
    if wrong:
        more = [f"and {len(wrong) - _LISTED} lines more"] if len(wrong) > _LISTED else []
        raise InvalidRequest.listing(["entries cannot be used", *wrong[:_LISTED], *more])
    if not found:
        raise InvalidRequest.listing(["entries must not be empty"])
    return tuple((term, translation) for term, (translation, _) in found.items())


def _rows(text: str, format: EntriesFormat, wrong: list[str]) -> Iterator[tuple[int, list[str]]]:
    """The rows that are not empty, each with its line. Where the text cannot be read further, `wrong` says so."""
    lines = io.StringIO(text, newline="")
    tsv = format is EntriesFormat.TSV
    reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE) if tsv else csv.reader(lines, strict=True)
    try:
        for row in reader:
            if any(field.strip() for field in row):
                yield reader.line_num, row
    except csv.Error as error:
        wrong.append(f"line {reader.line_num}: {error}")


def _problem(fields: Sequence[str], format: EntriesFormat) -> str:
    """What is wrong with a row, or nothing."""
    separator, widths = ("tab", (2,)) if format is EntriesFormat.TSV else ("comma", (2, 4))
    if len(fields) == 1:
        return f"no {separator} between a term and its translation"
    if len(fields) not in widths:
        return f"more than one {separator}"
    for name, value in zip(("term", "translation"), fields, strict=False):
        if not value:
            return f"the {name} is empty"
        if any(_is_control(character) for character in value):
            return f"the {name} has a control character"
        if len(value) > LONGEST_TERM:
            return f"the {name} has more than {LONGEST_TERM} characters"
    if not any(map(str.isalnum, fields[1])):
        return "the translation is no word"
    return ""


def _is_control(character: str) -> bool:
    return character < " " or "\x7f" <= character <= "\x9f" or character in _LINE_BREAKS


def write_entries(entries: Iterable[Entry]) -> str:
    """TSV, without a line break at its end."""
    return "\n".join(f"{term}\t{translation}" for term, translation in entries)
