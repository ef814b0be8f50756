"""Child processes that end when their parent ends."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

START = "import os; from mt.processes import end_with_parent; end_with_parent({parent}); "


def is_running(pid: int) -> bool:
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def test_a_child_of_another_process_exits_and_a_child_of_this_process_goes_on() -> None:
    for parent, status in ((os.getpid() + 1, 1), (os.getpid(), 7)):
        assert subprocess.call([sys.executable, "-c", START.format(parent=parent) + "os._exit(7)"]) == status


@pytest.mark.skipif(sys.platform != "linux", reason="Linux kills the child")
def test_a_child_is_killed_with_its_parent() -> None:
    child = START.format(parent="os.getppid()") + "print(os.getpid(), flush=True); import time; time.sleep(600)"
    parent = f"import subprocess, sys; subprocess.call([sys.executable, '-c', {child!r}])"
    with subprocess.Popen([sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.kill()
        process.wait()
        while is_running(pid):
            time.sleep(0.05)
