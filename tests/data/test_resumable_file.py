"""A file of lines that goes on where a kill left it."""

import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from mt.data.resumable_file import ResumableFile
from mt.errors import DataError

JOB = {"input": "abc", "beam_size": 4}


def left_behind(folder: Path, text: bytes, problems: str = "") -> Path:
    """What a process leaves that is killed: the lines of a job, and perhaps half a line."""
    (folder / "out.part").write_bytes(text)
    (folder / "out.part.jsonl").write_text(json.dumps(JOB) + "\n" + problems)
    return folder / "out"


@pytest.mark.parametrize(("text", "lines"), [(b"", 0), (b"ha", 0), (b"a\nb\n", 2), (b"a\n\nha\xc3", 2), (b"\n" * 5, 5)])
def test_whole_lines_are_kept(tmp_path: Path, text: bytes, lines: int) -> None:
    path = left_behind(tmp_path, text)
    with ResumableFile(path, JOB) as file:
        assert file.lines == lines
        file.write("next", problem=False)
        file.finish()
    assert path.read_bytes() == b"".join(text.splitlines(keepends=True)[:lines]) + b"next\n"
    assert list(tmp_path.iterdir()) == [path]


def test_another_job(tmp_path: Path) -> None:
    path = left_behind(tmp_path, b"a\n")
    with pytest.raises(DataError, match="begun by another job") as caught:
        ResumableFile(path, {"input": "xyz", "beam_size": 4, "json": True})
    assert str(caught.value).splitlines()[1:] == ["  - input: was 'abc', now 'xyz'", "  - json: was None, now True"]
    assert (tmp_path / "out.part").read_bytes() == b"a\n"
    with ResumableFile(path, JOB) as file:
        assert file.lines == 1
    (tmp_path / "out.part.jsonl").unlink()
    with pytest.raises(DataError, match=r"out\.part: was begun by an unknown job"):
        ResumableFile(path, JOB)


def test_another_process_is_at_it(tmp_path: Path) -> None:
    path = left_behind(tmp_path, b"a\nhalf a li")
    with ResumableFile(path, JOB):
        for job in (JOB, {}):
            with pytest.raises(DataError, match="another process is writing this file; wait for its end, or name ano"):
                ResumableFile(path, job)
    with ResumableFile(path, JOB) as file:
        assert file.lines == 1


def test_a_job_that_cannot_be_repeated_begins_anew_and_spares_another(tmp_path: Path) -> None:
    path = left_behind(tmp_path, b"a\n")
    with pytest.raises(DataError, match="begun by another job"):
        ResumableFile(path, {})
    assert (tmp_path / "out.part").read_bytes() == b"a\n"
    (tmp_path / "out.part.jsonl").write_text("{}\n1\n")
    with ResumableFile(path, {}) as file:
        assert (file.lines, file.problems) == (0, 0)
        file.write("b", problem=False)
        file.finish()
    assert path.read_bytes() == b"b\n" and list(tmp_path.iterdir()) == [path]


def test_without_a_line_there_is_nothing_to_go_on_with(tmp_path: Path) -> None:
    path = left_behind(tmp_path, b"half a li")
    with ResumableFile(path, {"input": "xyz"}) as file:
        assert file.lines == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("suffix", "unpack"), [(".gz", gzip.decompress), (".xz", lzma.decompress)])
def test_the_name_says_whether_it_is_compressed(tmp_path: Path, suffix: str, unpack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / f"out{suffix}"
    with ResumableFile(path, JOB) as file:
        file.write("é", problem=False)
        file.finish()
    assert unpack(path.read_bytes()) == "é\n".encode()
    assert list(tmp_path.iterdir()) == [path]
