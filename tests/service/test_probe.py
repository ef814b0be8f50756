"""`python -m service.probe`, as a container's HEALTHCHECK runs it."""

import http.server
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from tests.service.conftest import Service, environment

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("asyncio", "fastapi", "mt", "pydantic", "structlog", "torch")


def probe(**settings: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "service.probe"], cwd=ROOT, env=environment(settings), capture_output=True, text=True
    )


@pytest.fixture
def unwell() -> Iterator[int]:
    """The port of a service that is not ready."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            assert self.path == "/readyz"
            self.send_error(503)

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def test_a_service_that_is_ready(service: Service) -> None:
    port = str(service.logged("listening")["port"])
    for host in ("0.0.0.0", "127.0.0.1"):
        done = probe(MT_PORT=port, MT_HOST=host)
        assert (done.returncode, done.stderr) == (0, "")


def test_one_that_is_not(unwell: int) -> None:
    assert probe(MT_PORT=str(unwell)).returncode == 1


def test_none() -> None:
    done = probe(MT_PORT="1")
    assert done.returncode == 1 and done.stderr.startswith("not ready: ") and "Traceback" not in done.stderr


def test_it_is_light() -> None:
    """It runs every few seconds: nothing that takes time, or memory, comes along."""
    code = f"import sys, service.probe; print(*[name for name in {HEAVY} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True).stdout == "\n"
