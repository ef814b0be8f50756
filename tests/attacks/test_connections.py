"""Clients that hold connections, bodies and descriptors."""

import contextlib
import time

import pytest

from scripts.attack.target import BYSTANDER, LIVEZ_SECONDS, ServiceProcess, measure, open_socket, running

pytestmark = pytest.mark.attack
HEAD = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_idle_connections_leave_descriptors_for_probes() -> None:
    with running(descriptors=64) as target:
        held = [open_socket(target) for _ in range(150)]
        before = len(target.logs)
        answers = [target.request("GET", "/livez", caller=BYSTANDER, timeout=15) for _ in range(5)]
        assert [answer.status for answer in answers] == [200] * 5
        assert max(answer.seconds for answer in answers) < 1
        time.sleep(3)
        assert len(target.logs) - before < 200
        assert held


def send_all(target: ServiceProcess, message: bytes, count: int) -> None:
    """Send `message` on `count` connections, and read the answers for a while."""
    held = []
    for _ in range(count):
        connection = open_socket(target)
        with contextlib.suppress(OSError):
            connection.sendall(message)
        held.append(connection)
    end = time.monotonic() + 3
    for connection in held:
        connection.settimeout(max(0.01, end - time.monotonic()))
        with contextlib.suppress(OSError):
            while connection.recv(1 << 20):
                pass
        connection.close()


@pytest.mark.parametrize(
    ("message", "count"),
    [
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 800_000, 4),  # 0.5 s for each packet
        (HEAD + b"a:\r\n" * 16_000 + b"\r\n", 60),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"a:\r\n" * 16_000 + b"\r\n", 60),
        (b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20, 400),
        (b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" * 5, 400),
    ],
    ids=["chunks of a byte", "headers", "trailers", "/livez", "/metrics"],
)
def test_what_arrives_at_once_delays_no_probe(message: bytes, count: int) -> None:
    with running({"MT_CACHE_CHARACTERS": "0"}) as target:
        impact = measure(target, lambda: send_all(target, message, count))
        print(impact)
        assert impact.work < LIVEZ_SECONDS and not impact.failures
