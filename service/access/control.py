"""Access control: API keys, requests per minute and characters per month."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network, ip_address

from service.access.api_keys import KEY_BEGINNING, ApiKey, find_key, is_valid
from service.access.database import Database
from service.access.rates import RequestRates
from service.access.usage import UsageLedger, month_of
from service.errors import InvalidKey, MissingKey, QuotaExceeded, TooManyRequests
from service.logs import current_record

KEY_PREFIX = "key:"  # prefix of the id of a caller with a key; no address begins with it
SUGGESTIONS_PER_DAY = 500  # limit for one caller
IPV6_PREFIX_LENGTH = 64  # a subscriber may use every address with the same first 64 bits


def is_anonymous(caller: str) -> bool:
    """Return whether `caller`, a `Caller.id`, is an address and not the id of an API key."""
    return not caller.startswith(KEY_PREFIX)


@dataclass(frozen=True)
class Caller:
    """The sender of a request. `id` is an address, or `key:` and the id of an API key, never the key itself."""

    id: str
    key: ApiKey | None = None


@dataclass
class Charge:
    """Numbers of charged characters.

    If the request fails, the characters that have not been delivered are refunded. If it succeeds, those that are free
    are refunded.
    """

    delivered: int = 0  # a route that sends its answer in one piece need not update it
    free: int = 0  # in texts that stay unchanged because no model translates their language


class AccessControl:
    """Access of callers: who they are, their request rates and their characters. Safe for concurrent requests."""

    def __init__(
        self,
        database: Database,
        require_key: bool = False,
        anonymous_rate: int | None = None,
        clock: Callable[[], float] = time.time,
        rate_clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`anonymous_rate` limits the requests per minute from an address without a key.

        `clock` returns seconds since 1970; `rate_clock` never goes back.
        """
        self._require_key = require_key
        self._anonymous_rate = anonymous_rate
        self._clock = clock
        self._database = database
        self._requests, self._suggestions = RequestRates(60, rate_clock), RequestRates(86_400, rate_clock)
        self._ledger = UsageLedger(database)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        """Write usage to the database in the background. When the context ends, write the usage that is left."""
        closing = asyncio.Event()
        writing = asyncio.create_task(self._ledger.write_until(closing))
        try:
            yield
        finally:
            closing.set()
            await writing

    async def admit(self, secret: str | None, address: str) -> Caller:
        """Count a request and return its caller. A caller is identified by the API key `secret`, or else by `address`.

        Raises:
            MissingKey: if the key is required and missing.
            InvalidKey: if the key is not valid.
            TooManyRequests: if the caller has sent too many requests in the last minute.
        """
        caller = await self._identify(secret, address)
        current_record().caller = caller.id
        rate = caller.key.rate if caller.key else self._anonymous_rate
        if rate is not None and (wait := self._requests.count(caller.id, rate)):
            raise TooManyRequests(f"{rate} per 1 minute", wait)
        return caller

    async def check_owner(self, owner: str) -> None:
        """Raise InvalidKey if `owner`, the `Caller.id` of an earlier request, has a key that is valid no more."""
        if is_anonymous(owner):
            return
        if not await is_valid(self._database, owner.removeprefix(KEY_PREFIX), self._clock()):
            raise InvalidKey("The API key that created this is revoked or expired")

    @asynccontextmanager
    async def charged(self, caller: Caller, characters: int) -> AsyncIterator[Charge]:
        """Add characters to this month's usage of the caller's key, if it has one. Refund some of them at the end.

        The code within the context updates the charge.

        Raises: QuotaExceeded if too little of the key's quota is left. Nothing is charged in this case.
        """
        charged_at, charge = self._clock(), Charge()
        current_record().characters += characters
        if caller.key is not None:
            month, quota = month_of(charged_at), caller.key.quota
            used = await self._ledger.used(caller.key.id, month)
            if quota is not None and used + characters > quota:
                raise QuotaExceeded(
                    f"Quota exceeded: {used} of {quota} characters are used this month, "
                    f"and the request has {characters}"
                )
            self._ledger.add(caller.key.id, month, characters)
        try:
            yield charge
        except BaseException:
            refund = self.refund(caller.id, charged_at, characters - charge.delivered)
            await asyncio.shield(refund)  # the deadline may end this call, too, or the client
            raise
        if charge.free:
            await asyncio.shield(self.refund(caller.id, charged_at, charge.free))

    async def refund(self, caller: str, charged_at: float, characters: int) -> None:
        """Refund characters to `caller`, a `Caller.id`. This or an earlier process charged them at `charged_at`."""
        if not is_anonymous(caller):
            key, month = caller.removeprefix(KEY_PREFIX), month_of(charged_at)
            await self._ledger.used(key, month)
            self._ledger.add(key, month, -characters)

    async def used(self, caller: Caller) -> int:
        """Return the characters that the caller's key has used this month; 0 for a caller without a key."""
        return await self._ledger.used(caller.key.id, month_of(self._clock())) if caller.key else 0

    def count_suggestion(self, caller: Caller) -> None:
        """Count a suggestion. Raises: TooManyRequests if the caller has sent too many suggestions within a day."""
        if wait := self._suggestions.count(caller.id, SUGGESTIONS_PER_DAY):
            raise TooManyRequests(f"{SUGGESTIONS_PER_DAY} per 1 day", wait)

    async def _identify(self, secret: str | None, address: str) -> Caller:
        if secret and (secret.startswith(KEY_BEGINNING) or self._require_key):
            key = await find_key(self._database, secret, address)
            if key is None or not key.valid(self._clock()):
                raise InvalidKey("Invalid API key")
            return Caller(f"{KEY_PREFIX}{key.id}", key)
        if self._require_key:
            raise MissingKey("Please contact the server operator to get an API key")
        # Some clients always send a key. A word that cannot be a key of this service counts as none.
        return Caller(caller_network(address))


@lru_cache(maxsize=1024)  # each request needs the network of its address several times
def caller_network(address: str) -> str:
    """Return the /64 network of an IPv6 address, an IPv4 address unchanged, or "unknown" if `address` is neither."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return "unknown"
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped:
        return str(parsed.ipv4_mapped)
    return str(IPv6Network((int(parsed), IPV6_PREFIX_LENGTH), strict=False))
