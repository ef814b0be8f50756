"""The API keys of a service. A key is shown once, when it is made: the database holds only its hash.

    python scripts/keys.py add "the wiki" --rate 120 --quota 1000000 --days 365 --database service.db
    python scripts/keys.py list --database service.db
    python scripts/keys.py revoke "the wiki" --database service.db
    python -m service --model MODEL --database service.db --require-key true

The service need not be stopped: it refuses a revoked key from the next request on.
"""

import argparse
import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from shell.command import command

from service.access.auth import Key, KeyProblem, NewKey, get_key, list_keys, make_key, revoke_key
from service.access.limits import month_of, read_usage
from service.access.store import Store
from service.settings import variable

DAY = 86_400  # seconds
LONGEST_NAME = 100
MOST = 10**15  # SQLite counts to 2**63
MOST_DAYS = 365_000  # the calendar ends with the year 9999


@command
def main(arguments: Sequence[str]) -> int:
    asked = parse(arguments)
    console = Console(stderr=True)
    with Store.open(database(asked)) as store:
        secret, keys = store.do(lambda connection: act(connection, asked))
    if asked.json:
        made = {"key": secret} if secret else {}
        print(json.dumps([shown | made for shown in keys], ensure_ascii=False, indent=2))
    else:
        console.print(table(keys))
        if secret:
            console.print("The key, which is shown only now:")
            print(secret)
    return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--database", type=Path, metavar="FILE", help=f"the service's (or {variable('database')})")
    common.add_argument("--json", action="store_true", help="JSON on stdout instead of a table on stderr")
    verbs = parser.add_subparsers(dest="verb", required=True)
    add = verbs.add_parser("add", parents=[common], help="make a key")
    add.add_argument("name", help="whose it is; no other key may have it")
    add.add_argument("--rate", type=whole(MOST), metavar="N", help="requests a minute (no limit)")
    add.add_argument("--quota", type=whole(MOST), metavar="N", help="characters a month (no limit)")
    add.add_argument("--days", type=whole(MOST_DAYS), metavar="N", help="until it expires (never)")
    verbs.add_parser("list", parents=[common], help="all keys, and their characters of this month")
    for verb, said in (("show", "one key"), ("revoke", "refuse a key from now on, for good")):
        verbs.add_parser(verb, parents=[common], help=said).add_argument("key", help="its name or its id")
    return parser.parse_args(arguments)


def whole(most: int) -> Callable[[str], int]:
    """Reads a number from 1 to `most`."""

    def number(text: str) -> int:
        if not 1 <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"{text} cannot be; accepted: 1 to {most}")
        return int(text)

    return number


def database(asked: argparse.Namespace) -> Path:
    """Only `add` makes a new one: elsewhere, a name with a slip in it is to be told. Raises KeyProblem."""
    given = asked.database or os.environ.get(variable("database"))
    if not given:
        raise KeyProblem(f"no database; accepted: --database FILE, or {variable('database')}")
    if asked.verb != "add" and not Path(given).is_file():
        raise KeyProblem(f"there is no database {given}; accepted: a file that `add` or the service has made")
    return Path(given)


def act(connection: sqlite3.Connection, asked: argparse.Namespace) -> tuple[str, list[dict[str, Any]]]:
    """A new key, if one is made, and the keys to show. Raises KeyProblem."""
    secret = ""
    match asked.verb:
        case "add":
            secret, key = make_key(connection, wanted(asked))
            keys = [key]
        case "list":
            keys = list_keys(connection)
        case "show":
            keys = [get_key(connection, asked.key)]
        case "revoke":
            keys = [revoke_key(connection, asked.key)]
    month = month_of(time.time())
    return secret, [described(key, read_usage(connection, key.id, month)) for key in keys]


def wanted(asked: argparse.Namespace) -> NewKey:
    """Raises KeyProblem."""
    name = asked.name.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise KeyProblem(f"the name {asked.name!r} cannot be used; accepted: 1 to {LONGEST_NAME} printable characters")
    return NewKey(name, asked.rate, asked.quota, time.time() + asked.days * DAY if asked.days else None)


def described(key: Key, used: int) -> dict[str, Any]:
    """For people and programs, with times as dates."""
    state = "revoked" if key.revoked else "valid" if key.valid(time.time()) else "expired"
    dates = {"created": date(key.created), "expires": key.expires and date(key.expires)}
    return asdict(key) | dates | {"state": state, "used": used}


def date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def table(keys: Sequence[dict[str, Any]]) -> Table:
    found = Table("id", "name", "state", "rate", "used", "quota", "created", "expires")
    for key in keys:
        limits = ["-" if key[name] is None else f"{key[name]:,}" for name in ("rate", "used", "quota")]
        found.add_row(
            key["id"], key["name"], key["state"], *limits, key["created"][:10], (key["expires"] or "never")[:10]
        )
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
