"""A full disk."""

import resource
from pathlib import Path

import pytest

from scripts.attack.target import ATTACKER, Response, ServiceProcess, glossary, running

pytestmark = pytest.mark.attack
FULL = {503, 507}


def document(target: ServiceProcess, content: bytes, caller: str = ATTACKER) -> Response:
    return target.send_file("/v2/document", "a.txt", content, caller=caller)


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
