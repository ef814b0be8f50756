"""What the processes of the service keep and reveal."""

import re
from pathlib import Path

import pytest

from scripts.attack.target import running

pytestmark = pytest.mark.attack


def test_processes_write_no_core_dumps_and_only_the_first_has_the_admin_key() -> None:
    with running({"MT_ADMIN_KEY": "k" * 40}) as target:
        assert target.upload("a.txt", b"A dog.").status == 200
        processes = [Path(f"/proc/{process}") for process in target.processes()]
        assert len(processes) > 2
        for process in processes:
            assert re.search(r"Max core file size +0 +0 ", (process / "limits").read_text())
        for process in processes[1:]:
            try:
                assert b"MT_ADMIN_KEY" not in (process / "environ").read_bytes()
            except PermissionError:  # of a process whose memory must not be dumped, unless root asks
                continue
