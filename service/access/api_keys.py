"""API keys. The database holds the hash of a key and never the key.

A key is 32 random bytes, and its SHA-256 is stored. The slow hash that passwords need would protect nothing here and
would delay every request: 2^256 keys cannot be tried, however fast one trial is.

The first 8 hexadecimal digits of the hash are the id of the key. The database, the logs and `mt-service keys` use this
id. A key is looked up by its id, and then the whole hash is compared in constant time. The duration of the look-up
reveals nothing, because an attacker cannot choose the hash of a guessed key.
"""

import hmac
import secrets
import sqlite3
import time
from dataclasses import dataclass
from hashlib import sha256

from mt.errors import MTError
from service.access.database import Database

KEY_BEGINNING = "mt_"  # people, and scanners for leaked secrets, recognise a key by this prefix
ID_LENGTH = 8
_COLUMNS = "id, name, rate, quota, created, expires, revoked"


class ApiKeyError(MTError):
    """Raised if a key cannot be created or found."""


@dataclass(frozen=True)
class ApiKey:
    """The stored properties of a key. Times are seconds since 1970."""

    id: str
    name: str
    rate: int | None  # requests per minute; None: no limit
    quota: int | None  # characters per month; None: no limit
    created: float
    expires: float | None
    revoked: bool

    def valid(self, now: float) -> bool:
        return not self.revoked and (self.expires is None or now < self.expires)


async def find_key(database: Database, secret: str, address: str = "") -> ApiKey | None:
    """Return the properties of the key `secret`, or None if no such key exists. The key may be revoked or expired.

    The database is read each time, so that a revoked key is refused at once. The look-ups of one `address` run one
    after the other, and do not delay the look-ups of other addresses.
    """
    digest = _digest(secret)

    def find(connection: sqlite3.Connection) -> ApiKey | None:
        row = connection.execute(f"SELECT digest, {_COLUMNS} FROM keys WHERE id = ?", (_id(digest),)).fetchone()
        return _key(row[1:]) if row and hmac.compare_digest(digest, row[0]) else None

    return await database.read_keys(find, address)


async def is_valid(database: Database, id: str, now: float) -> bool:
    """Return whether the key with this id exists and is neither revoked nor expired."""
    query = f"SELECT {_COLUMNS} FROM keys WHERE id = ?"
    row = await database.read_keys(lambda connection: connection.execute(query, (id,)).fetchone(), id)
    return row is not None and _key(row).valid(now)


def same_secret(secret: str, expected: str) -> bool:
    """Return whether two secrets are equal, in constant time."""
    return hmac.compare_digest(_digest(secret), _digest(expected))


def make_key(
    connection: sqlite3.Connection,
    name: str,
    rate: int | None = None,
    quota: int | None = None,
    expires: float | None = None,
) -> tuple[str, ApiKey]:
    """Create a key with the properties of `ApiKey`. Return its secret, which is stored nowhere, and its properties.

    Raises: ApiKeyError if a key with this name exists.
    """
    if connection.execute("SELECT 1 FROM keys WHERE name = ?", (name,)).fetchone():
        raise ApiKeyError(f"there is a key named {name!r} already; accepted: another name")
    while True:
        secret = KEY_BEGINNING + secrets.token_urlsafe(32)
        digest = _digest(secret)
        id = _id(digest)
        if not connection.execute("SELECT 1 FROM keys WHERE id = ?", (id,)).fetchone():
            break
    key = ApiKey(id, name, rate, quota, time.time(), expires, revoked=False)
    connection.execute(
        f"INSERT INTO keys (digest, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (digest, key.id, key.name, key.rate, key.quota, key.created, key.expires, key.revoked),
    )
    return secret, key


def list_keys(connection: sqlite3.Connection) -> list[ApiKey]:
    return [_key(row) for row in connection.execute(f"SELECT {_COLUMNS} FROM keys ORDER BY created, id")]


def get_key(connection: sqlite3.Connection, id_or_name: str) -> ApiKey:
    """Return the properties of the key with this id or name.

    Raises: ApiKeyError if no key has this id or name.
    """
    query = f"SELECT {_COLUMNS} FROM keys WHERE ? IN (id, name) ORDER BY name = ?"
    row = connection.execute(query, (id_or_name, id_or_name)).fetchone()
    if row is None:
        names = ", ".join(key.name for key in list_keys(connection))
        raise ApiKeyError(f"there is no key {id_or_name!r}; accepted: " + (names or "none, there are no keys yet"))
    return _key(row)


def revoke_key(connection: sqlite3.Connection, id_or_name: str) -> ApiKey:
    """Revoke the key with this id or name permanently, and return its properties.

    Raises: ApiKeyError if no key has this id or name.
    """
    id = get_key(connection, id_or_name).id
    connection.execute("UPDATE keys SET revoked = 1 WHERE id = ?", (id,))
    return get_key(connection, id)


def _digest(secret: str) -> bytes:
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def _id(digest: bytes) -> str:
    return digest.hex()[:ID_LENGTH]


def _key(row: tuple[str, str, int | None, int | None, float, float | None, int]) -> ApiKey:
    id, name, rate, quota, created, expires, revoked = row
    return ApiKey(id, name, rate, quota, created, expires, bool(revoked))
