"""The processes of the service: SIGTERM ends them within the grace period; what they keep and reveal."""

import asyncio
import os
import re
import shutil
import signal
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.attack.payloads import SIZED_DOCUMENTS
from scripts.attack.target import MODEL, ServiceProcess, open_socket, running, sentence
from tests.service.running import Sent, connected, keep_asking

pytestmark = pytest.mark.attack

GRACE_SECONDS, CLOSE_SECONDS = 3, 12
ON_THE_WAY = 0.2  # seconds that a request may need to reach the service


def reload(target: ServiceProcess, model: Path) -> None:
    """Change the model and send SIGHUP."""
    with (model / "README.md").open("a") as readme:
        readme.write("changed\n")
    config = model / "config.json"
    config.write_bytes(config.read_bytes() + b"\n")
    target.process.send_signal(signal.SIGHUP)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Path(shutil.copytree(MODEL, tmp_path / "model"))


@pytest.mark.parametrize("delay", [0.0, 0.1, 0.3, 1.0, 2.0])
def test_sigterm_after_sighup(delay: float, model: Path) -> None:
    """While two clients translate, the model changes; the signals come one after the other."""
    answers: list[Sent] = []

    async def signalled() -> float:
        async with connected(target.url) as client:
            asking = asyncio.create_task(keep_asking(client, answers, 2, stopped=lambda: False))
            await asyncio.sleep(2 * ON_THE_WAY)
            reload(target, model)
            await asyncio.sleep(delay)
            told = time.monotonic()
            assert await asyncio.to_thread(target.stop, GRACE_SECONDS + CLOSE_SECONDS) == 0
            await asking
            return told

    with running({"MT_GRACE_SECONDS": str(GRACE_SECONDS), "MT_MODEL": str(model)}) as target:
        accepted = asyncio.run(signalled()) - ON_THE_WAY
        assert len(answers) > 4
        assert [answer.body for answer in answers if answer.status != 200 and answer.begun < accepted] == []
        assert target.events("not answered in time") == []


@pytest.mark.parametrize("delay", [0.3, 0.8, 1.5, 2.5])
def test_sigterm_during_start(delay: float) -> None:
    with running(listening=False) as target:
        time.sleep(delay)
        assert target.stop(CLOSE_SECONDS) == 0


def send(target: ServiceProcess, path: str, content: bytes, kind: str = "application/json") -> socket.socket:
    connection = open_socket(target)
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\n\r\n"
    connection.sendall(head.encode() + content)
    return connection


def long_stream(target: ServiceProcess, _: Path) -> object:
    text = " ".join(sentence(number) for number in range(2000)).encode()
    return send(target, "/translate", b'{"q": "' + text + b'", "source": "en", "target": "de", "stream": true}')


def long_document(target: ServiceProcess, _: Path) -> object:
    lines = "\n".join(sentence(number) for number in range(10_000)).encode()
    thread = threading.Thread(target=lambda: target.upload("a.txt", lines), daemon=True)
    thread.start()
    return thread


def parsed_document(target: ServiceProcess, _: Path) -> object:
    name, content = SIZED_DOCUMENTS["docx-nested"]
    thread = threading.Thread(target=target.upload, args=(name, content(1_000_000)), daemon=True)
    thread.start()
    return thread


def half_a_body(target: ServiceProcess, _: Path) -> object:
    connection = open_socket(target)
    connection.sendall(b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
    return connection


def unread_answers(target: ServiceProcess, _: Path) -> object:
    connection = open_socket(target)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 50)
    return connection


def is_worker(process: int) -> bool:
    """Return whether a process runs the worker: before its `exec`, a stopped child would also stop the service."""
    return b"service.workers.worker_process" in Path(f"/proc/{process}/cmdline").read_bytes()


def hanging_load(target: ServiceProcess, model: Path) -> object:
    """Begin a reload whose worker stops in the middle of its load."""
    before = set(target.processes())
    reload(target, model)
    deadline = time.monotonic() + 20
    while not (new := {each for each in set(target.processes()) - before if is_worker(each)}):
        assert time.monotonic() < deadline
    for process in new:
        os.kill(process, signal.SIGSTOP)
    return new


@pytest.mark.parametrize(
    "begin", [long_stream, long_document, parsed_document, half_a_body, unread_answers, hanging_load]
)
def test_sigterm_ends_the_service_whatever_is_in_progress(
    begin: Callable[[ServiceProcess, Path], object], model: Path
) -> None:
    """Work that takes longer than the grace period is broken off, and the exit status is 0."""
    with running({"MT_GRACE_SECONDS": str(GRACE_SECONDS), "MT_MODEL": str(model)}) as target:
        in_progress = begin(target, model)
        time.sleep(0.5)
        assert target.stop(GRACE_SECONDS + CLOSE_SECONDS) == 0
        del in_progress


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
