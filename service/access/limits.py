"""Who may ask, how often and how much: API keys, requests a minute, characters a month."""

import asyncio
import math
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import IPv6Address, IPv6Network, ip_address

import structlog
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from service.access.auth import Key, Keys
from service.access.store import Store
from service.errors import InvalidKey, QuotaExceeded, TooManyRequests
from service.logs import current_record

FLUSH_SECONDS = 0.5  # how much usage a kill -9 may lose
KEY = "key:"  # no address begins so
IPV6_NETWORK = 64  # bits: what one subscriber has, and changes addresses within at will


@dataclass(frozen=True)
class Caller:
    """Who asks. `id` is an address, or `key:` and the first characters of a key's hash: never the key."""

    id: str
    key: Key | None = None


@dataclass(frozen=True)
class Usage:
    """Characters of this month. Those who have no key are not counted."""

    characters: int
    limit: int | None


@dataclass(frozen=True)
class Policy:
    """What is asked of callers."""

    require_key: bool = False
    anonymous_rate: int | None = None  # requests a minute from an address without a key


class Access:
    """The door. `charge` neither waits between looking and writing nor lets two requests spend the same characters."""

    def __init__(self, store: Store, policy: Policy, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives seconds since 1970."""
        self._policy = policy
        self._clock = clock
        self._keys = Keys(store)
        self._rates = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._ledger = Ledger(store)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """While it is, usage is written behind; all of it has been when it ends."""
        closing = asyncio.Event()
        writing = asyncio.create_task(self._ledger.keep_writing(closing))
        try:
            yield
        finally:
            closing.set()
            await writing

    async def admit(self, secret: str | None, address: str) -> Caller:
        """Who asks, with this API key or from this address. Raises InvalidKey or TooManyRequests."""
        caller = await self._identify(secret, address)
        current_record().caller = caller.id
        rate = caller.key.rate if caller.key else self._policy.anonymous_rate
        if rate is not None:
            self._count(caller, rate)
        return caller

    @asynccontextmanager
    async def charged(self, caller: Caller, characters: int) -> AsyncIterator[None]:
        """`charge`, and the characters back if what is done within fails. Raises QuotaExceeded."""
        when = self._clock()
        await self.charge(caller, characters)
        try:
            yield
        except BaseException:
            await self.give_back(caller.id, when, characters)
            raise

    async def charge(self, caller: Caller, characters: int) -> None:
        """Count them for this month. Raises QuotaExceeded if they are too many; then none is counted."""
        current_record().characters += characters
        if caller.key is None:
            return
        month, quota = month_of(self._clock()), caller.key.quota
        spent = await self._ledger.spent(caller.key.id, month)
        if quota is not None and spent + characters > quota:
            raise QuotaExceeded(
                f"Quota exceeded: {spent} of {quota} characters are used this month, and the request has {characters}"
            )
        self._ledger.add(caller.key.id, month, characters)

    async def give_back(self, caller: str, when: float, characters: int) -> None:
        """What was charged to a `Caller.id` then, maybe by an earlier process, and not translated."""
        if caller.startswith(KEY):
            key, month = caller.removeprefix(KEY), month_of(when)
            await self._ledger.spent(key, month)
            self._ledger.add(key, month, -characters)

    async def usage(self, caller: Caller) -> Usage:
        if caller.key is None:
            return Usage(0, None)
        return Usage(await self._ledger.spent(caller.key.id, month_of(self._clock())), caller.key.quota)

    async def _identify(self, secret: str | None, address: str) -> Caller:
        if secret:
            key = await self._keys.find(secret)
            if key is not None and key.valid(self._clock()):
                return Caller(f"{KEY}{key.id}", key)
            if key is not None or self._policy.require_key or await self._keys.there_are_any():
                raise InvalidKey("Invalid API key")
            # a service without keys takes any: some clients cannot do without one
        elif self._policy.require_key:
            raise InvalidKey("Please contact the server operator to get an API key")
        return Caller(network(address))

    def _count(self, caller: Caller, rate: int) -> None:
        item = RateLimitItemPerMinute(rate)
        if not self._rates.hit(item, caller.id):
            wait = self._rates.get_window_stats(item, caller.id).reset_time - time.time()
            after = math.floor(max(wait, 0)) + 1  # just then is too early
            raise TooManyRequests(f"{rate} per 1 minute", after)


@dataclass
class _Page:
    """What one key has spent in one month."""

    written: int  # in the database, by this process and others
    pending: int = 0  # not there yet


class Ledger:
    """Characters spent, in memory and, a moment later, in the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._pages: dict[tuple[str, str], _Page] = {}

    async def spent(self, key: str, month: str) -> int:
        """By this key in this month; whoever adds to it before the next await knows that it still holds."""
        if (key, month) not in self._pages:
            written = await self._store.run(lambda connection: read_usage(connection, key, month))
            self._pages.setdefault((key, month), _Page(written))
        page = self._pages[key, month]
        return page.written + page.pending

    def add(self, key: str, month: str, characters: int) -> None:
        """After `spent`; may be negative."""
        page = self._pages.get((key, month))
        if page is not None:  # a month that has ended since is settled
            page.pending += characters

    async def write(self) -> None:
        """All that is pending. Other processes' usage comes to be known on the way."""
        amounts = {place: page.pending for place, page in self._pages.items() if page.pending}
        if not amounts:
            return
        totals = await self._store.run(lambda connection: _add(connection, amounts))
        for place, total in totals.items():
            page = self._pages[place]
            page.written, page.pending = total, page.pending - amounts[place]
        self._forget_other_months(max(month for _, month in self._pages))

    async def keep_writing(self, closing: asyncio.Event) -> None:
        """Until told to stop, and then once more. Never cancelled: what is half written would be written twice."""
        while not closing.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(closing.wait(), FLUSH_SECONDS)
            try:
                await self.write()
            except sqlite3.Error as error:  # a full disk, say: it stays pending
                structlog.get_logger().error("usage not written", problem=str(error))

    def _forget_other_months(self, current: str) -> None:
        for place, page in list(self._pages.items()):
            if place[1] != current and not page.pending:
                del self._pages[place]


def month_of(now: float) -> str:
    """`2026-11`, by UTC."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m")


def network(address: str) -> str:
    """An IPv4 address, or the network of an IPv6 one, within which one subscriber can take any."""
    try:
        found = ip_address(address)
    except ValueError:
        return "unknown"  # a proxy's invention, or a client of a test
    if not isinstance(found, IPv6Address):
        return str(found)
    if found.ipv4_mapped:
        return str(found.ipv4_mapped)
    return str(IPv6Network((int(found), IPV6_NETWORK), strict=False))


def read_usage(connection: sqlite3.Connection, key: str, month: str) -> int:
    """Characters that have been written."""
    row = connection.execute("SELECT characters FROM usage WHERE key = ? AND month = ?", (key, month)).fetchone()
    return int(row[0]) if row else 0


def _add(connection: sqlite3.Connection, amounts: Mapping[tuple[str, str], int]) -> dict[tuple[str, str], int]:
    """The totals afterwards; other processes add to them too."""
    totals = {}
    for (key, month), characters in amounts.items():
        row = connection.execute(
            "INSERT INTO usage VALUES (?, ?, max(?, 0)) "
            "ON CONFLICT DO UPDATE SET characters = max(characters + ?, 0) RETURNING characters",
            (key, month, characters, characters),
        ).fetchone()
        totals[key, month] = int(row[0])
    return totals
