"""A locked or full database."""

import resource
import sqlite3
from pathlib import Path

import pytest

from scripts.attack.target import ATTACKER, Response, ServiceProcess, glossary, running, together

pytestmark = pytest.mark.attack
FULL = {503, 507}


def document(target: ServiceProcess, content: bytes, caller: str = ATTACKER) -> Response:
    return target.send_file("/v2/document", "a.txt", content, caller=caller)


def test_a_locked_database_refuses_at_once_and_reads_go_on(tmp_path: Path) -> None:
    database = tmp_path / "keys.sqlite"
    with running({"MT_DATABASE": str(database)}) as target:
        made = target.post_json("/v2/glossaries", glossary()).json["glossary_id"]
        lock = sqlite3.connect(database, isolation_level=None)
        lock.execute("BEGIN IMMEDIATE")
        answers: list[Response] = []
        together(*[lambda: answers.append(target.post_json("/v2/glossaries", glossary())) for _ in range(6)])
        assert [answer.status for answer in answers] == [503] * 6
        assert all(int(answer.headers["retry-after"]) > 0 for answer in answers)
        assert max(answer.seconds for answer in answers) < 3
        assert target.request("GET", f"/v2/glossaries/{made}").status == 200
        lock.rollback()
        assert target.post_json("/v2/glossaries", glossary()).status == 201


def test_a_full_disk_is_no_defect_and_the_service_recovers(tmp_path: Path) -> None:
    with running({"MT_DATABASE": str(tmp_path / "keys.sqlite")}) as target:
        largest = max(path.stat().st_size for path in tmp_path.iterdir())
        old = resource.prlimit(target.process.pid, resource.RLIMIT_FSIZE, (largest, resource.RLIM_INFINITY))
        large = b"A dog. " * 14_000
        answers = [target.post_json("/v2/glossaries", glossary(5000)) for _ in range(3)]
        answers.append(document(target, large))
        assert {answer.status for answer in answers} <= FULL, [answer.body for answer in answers]
        assert all(int(answer.headers["retry-after"]) > 0 for answer in answers)
        assert target.translate("We have two dogs.").status == 200
        resource.prlimit(target.process.pid, resource.RLIMIT_FSIZE, old)
        assert target.post_json("/v2/glossaries", glossary(5000)).status == 201
        assert document(target, large).status == 200
