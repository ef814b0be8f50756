"""Manage the API keys of a service.

    mt-service keys add "the wiki" --rate 120 --quota 1000000 --days 365 --database service.db
    mt-service keys list --database service.db
    mt-service keys revoke "the wiki" --database service.db
    mt-service serve --model MODEL --database service.db --require-key true

A key is printed only when it is created, because the database stores only its hash. A running service refuses a revoked
key from the next request on.
"""

import argparse
import json
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from mt.arguments import ArgumentParser
from mt.cli.command import CommandParser, command, stderr_console, tell
from service.access.api_keys import ApiKey, ApiKeyError, list_keys, make_key, revoke_key
from service.access.database import Database, DatabaseError
from service.access.usage import month_of, read_usage
from service.settings import variable

SECONDS_A_DAY = 86_400
MAX_NAME_LENGTH = 100
MAX_LIMIT = 10**15  # below the largest integer of SQLite, 2**63 - 1
MAX_DAYS = 365_000  # about 1,000 years: an expiry date must be before the year 10000


@command
def main(argv: Sequence[str]) -> int:
    options = parse(argv)
    console = stderr_console()
    path = find_database(options, "add")
    created = not path.exists()

    def act(connection: sqlite3.Connection) -> tuple[str, list[dict[str, Any]]]:
        secret, keys = run_action(connection, options)
        if secret:
            show(console, options, secret, keys)  # if this fails, the key is not stored: nobody would have it
        return secret, keys

    with Database.open(path) as database:
        secret, keys = database.run_sync(act)
    if created:
        tell(console, f"new database created: {path}")
    if not secret:
        show(console, options, secret, keys)
    return 0


def show(console: Console, options: argparse.Namespace, secret: str, keys: Sequence[dict[str, Any]]) -> None:
    if options.json:
        shown = {"key": secret} if secret else {}
        print(json.dumps([key | shown for key in keys], ensure_ascii=False, indent=2), flush=True)
    else:
        console.print(key_table(keys))
        if secret:
            console.print("The key, which is shown only now:")
            print(secret, flush=True)
            console.print("Requests without a key are accepted, too, unless the service runs with --require-key true.")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser("keys", __doc__)
    shared = database_options()
    actions = parser.add_actions()
    add = actions.add_parser("add", parents=[shared], help="create a key")
    add.add_argument("name", help="name of the key; unique")
    add.add_argument("--rate", type=count_to(MAX_LIMIT), metavar="N", help="requests per minute (default: no limit)")
    add.add_argument("--quota", type=count_to(MAX_LIMIT), metavar="N", help="characters per month (default: no limit)")
    add.add_argument("--days", type=count_to(MAX_DAYS), metavar="N", help="days until the key expires (default: never)")
    actions.add_parser("list", parents=[shared], help="list all keys with their usage of this month")
    revoke = actions.add_parser("revoke", parents=[shared], help="refuse a key permanently")
    revoke.add_argument("key", help="name or id of the key")
    return parser.parse_args(argv)


def database_options() -> ArgumentParser:
    parser = ArgumentParser(add_help=False)
    parser.add_argument(
        "--database", type=Path, metavar="FILE", help=f"database of the service (default: {variable('database')})"
    )
    parser.add_argument("--json", action="store_true", help="print JSON on stdout instead of a table on stderr")
    return parser


def count_to(maximum: int) -> Callable[[str], int]:
    """Return a function that parses an integer from 1 to `maximum`, for the `type` of an option."""

    def parse_count(text: str) -> int:
        if not text.isdecimal() or len(text) > len(str(maximum)) or not 1 <= int(text) <= maximum:
            raise argparse.ArgumentTypeError(f"{text}; accepted: 1 to {maximum}")
        return int(text)

    return parse_count


def find_database(options: argparse.Namespace, creating_action: str) -> Path:
    """Return the path of the database, from --database or the environment.

    The file must exist, so that a misspelt name is reported. Only the action `creating_action` may create the file.

    Raises: DatabaseError if no database is named, or the file does not exist.
    """
    name = options.database or os.environ.get(variable("database"))
    if not name:
        raise DatabaseError(f"no database is named. Give --database FILE, or set {variable('database')}")
    if options.action != creating_action and not Path(name).is_file():
        raise DatabaseError(
            f"database {name} does not exist; accepted: a file that `{creating_action}` or the service created"
        )
    return Path(name)


def run_action(connection: sqlite3.Connection, options: argparse.Namespace) -> tuple[str, list[dict[str, Any]]]:
    """Run the action. Return (secret text of a new key, or "" for other actions; descriptions of the keys to show).

    Raises: ApiKeyError if a key does not exist, or its name is taken or not valid.
    """
    secret = ""
    match options.action:
        case "add":
            secret, key = add_key(connection, options)
            keys = [key]
        case "list":
            keys = list_keys(connection)
        case "revoke":
            keys = [revoke_key(connection, options.key)]
    month = month_of(time.time())
    return secret, [describe(key, read_usage(connection, key.id, month)) for key in keys]


def add_key(connection: sqlite3.Connection, options: argparse.Namespace) -> tuple[str, ApiKey]:
    """Create a key, as `make_key`. Raises: ApiKeyError also if the name is empty, too long or not printable."""
    name = options.name.strip()
    if not name or len(name) > MAX_NAME_LENGTH or not name.isprintable():
        raise ApiKeyError(f"the name is {options.name!r}; accepted: 1 to {MAX_NAME_LENGTH} printable characters")
    expires = time.time() + options.days * SECONDS_A_DAY if options.days else None
    return make_key(connection, name, options.rate, options.quota, expires)


def describe(key: ApiKey, used: int) -> dict[str, Any]:
    """Return the fields of a key as JSON values, with its state and `used`, the characters translated this month."""
    state = "revoked" if key.revoked else "valid" if key.valid(time.time()) else "expired"
    dates = {"created": iso_date(key.created), "expires": key.expires and iso_date(key.expires)}
    return asdict(key) | dates | {"state": state, "used": used}


def iso_date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def key_table(keys: Sequence[dict[str, Any]]) -> Table:
    table = Table("id", "name", "state", "rate", "used", "quota", "created", "expires")
    for key in keys:
        limits = ["-" if key[name] is None else f"{key[name]:,}" for name in ("rate", "used", "quota")]
        table.add_row(
            key["id"], key["name"], key["state"], *limits, key["created"][:10], (key["expires"] or "never")[:10]
        )
    return table
