"""Locks, as other processes see them."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mt.locks import held, waited_for

HOLDER = """
import os, sys
from pathlib import Path
from mt.locks import held
with held(Path(sys.argv[1])) as mine:
    if sys.argv[2:] and os.fork() == 0:
        os.close(1)
        sys.stdin.read()
        os._exit(0)
    print("held" if mine else "taken", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that tries to hold the lock, and what it says of that."""
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLDER, folder, *arguments], stdin=pipe, stdout=pipe, text=True) as it:
        assert it.stdin and it.stdout
        yield it, it.stdout.readline().strip()
        it.stdin.close()


def test_one_process_holds_it(tmp_path: Path) -> None:
    with held(tmp_path / "run") as mine, another(tmp_path / "run") as (_, said):
        assert mine and said == "taken"
    with another(tmp_path / "run") as (_, said), held(tmp_path / "run") as mine, held(tmp_path / "other") as free:
        assert said == "held" and not mine and free


@pytest.mark.parametrize("arguments", [(), ("fork",)])
def test_it_ends_with_its_holder(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    with another(tmp_path / "run", *arguments) as (holder, said):
        assert said == "held"
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        with held(tmp_path / "run") as mine:  # what it forked lives on, and does not keep it
            assert mine


def test_one_who_waits_gets_it_afterwards(tmp_path: Path) -> None:
    waiter = "import sys; from pathlib import Path; from mt.locks import waited_for\n"
    waiter += "print('waits', flush=True)\nwith waited_for(Path(sys.argv[1])): print('has it', flush=True)"
    with waited_for(tmp_path / "data"):
        process = subprocess.Popen([sys.executable, "-c", waiter, tmp_path / "data"], stdout=subprocess.PIPE, text=True)
        assert process.stdout and process.stdout.readline() == "waits\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.3)
    assert process.communicate()[0] == "has it\n" and process.returncode == 0
