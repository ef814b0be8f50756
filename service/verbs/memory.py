"""Manage the translation memories of a service.

    mt-service memory import handbook.tmx --source en --target de --key "the wiki" --database service.db
    mt-service memory list --database service.db
    mt-service memory export suggestions corrections.tmx --database service.db
    mt-service memory delete handbook --database service.db

Without --key, a memory belongs to the operator, and every caller who knows its id can use it. Files of .tmx, .xliff,
.xlf, .po and .tsv are read, also as .gz and .xz. The service may run meanwhile.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from mt.cli.command import CommandParser, command, stderr_console, tell
from mt.data.corpus import SentencePair, read_content
from mt.data.translation_memory import read_memory, read_tab_separated, write_tmx
from mt.data_config import MEMORY_FORMATS, memory_format
from mt.errors import MTError, problems
from mt.files import atomic_file
from mt.languages import standard_tag
from service.access.api_keys import get_key, list_keys
from service.access.control import KEY_PREFIX
from service.access.database import Database
from service.errors import ServiceError
from service.glossaries.store import glossary_direction
from service.memories.store import OPERATOR, Memory, MemoryLimits, MemoryStore, list_all, read_units
from service.memories.units import MemoryUnit, unit_problem
from service.verbs.keys import database_options, find_database, iso_date

UNLIMITED = MemoryLimits(memories=2**60, units=2**60, bytes_per_caller=2**60, bytes=2**60, anonymous_bytes=2**60)
LISTED = 10  # units that are left out


class MemoryCommandError(MTError):
    """Raised if a memory cannot be found or stored."""


@command
def main(argv: Sequence[str]) -> int:
    options = parse(argv)
    with Database.open(find_database(options, "import")) as database:
        try:
            memories = run_action(database, options)
        except ServiceError as error:
            raise MemoryCommandError(error.message) from error
        names = database.run_sync(lambda connection: {key.id: key.name for key in list_keys(connection)})
    listed = [describe(memory, names) for memory in memories]
    if options.json:
        print(json.dumps(listed, ensure_ascii=False, indent=2))
    else:
        table, console = memory_table(listed), stderr_console()
        table.title = "deleted" if options.action == "delete" else None
        console.print(table)
        if options.action == "export" and options.file:
            tell(console, f"written to {options.file}")
        if options.action == "import":
            pair = f"{memories[0].source}-{memories[0].target}"
            tell(console, f"used where a model of the service translates {pair}; `mt-service models {pair}` lists some")
    return 0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = CommandParser("memory", __doc__)
    shared = database_options()
    actions = parser.add_actions()
    add = actions.add_parser("import", parents=[shared], help="add the units of a file to a memory")
    add.add_argument("file", type=Path, help="translation memory, or .tsv with a source and a target on each line")
    add.add_argument("--source", type=standard_tag, required=True, metavar="LANGUAGE", help="source language")
    add.add_argument("--target", type=standard_tag, required=True, metavar="LANGUAGE", help="target language")
    add.add_argument("--name", metavar="NAME", help="name of the memory (default: the name of the file)")
    add.add_argument("--key", metavar="KEY", help="name or id of the API key that owns it (default: the operator)")
    actions.add_parser("list", parents=[shared], help="list all memories")
    export = actions.add_parser("export", parents=[shared], help="write a memory as TMX")
    delete = actions.add_parser("delete", parents=[shared], help="delete a memory")
    for action in (export, delete):
        action.add_argument("memory", help="id or name of the memory")
    export.add_argument("file", type=Path, nargs="?", help="file to write (default: standard output)")
    return parser.parse_args(argv)


def run_action(database: Database, options: argparse.Namespace) -> list[Memory]:
    """Run the action, and return the memories that are listed as its result.

    Raises: MTError, ServiceError if a file cannot be read, or a memory cannot be found or stored.
    """
    if options.action == "import":
        return [import_file(database, options)]
    memories = database.run_sync(list_all)
    if options.action == "list":
        return memories
    memory = find_memory(memories, options.memory)
    if options.action == "export":
        export_tmx(database, memory, options.file)
    else:
        asyncio.run(MemoryStore(database, UNLIMITED).delete(memory.owner, memory.id))
    return [memory]


def import_file(database: Database, options: argparse.Namespace) -> Memory:
    """Add the translation units of a file to a memory, which is created if it does not exist. Return the memory.

    Raises: MTError, ServiceError if the file cannot be read or stored. Then no new memory is left.
    """
    owner = OPERATOR
    if options.key:
        owner = f"{KEY_PREFIX}{database.run_sync(partial(get_key, id_or_name=options.key)).id}"
    file: Path = options.file
    pairs = read_pairs(file, options.source, options.target)
    name = options.name or file.name.partition(".")[0]
    direction = glossary_direction(options.source, options.target)
    left_out: list[str] = []
    memory = asyncio.run(MemoryStore(database, UNLIMITED).put(owner, name, direction, storable_units(pairs, left_out)))
    if left_out:
        tell(stderr_console(), problems(f"units that are left out: {len(left_out):,}", left_out[:LISTED]))
    return memory


def storable_units(pairs: Iterable[SentencePair], left_out: list[str]) -> Iterator[MemoryUnit]:
    """Yield the units that can be stored. Add the places of the others to `left_out`, with the reason."""
    for pair in pairs:
        unit = MemoryUnit(pair.source, pair.target)
        if problem := unit_problem(unit):
            left_out.append(f"{pair.file}:{pair.line}: {problem}")
        else:
            yield unit


def read_pairs(file: Path, source: str, target: str) -> Iterator[SentencePair]:
    """Yield the translation units of a .tsv file or of a translation memory. Raises: MTError if it cannot be read."""
    name = file.name.removesuffix(".gz").removesuffix(".xz")
    if name.lower().endswith(".tsv"):
        return read_tab_separated(str(file), read_content(file), source, target)
    if memory_format(name) is None:
        raise MemoryCommandError(f"{file}: unknown format; accepted: {', '.join((*MEMORY_FORMATS, '.tsv'))}")
    return read_memory(file, source, target)


def export_tmx(database: Database, memory: Memory, file: Path | None) -> None:
    parts = write_tmx(units_of(database, memory), memory.source, memory.target)
    if file is None:
        sys.stdout.writelines(parts)
        return
    with atomic_file(file) as temporary, temporary.open("w", encoding="utf-8") as stream:
        stream.writelines(parts)


def units_of(database: Database, memory: Memory) -> Iterator[MemoryUnit]:
    first = 0
    while part := database.run_sync(partial(read_units, id=memory.id, first=first)):
        first += len(part)
        yield from part


def find_memory(memories: Iterable[Memory], id_or_name: str) -> Memory:
    """Return the memory with this id or, if there is none, with this name.

    Raises: MemoryCommandError if no memory or several memories have the name.
    """
    memories = list(memories)
    named = [memory for memory in memories if id_or_name == memory.id]
    named = named or [memory for memory in memories if id_or_name == memory.name]
    if len(named) == 1:
        return named[0]
    if named:
        ids = ", ".join(f"{memory.id} ({memory.source}-{memory.target})" for memory in named)
        raise MemoryCommandError(f"{len(named)} memories have the name {id_or_name!r}; accepted: an id, {ids}")
    names = ", ".join(dict.fromkeys(printable(memory.name) for memory in memories))
    accepted = f"accepted: an id or a name, {names}" if names else "the database has no memories yet"
    raise MemoryCommandError(f"there is no memory {id_or_name!r}; {accepted}")


def describe(memory: Memory, keys: dict[str, str]) -> dict[str, Any]:
    """Return fields of a memory as JSON values. The owner is the operator, an address, or a name in `keys`, by id."""
    owner = memory.owner.removeprefix(KEY_PREFIX)
    fields = {name: getattr(memory, name) for name in ("id", "name", "source", "target", "units")}
    return fields | {"owner": keys.get(owner, owner), "updated": iso_date(memory.updated)}


def memory_table(memories: Sequence[dict[str, Any]]) -> Table:
    table = Table("id", "name", "owner", "languages", "units", "updated")
    for memory in memories:
        languages, units = f"{memory['source']}-{memory['target']}", f"{memory['units']:,}"
        table.add_row(memory["id"], printable(memory["name"]), memory["owner"], languages, units, memory["updated"])
    return table


def printable(name: str) -> str:
    """Return the name of a memory, which a client chose, without characters that a terminal would obey."""
    return name if name.isprintable() else ascii(name)
