"""A locked or full database (SECURITY 12, 17, 18, 19; ATTACKS 11, 12)."""

import sqlite3
from pathlib import Path

import pytest

from tests.attacks.target import BYSTANDER, running, together

pytestmark = pytest.mark.attack


def test_a_locked_database_refuses_at_once_and_reads_go_on(tmp_path: Path) -> None:
    database = tmp_path / "keys.sqlite"
    with running(MT_DATABASE=str(database)) as target:
        target.post_json("/v2/glossaries", {})
        lock = sqlite3.connect(database, isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        glossary = {"name": "a", "source_lang": "en", "target_lang": "de", "entries": "a\tb", "entries_format": "tsv"}
        answers = []
        together(*[lambda: answers.append(target.post_json("/v2/glossaries", glossary)) for _ in range(3)])
        assert [answer.status for answer in answers] == [503] * 3
        assert all(int(answer.headers["retry-after"]) > 0 for answer in answers)
        assert max(answer.seconds for answer in answers) < 3
        assert target.request("GET", "/v2/glossaries", caller=BYSTANDER).status == 200
        lock.rollback()
        assert target.post_json("/v2/glossaries", glossary).status == 201


def test_the_database_is_private(tmp_path: Path) -> None:
    database = tmp_path / "keys.sqlite"
    with running(MT_DATABASE=str(database)):
        modes = {path.name: oct(path.stat().st_mode & 0o777) for path in tmp_path.iterdir()}
        assert set(modes.values()) == {"0o600"}, modes
