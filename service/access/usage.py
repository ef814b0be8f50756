"""Characters that API keys have used in each month: counted in memory, and written to the database a moment later."""

import asyncio
import sqlite3
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from service.access.database import Database
from service.errors import StorageUnavailable

FLUSH_SECONDS = 0.5  # time between two writes; kill -9 loses at most the usage of this time
CLOSING_SECONDS = 3.0  # time for further attempts at the end; less than LAST_ANSWERS_SECONDS of service/signals.py
RETRY_SECONDS = 0.1  # time between these attempts


@dataclass
class _MonthlyUsage:
    """Characters of one key in one month."""

    written: int  # characters in the database, added by this process and others
    read: float  # when they were read, by time.monotonic()
    pending: int = 0  # characters that are not yet in the database


class UsageLedger:
    """Counts of the characters that each key uses in each month, which are written to the database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._months: dict[tuple[str, str], _MonthlyUsage] = {}  # by key and month
        self._writes = 0  # beginnings and ends of writes; odd during a write

    async def used(self, key: str, month: str) -> int:
        """Return the number of characters that a key has used in a month, in other processes until FLUSH_SECONDS ago.

        The number is valid until the calling coroutine's next `await`.
        """
        usage, now, writes = self._months.get((key, month)), time.monotonic(), self._writes
        if usage is None or usage.read < now - FLUSH_SECONDS:
            written = await self._database.read(lambda connection: read_usage(connection, key, month), key)
            usage = self._months.setdefault((key, month), _MonthlyUsage(written, now))
            if writes == self._writes and writes % 2 == 0:  # `written` has none of the pending characters
                usage.written, usage.read = written, now
        return usage.written + usage.pending

    def add(self, key: str, month: str, characters: int) -> None:
        """Add `characters`, which may be negative, to a key's usage. First call `used` for the same key and month."""
        usage = self._months.get((key, month))
        if usage is not None:  # None if the month has ended, and all of its usage is written
            usage.pending += characters

    async def write(self) -> None:
        """Write the characters that the database does not contain yet, and read the totals over all processes."""
        amounts = self._pending()
        if not amounts:
            return
        begun, self._writes = time.monotonic(), self._writes + 1
        try:
            totals = await self._database.write(lambda connection: _add(connection, amounts))
        finally:
            self._writes += 1
        for place, total in totals.items():
            usage = self._months[place]
            usage.written, usage.read, usage.pending = total, begun, usage.pending - amounts[place]
        latest = max(month for _, month in self._months)
        self._months = {place: usage for place, usage in self._months.items() if place[1] == latest or usage.pending}

    async def write_until(self, closing: asyncio.Event) -> None:
        """Call `write` every FLUSH_SECONDS until `closing` is set, then until all usage is written or lost.

        Do not cancel this coroutine: the characters of an interrupted write would be counted twice.
        """
        while not closing.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(closing.wait(), FLUSH_SECONDS)
            await self._try_to_write()
        end = time.monotonic() + CLOSING_SECONDS
        while (pending := self._pending()) and time.monotonic() < end:
            await asyncio.sleep(RETRY_SECONDS)
            await self._try_to_write()
        if pending:
            structlog.get_logger().error("usage lost", characters=sum(map(abs, pending.values())), keys=len(pending))

    async def _try_to_write(self) -> None:
        with suppress(sqlite3.Error, StorageUnavailable):  # after an error, the characters stay pending
            await self.write()

    def _pending(self) -> dict[tuple[str, str], int]:
        return {place: usage.pending for place, usage in self._months.items() if usage.pending}


def month_of(seconds: float) -> str:
    """Return the month, such as `2026-11`, of a time in seconds since 1970, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m")


def read_usage(connection: sqlite3.Connection, key: str, month: str) -> int:
    """Return the number of characters that the database records for a key and a month."""
    row = connection.execute("SELECT characters FROM usage WHERE key = ? AND month = ?", (key, month)).fetchone()
    return int(row[0]) if row else 0


def _add(connection: sqlite3.Connection, amounts: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    """Add `amounts` (characters by key and month) to the database. Return the totals over all processes."""
    totals = {}
    for (key, month), characters in amounts.items():
        row = connection.execute(
            "INSERT INTO usage VALUES (?, ?, max(?, 0)) "
            "ON CONFLICT DO UPDATE SET characters = max(characters + ?, 0) RETURNING characters",
            (key, month, characters, characters),
        ).fetchone()
        totals[key, month] = int(row[0])
    return totals
