"""Clients that hold connections, bodies and descriptors (SECURITY 10, 13; ATTACKS 8, 9, 13)."""

import contextlib
import socket
import time

import pytest

from tests.attacks.target import BYSTANDER, measure, open_socket, running

pytestmark = pytest.mark.attack


def test_clients_that_do_not_read_are_closed() -> None:
    with running() as target:
        request = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20
        sockets: list[socket.socket] = []

        def attack() -> None:
            for _ in range(300):
                connection = open_socket(target)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                connection.settimeout(5)
                with contextlib.suppress(OSError):
                    connection.sendall(request)
                sockets.append(connection)
            time.sleep(15)

        impact = measure(target, attack)
        print(impact)
        assert impact.problems() == []
        closed = 0
        for connection in sockets:
            connection.settimeout(5)
            try:
                while connection.recv(1 << 20):
                    pass
                closed += 1
            except ConnectionError:
                closed += 1
            except TimeoutError:
                pass
        assert closed == len(sockets)


def test_unfinished_bodies_of_two_addresses_leave_room_for_a_third() -> None:
    with running() as target:
        head = (
            b"POST /translate_file HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=b\r\n"
            b"Content-Length: 9900000\r\n\r\n"
        )
        held = []
        for size in (*[9_800_000] * 10, 2_000_000):  # for each address half of 200,000,000 bytes, to the byte
            for address in ("127.0.0.20", "127.0.0.21"):
                connection = open_socket(target, address)
                connection.sendall(head)
                with contextlib.suppress(OSError):  # refused
                    connection.sendall(b"a" * size)
                held.append(connection)
        time.sleep(2)
        answer = target.translate("Where is the station?", caller=BYSTANDER)
        assert answer.status == 200, answer.body


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


def test_host_is_not_believed() -> None:
    with running() as target:
        answer = target.request("GET", "/livez", headers={"Host": "evil.example"})
        assert answer.status in (200, 400)
        uploaded = target.upload("a.txt", b"Where is the station?")
        assert "evil" not in uploaded.json["translatedFileUrl"]
