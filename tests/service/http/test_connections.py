"""Numbers of connections and descriptors, and unread answers."""

import asyncio
import contextlib
import socket
import subprocess
import sys

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from service.http.connections import PER_CONNECTION, ConnectionLimiter, TimedConnection


def limits(soft: int, hard: int, connections: int, raised: bool) -> tuple[int, int]:
    """Return the limit of connections and of descriptors in a process with these limits."""
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from service.http.connections import connection_limit, raise_descriptor_limit
if {raised}: raise_descriptor_limit({connections})
print(connection_limit({connections}), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    most, descriptors = map(int, done.stdout.split())
    return most, descriptors


@pytest.mark.parametrize(("soft", "connections"), [(64, 900), (256, 900), (1024, 900), (8192, 900)])
def test_each_connection_has_a_descriptor_for_a_file(soft: int, connections: int) -> None:
    most, descriptors = limits(soft, soft, connections, raised=False)
    assert 1 <= most <= connections
    assert PER_CONNECTION * most < descriptors


def test_the_limit_of_descriptors_is_raised_as_far_as_the_system_allows() -> None:
    assert limits(1024, 4096, 900, raised=True)[0] == 900
    assert limits(64, 64, 900, raised=True)[1] == 64


async def answer_megabyte(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": bytes(1_000_000)})


async def closed_connections(limit: int, addresses: list[str]) -> list[str]:
    """Let each address request a megabyte that it does not read; return the addresses of the closed connections."""
    loop, limiter = asyncio.get_running_loop(), ConnectionLimiter(60, 100, unread_bytes=limit)
    config, state = uvicorn.Config(answer_megabyte, lifespan="off"), ServerState()
    config.load()
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        async with await loop.create_server(lambda: TimedConnection(limiter, config, state, {}), sock=listener):
            held = []
            for address in addresses:
                connection = socket.socket()
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.bind((address, 0))
                connection.setblocking(False)
                await loop.sock_connect(connection, listener.getsockname())
                held.append(connection)
            before = list(limiter.open)
            while len(before) < len(held):
                await asyncio.sleep(0)
                before = list(limiter.open)
            for connection in held:
                await loop.sock_sendall(connection, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            while not all(one.cycle and one.cycle.response_started for one in before):
                await asyncio.sleep(0)
            await asyncio.sleep(0.05)
            closed = [one.address for one in before if one not in limiter.open]
            for connection in held:
                with contextlib.suppress(OSError):
                    connection.close()
            for one in list(limiter.open):
                one.abort()
            return closed


def test_unread_answers_are_limited_for_the_address_with_most_of_them() -> None:
    addresses = ["127.0.0.2"] * 5 + ["127.0.0.3"]
    assert asyncio.run(closed_connections(3_500_000, addresses)) == ["127.0.0.2"] * 3
    assert asyncio.run(closed_connections(10_000_000, addresses)) == []
