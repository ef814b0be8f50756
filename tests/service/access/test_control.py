"""Rates and quotas: what the gate lets through, and what is left of it after a restart."""

import asyncio
import sqlite3
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from service.access.api_keys import ApiKey, make_key, revoke_key
from service.access.control import AccessControl, Caller, caller_network
from service.access.database import Database, DatabaseWork
from service.access.rates import RequestRates
from service.access.usage import CLOSING_SECONDS, FLUSH_SECONDS, UsageLedger, month_of, read_usage
from service.errors import InvalidKey, MissingKey, QuotaExceeded, TooManyRequests

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[3]
NOVEMBER = 1_795_000_000.0  # 2026-11-18
DECEMBER = NOVEMBER + 20 * 86_400


@dataclass
class Clock:
    now: float = NOVEMBER

    def time(self) -> float:
        return self.now


@pytest.fixture
def access(database: Database) -> AccessControl:
    return AccessControl(database)


def made(database: Database, **wanted: Any) -> tuple[str, ApiKey]:
    return database.run_sync(lambda connection: make_key(connection, **{"name": "wiki"} | wanted))


async def refusals(access: AccessControl, secret: str | None, address: str, times: int) -> list[int]:
    """Of so many requests, for each that is refused, after how many seconds to come again."""
    found = []
    for _ in range(times):
        try:
            await access.admit(secret, address)
        except TooManyRequests as error:
            found.append(int(error.headers["Retry-After"]))
    return found


async def pay(access: AccessControl, caller: Caller, characters: int) -> None:
    async with access.charged(caller, characters):
        pass


def written(database: Database, key: ApiKey) -> int:
    return database.run_sync(lambda connection: read_usage(connection, key.id, month_of(time.time())))


