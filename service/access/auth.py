"""API keys: who they are, kept without the keys themselves.

A key is 32 random bytes, and what is kept of it is its SHA-256. A slow hash, as passwords need, would protect nothing
here and cost every request: nobody can try 2^256 keys, however fast each try is.

The first characters of the hash are the key's id, in the database, in logs and for `scripts/keys.py`. A key is looked
up by it, and the whole hash is then compared in constant time. How long the look-up takes says nothing about a key
either: to steer it, one would have to find inputs with chosen hashes.
"""

import hmac
import secrets
import sqlite3
import time
from dataclasses import dataclass
from hashlib import sha256

from mt.errors import MTError
from service.access.store import Store

PREFIX = "mt_"  # so that people, and scanners for leaked secrets, see what it is
ID_LENGTH = 8
_COLUMNS = "id, name, rate, quota, created, expires, revoked"


class KeyProblem(MTError):
    """A key that cannot be made or found."""


@dataclass(frozen=True)
class Key:
    """What is known of a key. Times are seconds since 1970."""

    id: str
    name: str
    rate: int | None  # requests a minute; None is without limit
    quota: int | None  # characters a month; None is without limit
    created: float
    expires: float | None
    revoked: bool

    def valid(self, now: float) -> bool:
        return not self.revoked and (self.expires is None or now < self.expires)


@dataclass(frozen=True)
class NewKey:
    """What a key is to be."""

    name: str
    rate: int | None = None
    quota: int | None = None
    expires: float | None = None


class Keys:
    """The keys of a store, for the service: read anew each time, so that a revoked key is refused at once."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def find(self, secret: str) -> Key | None:
        """The key of that text, valid or not; None if there is no such key."""
        digest = _digest(secret)
        return await self._store.run(lambda connection: _find(connection, digest))

    async def there_are_any(self) -> bool:
        return await self._store.run(
            lambda connection: connection.execute("SELECT 1 FROM keys LIMIT 1").fetchone() is not None
        )


def same_secret(given: str, expected: str) -> bool:
    """Compared in constant time."""
    return hmac.compare_digest(_digest(given), _digest(expected))


def make_key(connection: sqlite3.Connection, wanted: NewKey) -> tuple[str, Key]:
    """The key itself, which is kept nowhere, and what is known of it. Raises KeyProblem."""
    if connection.execute("SELECT 1 FROM keys WHERE name = ?", (wanted.name,)).fetchone():
        raise KeyProblem(f"there is a key named {wanted.name!r} already; accepted: another name")
    while True:
        secret = PREFIX + secrets.token_urlsafe(32)
        digest = _digest(secret)
        id = _id(digest)
        if not connection.execute("SELECT 1 FROM keys WHERE id = ?", (id,)).fetchone():
            break
    key = Key(id, wanted.name, wanted.rate, wanted.quota, time.time(), wanted.expires, revoked=False)
    connection.execute(
        f"INSERT INTO keys (digest, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (digest, key.id, key.name, key.rate, key.quota, key.created, key.expires, key.revoked),
    )
    return secret, key


def list_keys(connection: sqlite3.Connection) -> list[Key]:
    """The oldest first."""
    return [_key(row) for row in connection.execute(f"SELECT {_COLUMNS} FROM keys ORDER BY created, id")]


def get_key(connection: sqlite3.Connection, which: str) -> Key:
    """By its id or its name. Raises KeyProblem."""
    found = connection.execute(f"SELECT {_COLUMNS} FROM keys WHERE ? IN (id, name) ORDER BY name = ?", (which, which))
    row = found.fetchone()
    if row is None:
        names = ", ".join(key.name for key in list_keys(connection))
        raise KeyProblem(f"there is no key {which!r}; accepted: " + (names or "none, for there are no keys yet"))
    return _key(row)


def revoke_key(connection: sqlite3.Connection, which: str) -> Key:
    """By its id or its name, for good. Raises KeyProblem."""
    id = get_key(connection, which).id
    connection.execute("UPDATE keys SET revoked = 1 WHERE id = ?", (id,))
    return get_key(connection, id)


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _id(digest: bytes) -> str:
    return digest.hex()[:ID_LENGTH]


def _find(connection: sqlite3.Connection, digest: bytes) -> Key | None:
    row = connection.execute(f"SELECT digest, {_COLUMNS} FROM keys WHERE id = ?", (_id(digest),)).fetchone()
    if row is None or not hmac.compare_digest(digest, row[0]):
        return None
    return _key(row[1:])


def _key(row: tuple[str, str, int | None, int | None, float, float | None, int]) -> Key:
    id, name, rate, quota, created, expires, revoked = row
    return Key(id, name, rate, quota, created, expires, bool(revoked))
