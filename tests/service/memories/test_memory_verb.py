"""`mt-service memory`: from a file to a stored memory and back."""

import asyncio
import gzip
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from mt.data.translation_memory import read_memory
from mt.languages import Direction
from service.access.api_keys import make_key
from service.access.database import Database
from service.memories.store import OPERATOR, MemoryLimits, MemoryStore, list_all
from service.program import check_page_memories
from service.settings import Settings, SettingsError
from service.verbs.memory import main


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "service.db"


@pytest.fixture
def units(tmp_path: Path) -> Path:
    file = tmp_path / "handbook.tsv.gz"
    lines = "".join(f"Page {number} & more\tSeite {number} & mehr\n" for number in range(2500))
    file.write_bytes(gzip.compress(lines.encode()))
    return file


def run(database: Path, *arguments: Any) -> int:
    return main([*map(str, arguments), "--database", str(database)])


def imported(database: Path, units: Path, *options: str) -> int:
    return run(database, "import", units, "--source", "en", "--target", "de", *options)


def test_a_memory_lives_from_import_to_delete(
    database: Path, units: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert imported(database, units) == 0
    assert "used where a model of the service translates en-de; `mt-service models en-de`" in capsys.readouterr().err
    assert run(database, "list", "--json") == 0
    (listed,) = json.loads(capsys.readouterr().out)
    assert (listed["name"], listed["owner"], listed["units"]) == ("handbook", "operator", 2500)
    tmx = tmp_path / "out.tmx"
    assert run(database, "export", "handbook", tmx) == 0
    assert f"written to {tmx}\n" in capsys.readouterr().err
    pairs = list(read_memory(tmx, "en", "de"))
    assert (len(pairs), pairs[-1].target) == (2500, "Seite 2499 & mehr")
    assert run(database, "export", listed["id"]) == 0
    written = capsys.readouterr()
    assert written.out == tmx.read_text("utf-8") and "written to" not in written.err
    assert imported(database, tmx, "--name", "handbook") == 0
    capsys.readouterr()
    assert run(database, "delete", "handbook") == 0
    assert "deleted" in capsys.readouterr().err
    with Database.open(database) as opened:
        assert opened.run_sync(list_all) == []


def test_units_that_are_left_out_are_named(database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.tsv"
    file.write_text(f"One\tEins\nTwo\t \u200b\n{'long ' * 1000}\tLang\n" + "\tleer\n" * 20, encoding="utf-8")
    assert imported(database, file) == 0
    told = capsys.readouterr().err
    assert f"units that are left out: 22:\n  - {file}:2: a text is blank\n" in told
    assert f"  - {file}:3: a text has more than 4,000 characters\n" in told
    assert told.count(f"- {file}:") == 10
    file.write_text("One\tEins\n", encoding="utf-8")
    capsys.readouterr()
    assert imported(database, file) == 0 and "left out" not in capsys.readouterr().err


def test_a_memory_may_belong_to_a_key(database: Path, units: Path) -> None:
    with Database.open(database) as opened:
        _, key = opened.run_sync(lambda connection: make_key(connection, "wiki"))
    assert imported(database, units, "--key", "wiki", "--name", "pages") == 0
    assert imported(database, units) == 0
    with Database.open(database) as opened:
        assert [memory.owner for memory in opened.run_sync(list_all)] == [f"key:{key.id}", OPERATOR]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("a.tsv", lambda lines: lines + b"no tab\n"),
        ("a.tsv.gz", lambda lines: gzip.compress(lines)[:-20]),
        ("a.po", lambda lines: b""),
        ("a.tmx", lambda lines: b"<tmx>" + lines),
    ],
)
def test_a_failed_import_leaves_nothing(
    database: Path, tmp_path: Path, name: str, damage: Callable[[bytes], bytes]
) -> None:
    file = tmp_path / name
    file.write_bytes(damage(b"".join(b"Page %d\tSeite %d\n" % (number, number) for number in range(1500))))
    assert imported(database, file) == 2
    with Database.open(database) as opened:
        query = "SELECT (SELECT count(*) FROM memories), (SELECT count(*) FROM memory_units)"
        assert opened.run_sync(lambda connection: connection.execute(query).fetchall()) == [(0, 0)]


def test_problems_are_named(database: Path, units: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(*arguments: Any) -> str:
        assert run(database, *arguments) == 2
        return capsys.readouterr().err

    assert "does not exist" in refused("list")
    assert imported(database, tmp_path / "missing.tmx") == 2
    assert "missing.tmx" in capsys.readouterr().err
    with Database.open(database) as opened:
        assert opened.run_sync(list_all) == []
    assert "there is no memory 'x'; the database has no memories yet" in refused("delete", "x")
    imported(database, units)
    assert "there is no memory 'x'; accepted: an id or a name, handbook" in refused("delete", "x")
    assert imported(database, units, "--key", "nobody") == 2
    assert "there is no key 'nobody'" in capsys.readouterr().err
    assert run(database, "import", units, "--source", "de", "--target", "en") == 0
    message = refused("delete", "handbook")
    assert "2 memories have the name 'handbook'" in message and "(de-en)" in message and "(en-de)" in message


def test_the_service_starts_while_another_process_writes(database: Path, units: Path) -> None:
    assert imported(database, units) == 0
    with Database.open(database) as opened, closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        check_page_memories(Settings(), opened)
        check_page_memories(Settings(page_memories=("handbook",)), opened)
        with pytest.raises(SettingsError, match="accepted: handbook:\\n  - the operator has no memory 'house'"):
            check_page_memories(Settings(page_memories=("house",)), opened)


def test_the_names_of_clients_are_printed_as_they_are_but_without_control_sequences(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Database.open(database) as opened:
        store = MemoryStore(opened, MemoryLimits())
        for name in ("a\x1b[2Jb", "[/red]"):
            asyncio.run(store.put("127.0.0.1", name, Direction("en", "de"), []))
    for status, arguments in ((0, ["list"]), (2, ["delete", "x"])):
        assert run(database, *arguments) == status
        told = capsys.readouterr().err
        assert "'a\\x1b[2Jb'" in told and "[/red]" in told and "\x1b" not in told