@pytest.mark.parametrize(
    ("known_as", "addresses"),
    [
        ("192.0.2.7", ("192.0.2.7", "::ffff:192.0.2.7")),
        ("2001:db8:1:2::/64", ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::")),
        ("unknown", ("", "testclient", "x" * 1000)),
    ],
)
def test_addresses(known_as: str, addresses: tuple[str, ...]) -> None:
    assert {caller_network(address) for address in addresses} == {known_as}


@pytest.mark.parametrize(("require", "keys"), [(False, False), (False, True), (True, True), (True, False)])
async def test_who_is_let_in(database: Database, require: bool, keys: bool) -> None:
    if keys:
        made(database)
    access = AccessControl(database, require_key=require)

    async def outcome(secret: str | None) -> str:
        try:
            return (await access.admit(secret, "192.0.2.7")).id
        except (InvalidKey, MissingKey) as error:
            return error.message

    nobody = await outcome(None)
    assert await outcome("") == nobody
    assert nobody == ("Please contact the server operator to get an API key" if require else "192.0.2.7")
    assert await outcome("mt_wrong") == "Invalid API key"
    for word in ("any", "279a2e9d-83b3-c416-7e2d-f721593e42a0:fx", "MT_wrong", "0", "ключ"):
        assert await outcome(word) == ("Invalid API key" if require else "192.0.2.7")


async def test_keys_that_are_no_longer_valid(database: Database) -> None:
    clock = Clock()
    access = AccessControl(database, clock=clock.time)
    secret, key = made(database, expires=NOVEMBER + 10)
    caller = await access.admit(secret, "192.0.2.7")
    assert caller == Caller(f"key:{key.id}", key)
    clock.now += 10
    with pytest.raises(InvalidKey, match=r"^Invalid API key$"):
        await access.admit(secret, "")
    secret, key = made(database, name="mail")
    assert (await access.admit(secret, "")).key == key
    database.run_sync(lambda connection: revoke_key(connection, "mail"))
    with pytest.raises(InvalidKey):
        await access.admit(secret, "")


async def test_each_caller_has_a_rate_of_its_own(database: Database) -> None:
    clock = Clock()
    access = AccessControl(database, anonymous_rate=3, rate_clock=clock.time)
    slow, fast, free = (made(database, name=str(rate), rate=rate)[0] for rate in (2, 4, None))
    for _ in range(2):  # it does not matter who comes first
        clock.now += 1000
        assert len(await refusals(access, None, "192.0.2.7", 10)) == 7
        assert len(await refusals(access, None, "192.0.2.8", 10)) == 7
        both = [await refusals(access, None, address, 2) for address in ("2001:db8::1", "2001:db8::2")]
        assert len(both[0]) + len(both[1]) == 1
        assert len(await refusals(access, slow, "192.0.2.7", 10)) == 8
        assert len(await refusals(access, fast, "192.0.2.7", 10)) == 6
        assert await refusals(access, free, "192.0.2.7", 1000) == []


@given(st.lists(st.floats(0, 40), min_size=1, max_size=60), st.integers(1, 9))
def test_no_minute_has_more_requests_and_who_waits_as_told_is_let_in(pauses: list[float], rate: int) -> None:
    clock, admitted = Clock(), list[float]()
    with Database.open(None) as database:
        access = AccessControl(database, anonymous_rate=rate, rate_clock=clock.time)
        for pause in pauses:
            clock.now += pause
            for wait in asyncio.run(refusals(access, None, "192.0.2.7", 1)):
                assert len([time for time in admitted if time > clock.now - 60]) == rate
                assert 1 <= wait <= 61
                clock.now += wait
                assert asyncio.run(refusals(access, None, "192.0.2.7", 1)) == []
            admitted.append(clock.now)
            assert len([time for time in admitted if time > clock.now - 60]) <= rate


def test_callers_are_forgotten() -> None:
    clock = Clock()
    rates = RequestRates(60, clock.time)
    for number in range(1000):
        clock.now += 1
        assert rates.count(str(number), 1) == 0
    assert len(rates._times) == 60


async def test_a_quota_is_spent_to_the_last_character_in_each_month(database: Database) -> None:
    clock = Clock()
    access = AccessControl(database, clock=clock.time)
    caller = await access.admit(made(database, quota=100)[0], "")
    await pay(access, caller, 60)
    with pytest.raises(QuotaExceeded, match="60 of 100 characters are used this month, and the request has 41"):
        await pay(access, caller, 41)
    await pay(access, caller, 40)
    await pay(access, caller, 0)
    assert await access.used(caller) == 100
    with pytest.raises(QuotaExceeded):
        await pay(access, caller, 1)
    clock.now = DECEMBER
    assert await access.used(caller) == 0
    await pay(access, caller, 100)
    clock.now = NOVEMBER
    assert await access.used(caller) == 100


async def test_what_fails_is_given_back_to_the_month_that_it_was_charged_to(database: Database) -> None:
    clock = Clock()
    access = AccessControl(database, clock=clock.time)
    caller = await access.admit(made(database)[0], "")
    async with access.charged(caller, 30) as charge:
        charge.free = 20
    with suppress(ValueError):
        async with access.charged(caller, 50):
            assert await access.used(caller) == 60
            clock.now = DECEMBER
            await pay(access, caller, 70)
            raise ValueError("no translation")
    assert await access.used(caller) == 70
    clock.now = NOVEMBER
    assert await access.used(caller) == 10


async def test_what_is_given_back_survives_a_second_end(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client may leave while the deadline of its request is ending the work."""
    access = AccessControl(database)
    caller = await access.admit(made(database)[0], "")
    used, charged, asked, opened = access._ledger.used, asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def used_slowly(key: str, month: str) -> int:
        asked.set()
        await opened.wait()
        return await used(key, month)

    async def work() -> None:
        async with access.charged(caller, 30):
            charged.set()
            await asyncio.Event().wait()

    working = asyncio.create_task(work())
    await charged.wait()
    monkeypatch.setattr(access._ledger, "used", used_slowly)
    working.cancel()
    await asked.wait()
    working.cancel()
    await asyncio.wait([working])
    opened.set()
    await asyncio.sleep(0.01)
    assert await access.used(caller) == 0


async def test_those_without_a_key_are_not_counted(access: AccessControl) -> None:
    caller = await access.admit(None, "192.0.2.7")
    await pay(access, caller, 10**9)
    await access.refund(caller.id, NOVEMBER, 10**9)
    assert await access.used(caller) == 0


async def test_simultaneous_requests_spend_different_characters(database: Database, access: AccessControl) -> None:
    """50 ask for 7 of 100 characters, before anything is known of the key: 14 get them."""

    caller = await access.admit(made(database, quota=100)[0], "")
    found = await asyncio.gather(*(pay(access, caller, 7) for _ in range(50)), return_exceptions=True)
    assert sum(outcome is None for outcome in found) == 14
    assert sum(isinstance(outcome, QuotaExceeded) for outcome in found) == 36
    assert await access.used(caller) == 98


async def spend(access: AccessControl, secret: str, times: int) -> int:
    async with asyncio.timeout(60), access.open():
        caller = await access.admit(secret, "")
        for _ in range(times):
            await pay(access, caller, 3)
        return await access.used(caller)


async def test_usage_outlives_the_service_and_two_services_add_up(tmp_path: Path) -> None:
    path = tmp_path / "service.db"
    with Database.open(path) as database:
        secret, key = made(database)
        assert await spend(AccessControl(database), secret, 5) == 15
    with Database.open(path) as database, Database.open(path) as other:
        assert await spend(AccessControl(database), secret, 2) == 21
        assert written(database, key) == 21
        assert database.run_sync(lambda connection: read_usage(connection, key.id, "1999-12")) == 0
        await asyncio.gather(spend(AccessControl(database), secret, 10), spend(AccessControl(other), secret, 20))
        assert await spend(AccessControl(database), secret, 0) == 111
        async with (later := AccessControl(database)).open():
            await later.refund(f"key:{key.id}", time.time(), 100)  # an earlier process charged them
        async with asyncio.timeout(CLOSING_SECONDS):  # it waits no longer than it has usage to write
            assert await spend(AccessControl(database), secret, 0) == 11


async def test_two_services_share_a_quota(tmp_path: Path) -> None:
    with Database.open(tmp_path / "service.db") as database, Database.open(tmp_path / "service.db") as other:
        secret, _ = made(database, quota=1000)
        service, idle = AccessControl(database), AccessControl(other)
        caller = await service.admit(secret, "")
        assert await idle.used(caller) == 0
        async with service.open():
            await pay(service, caller, 900)
        await asyncio.sleep(FLUSH_SECONDS)
        with pytest.raises(QuotaExceeded, match="900 of 1000"):
            await pay(idle, caller, 101)
        await pay(idle, caller, 100)
        assert await idle.used(caller) == 1000


async def test_a_write_that_fails_is_tried_again(database: Database, access: AccessControl) -> None:
    secret, key = made(database)
    full = "CREATE TRIGGER full BEFORE INSERT ON usage BEGIN SELECT RAISE(ABORT, 'no space'); END"
    database.run_sync(lambda connection: connection.execute(full))
    with capture_logs() as logs:
        assert await spend(access, secret, 4) == 12
    assert written(database, key) == 0
    assert logs == [{"event": "usage lost", "log_level": "error", "characters": 12, "keys": 1}]
    database.run_sync(lambda connection: connection.execute("DROP TRIGGER full"))
    assert await spend(access, secret, 1) == 15
    assert written(database, key) == 15


async def test_usage_is_written_although_the_database_is_locked_at_the_end(tmp_path: Path) -> None:
    with Database.open(path := tmp_path / "service.db") as database, closing(sqlite3.connect(path)) as other:
        secret, key = made(database)
        other.execute("BEGIN IMMEDIATE")
        asyncio.get_running_loop().call_later(1, other.rollback)
        assert await spend(AccessControl(database), secret, 4) == 12
        assert written(database, key) == 12


async def test_characters_charged_during_a_write(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, write = UsageLedger(database), database.write

    async def write_slowly(work: DatabaseWork[T], caller: str = "") -> T:
        totals = await write(work, caller)
        ledger.add("wiki", "2026-11", 7)
        return totals

    monkeypatch.setattr(database, "write", write_slowly)
    await ledger.used("wiki", "2026-11")
    ledger.add("wiki", "2026-11", 30)
    await ledger.write()
    monkeypatch.undo()
    assert await ledger.used("wiki", "2026-11") == 37
    await ledger.write()
    assert await ledger.used("wiki", "2026-11") == 37
    assert database.run_sync(lambda connection: read_usage(connection, "wiki", "2026-11")) == 37


async def test_what_is_charged_is_written_every_second(database: Database, access: AccessControl) -> None:
    """So a process that is killed loses a second at most."""
    assert FLUSH_SECONDS < 1
    secret, key = made(database)
    async with asyncio.timeout(60), access.open():
        caller = await access.admit(secret, "")
        for characters in (3, 6):
            await pay(access, caller, 3)
            while await asyncio.to_thread(written, database, key) != characters:
                await asyncio.sleep(0.01)
