"""Locks, writes that are atomic and reach the disk, and processes that end with their parent."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mt.files import atomic_file, atomic_folder, lock, try_lock

HOLDER = """
import os, sys
from pathlib import Path
from mt.files import try_lock
with try_lock(Path(sys.argv[1])) as locked:
    if sys.argv[2:]:
        read, write = os.pipe()
        if os.fork() == 0:
            os.write(write, b"1")
            os.close(1)
            sys.stdin.read()
            os._exit(0)
        os.read(read, 1)  # the child has run its handlers of fork, which close the lock's file
    print("held" if locked else "taken", flush=True)
    sys.stdin.read()
"""


@contextmanager
def another_process(folder: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", HOLDER, folder, *arguments], stdin=pipe, stdout=pipe, text=True) as it:
        assert it.stdin and it.stdout
        yield it, it.stdout.readline().strip()
        it.stdin.close()


def test_one_process_holds_a_lock(tmp_path: Path) -> None:
    with try_lock(tmp_path / "run") as locked, another_process(tmp_path / "run") as (_, report):
        assert locked and report == "taken"
    with another_process(tmp_path / "run") as (_, report), try_lock(tmp_path / "run") as locked:
        assert report == "held" and not locked
    with lock(tmp_path / "run"), try_lock(tmp_path / "other") as other:
        assert other
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [(), ("fork",)])
def test_a_lock_ends_with_its_process(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    with another_process(tmp_path / "run", *arguments) as (holder, report):
        assert report == "held"
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
        with try_lock(tmp_path / "run") as locked:  # a forked child of the holder lives on, without the lock
            assert locked


def test_files_are_on_the_disk_before_their_folder_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file and folder, at any depth, is synchronised before the rename, and the parent folder after it."""
    events: list[str] = []
    sync, rename = os.fsync, Path.rename

    def record_sync(descriptor: int) -> None:
        events.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        sync(descriptor)

    def record_rename(self: Path, target: Path) -> Path:
        events.append(f"{self.name} -> {target.name}")
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", record_sync)
    monkeypatch.setattr(Path, "rename", record_rename)
    with atomic_folder(tmp_path / "data") as folder:
        (folder / "train" / "deep").mkdir(parents=True)
        for name in ("meta.json", "train/source.bin", "train/deep/target.bin"):
            (folder / name).write_text("x")
    assert events[-2:] == [".data.part -> data", tmp_path.name]
    assert sorted(events[:-2]) == sorted([".data.part", "train", "deep", "meta.json", "source.bin", "target.bin"])
    assert events.index("deep") > events.index("target.bin") and events[-3] == ".data.part"


@pytest.mark.parametrize("exchange", [True, False])
def test_files_and_folders_are_replaced_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exchange: bool) -> None:
    """With and without a file system that exchanges two names."""
    if not exchange:
        monkeypatch.setattr(ctypes, "CDLL", lambda name: None)  # a C library without renameat2
    path, folder = tmp_path / "file", tmp_path / "run" / "thing"

    def write(text: str) -> None:
        with atomic_file(path) as temporary, atomic_folder(folder) as aside:
            temporary.write_text(text)
            (aside / "file").write_text(text)
            if text == "half":
                raise KeyboardInterrupt

    write("old")
    write("new")
    with pytest.raises(KeyboardInterrupt):
        write("half")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["file", "run"]
    assert [item.name for item in folder.parent.iterdir()] == ["thing"]
    assert path.read_text() == (folder / "file").read_text() == "new"


def test_two_writers_of_a_file_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with atomic_file(path) as first:
        first.write_text("first")
        with atomic_file(path) as second:
            second.write_text("second")
            first.write_text("first, the rest")
        assert path.read_text() == "second"
    assert path.read_text() == "first, the rest"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_there_is_a_folder_at_every_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads, or is killed, while one takes the place of another."""
    folder, rename = tmp_path / "thing", Path.rename

    def watched(self: Path, target: Path) -> Path:
        renamed = rename(self, target)
        assert folder.is_dir(), "this file system cannot exchange names"
        return renamed

    monkeypatch.setattr(Path, "rename", watched)
    for text in ("old", "new"):
        with atomic_folder(folder) as aside:
            (aside / "file").write_text(text)
        assert (folder / "file").read_text() == text
        assert [path.name for path in tmp_path.iterdir()] == ["thing"]


def test_what_a_killed_writer_left_does_not_reach_the_next(tmp_path: Path) -> None:
    writing = atomic_folder(tmp_path / "thing")
    with writing as aside:
        (aside / "file").write_text("old")
    for left in (aside, tmp_path / ".thing.old"):  # as a writer killed while writing, or between its two renames
        left.mkdir()
        (left / "half").write_text("of some")
    assert (tmp_path / "thing" / "file").read_text() == "old"
    with atomic_folder(tmp_path / "thing") as aside:
        (aside / "file").write_text("new")
    assert [path.name for path in tmp_path.iterdir()] == ["thing"]
    assert [path.name for path in (tmp_path / "thing").iterdir()] == ["file"]
    assert (tmp_path / "thing" / "file").read_text() == "new"


def test_a_linked_directory_is_replaced_where_it_lies(tmp_path: Path) -> None:
    (tmp_path / "disk" / "model").mkdir(parents=True)
    (tmp_path / "model").symlink_to(tmp_path / "disk" / "model")
    for text in ("one", "two", "three"):
        with atomic_folder(tmp_path / "model") as aside:
            (aside / "file").write_text(text)
        assert (tmp_path / "model").is_symlink()
        assert (tmp_path / "disk" / "model" / "file").read_text() == text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["disk", "model"]


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
