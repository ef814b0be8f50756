"""Events of the log."""

import ast
import fcntl
import json
import subprocess
import sys
from pathlib import Path

import pytest

import service
from service.logs import LOG_EVENTS, QUEUED_LINES

LEVELS = ("debug", "info", "warning", "error")


def test_every_event_is_described_and_every_description_is_of_an_event() -> None:
    root = Path(service.__path__[0])
    events = set()
    for node in (node for path in root.rglob("*.py") for node in ast.walk(ast.parse(path.read_text("utf-8")))):
        match node:
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[ast.Constant(value=event), *_]):
                is_name = isinstance(node.func, ast.Name)
                events |= {event} if (name == "write" and is_name) or (name in LEVELS and not is_name) else set()
    assert events == set(LOG_EVENTS)


def start(program: str) -> "subprocess.Popen[bytes]":
    """Run lines of Python in a process whose stderr is a pipe of 4096 bytes."""
    beginning = "import logging, os, structlog\nfrom service.logs import open_logs\nlog = structlog.get_logger()\n"
    command = [sys.executable, "-c", beginning + program]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stderr
    fcntl.fcntl(process.stderr, fcntl.F_SETPIPE_SZ, 4096)
    return process


def test_a_closed_stderr_ends_no_request() -> None:
    program = """
with open_logs(as_json=True):
    read, write = os.pipe(); os.close(read); os.dup2(write, 2)
    log.info("request"); logging.warning("failed"); print("goes on")
"""
    with start(program) as process:
        assert process.communicate(timeout=60) == (b"goes on\n", b"")


@pytest.mark.parametrize(
    "last",
    [
        "from service.program import main; print(main(['--port', 'none']))",
        "from service.processes import start_child; print(start_child('loud')[0].wait(30))",
    ],
    ids=["the last error", "a child"],
)
def test_a_full_stderr_stops_neither_the_end_nor_a_child(last: str, tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text("import sys; print('a' * 1_000_000, file=sys.stderr); sys.exit(2)")
    program = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
try:
    os.set_blocking(2, False)
    while os.write(2, b"a"): pass
except BlockingIOError:
    os.set_blocking(2, True)
with open_logs(as_json=True):
    {last}
"""
    with start(program) as process:
        try:
            assert process.stdout and process.wait(60) == 0
            assert process.stdout.read() == b"2\n"
        finally:
            process.kill()


def test_lines_that_are_not_read_in_time_are_dropped_and_counted() -> None:
    count = 2 * QUEUED_LINES
    program = f"""
with open_logs(as_json=True):
    for number in range({count}):
        log.info("request", number=number)
    print(flush=True)
    input()
    logging.warning("stopped")
    raise ValueError("the end")
"""
    with start(program) as process:
        assert process.stdin and process.stdout and process.stderr
        assert process.stdout.readline() == b"\n"  # nothing of stderr is read until all lines are logged
        lines = [process.stderr.readline() for _ in range(QUEUED_LINES // 2)]
        process.stdin.write(b"\n")
        process.stdin.close()
        lines += process.stderr
    end = lines.index(b"Traceback (most recent call last):\n")
    *requests, dropped, stopped = map(json.loads, lines[:end])
    assert [line["number"] for line in requests] == list(range(len(requests)))
    assert len(requests) >= QUEUED_LINES
    assert (dropped["event"], dropped["lines"]) == ("log lines dropped", count - len(requests))
    assert stopped["event"] == "stopped"
    assert lines[-1] == b"ValueError: the end\n"
