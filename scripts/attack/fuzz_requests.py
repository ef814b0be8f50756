"""Mutated requests over real sockets: `python -m scripts.attack.fuzz_requests --count 20000 --seed 1`.

A request is a seed of request_seeds.json whose fields, encoding, head and bytes are mutated, in this order, so that
mutations reach every layer of the service. No request may hang, be answered with 5xx (but 503 with Retry-After), or
stop a worker; afterwards the service must have returned the memory.
"""

import argparse
import json
import random
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from scripts.attack.fuzz_service import attack_service
from scripts.attack.target import ServiceProcess, open_socket

SEEDS: list[dict[str, Any]] = json.loads(Path(__file__).with_name("request_seeds.json").read_text("utf-8"))
SECONDS = 30  # without an answer, a request hangs

TEXTS = (
    *("", " ", "\n", "\x00", "a" * 3000, "dog " * 500, "\ud800", "\ufeff", "😀" * 50, "é" * 100, "%41%", "&" * 50),
    *("null", "true", "-1", "0", "99999999999", "1e999", "[]", "{}", '["a"]', '{"a": 1}', "[" * 500, "auto", "zz"),
    *(
        "<b>",
        "</b>",
        "<" * 200,
        "<![CDATA[",
        "<!--",
        "&#xffffff;",
        "{x}",
        "https://a.example/",
        "\u202e",
        "ܐܒܓ",
        "中" * 200,
    ),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 2**63, 1.5, float("inf"), [], {}, [[]], [None], [0] * 300, ["a"] * 1100),
    *({"": ""}, {"a": {"b": []}}, {"a": 1}, [["a"]] * 5, "a" * 101_000),
)
FULL: tuple[Any, ...] = (
    *(
        text * (99_000 // len(text))
        for text in ("The dog. ", "dog ", "<b>a</b>", "&", "собака ", "\n", "a\u0301", "😀")
    ),
    *(["The dog sees the cat."] * 1000, [f"The dog sees cat {number}." for number in range(1000)], ["<p>dog"] * 1000),
    *({f"dog {number}": "Hund" for number in range(999)}, [f"dog {number}" for number in range(999)]),
    "".join(f"dog {number}\tHund {number}\n" for number in range(9000)),
)
"""Values that reach a limit of length or number."""
FILE_BYTES = 9_900_000
TYPES = (
    *("application/json", "application/x-www-form-urlencoded", "multipart/form-data", "multipart/form-data; boundary="),
    *("text/plain", "", "application/json; charset=utf-16", "application/x-www-form-urlencoded; charset=punycode"),
    *("multipart/form-data; boundary=b; charset=utf-7", "multipart/form-data; boundary=" + "b" * 300, ";" * 2000),
)
HEADS = (
    *(b"Host: evil.example\r\n", b"Content-Length: -1\r\n", b"Content-Length: 10\r\n", b"Expect: 100-continue\r\n"),
    *(b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip\r\n", b"Content-Encoding: gzip\r\n", b": a\r\n"),
    *(b"X: " + b"a" * 70_000 + b"\r\n", b"X: a\r\n" * 300, b"Connection: close\r\n", b"Upgrade: websocket\r\n"),
    *(b"Authorization: DeepL-Auth-Key x\r\n", b"Authorization: " + b"a" * 5000 + b"\r\n", b"Origin: null\r\n"),
    *(b"X-Request-ID: \xff\r\n", b"X-Forwarded-For: " + b"1," * 500 + b"\r\n", b"Range: bytes=0-,1-,2-\r\n"),
)


@dataclass(frozen=True)
class RequestMutator:
    """Source of mutated requests, which depend on the random numbers only."""

    random: random.Random

    def request(self) -> bytes:
        """Return the bytes of a request."""
        seed = self.random.choice(SEEDS)
        fields = self._fields(dict(seed["fields"]))
        kind = self._kind(seed)
        body = b"" if kind == "query" else self._encoded(kind, fields, seed)
        path = quote(seed["path"])
        if kind == "query" or self.random.random() < 0.05:
            path += "?" + urlencode(fields, doseq=True, errors="replace")
        if self.random.random() < 0.05:
            path = self.random.choice((path + "/", "//" + path, path + "%00", path + "?" + "a&" * 1200, path * 40))
        head = f"{self._method(seed)} {path} HTTP/1.1\r\n".encode()
        return self._bytes(head + self._head(kind, body) + b"\r\n" + body)

    def _method(self, seed: dict[str, Any]) -> str:
        if self.random.random() < 0.95:
            return str(seed["method"])
        return self.random.choice(("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE", "XYZ"))

    def _kind(self, seed: dict[str, Any]) -> str:
        usual = "multipart" if "file" in seed else "query" if seed["method"] in ("GET", "HEAD", "OPTIONS") else "json"
        return usual if self.random.random() < 0.6 else self.random.choice(("json", "form", "multipart", "query"))

    def _fields(self, fields: dict[str, Any]) -> dict[str, Any]:
        for _ in range(self.random.choice((0, 1, 1, 2, 4))):
            name = self.random.choice([*fields, "q", "text", "target", "unknown"])
            match self.random.randrange(7):
                case 0:
                    fields.pop(name, None)
                case 1:
                    fields[name] = self.random.choice(VALUES)
                case 2:
                    fields[name] = self.random.choice(TEXTS)
                case 3:
                    fields[name] = [fields.get(name)] * self.random.choice((0, 1, 3, 60))
                case 4:
                    fields[name] = str(fields.get(name)) * self.random.choice((2, 30))
                case 5:
                    fields |= self.random.choice(SEEDS)["fields"]
                case 6:
                    fields[name] = self.random.choice(FULL)
        return fields

    def _encoded(self, kind: str, fields: dict[str, Any], seed: dict[str, Any]) -> bytes:
        if kind == "json":
            return json.dumps(fields).encode()
        if kind == "form":
            return urlencode(fields, doseq=True, errors="replace").encode()
        parts = [(name, "", value) for name, value in fields.items()]
        name, content = seed.get("file", ("a.txt", "a"))
        if content and self.random.random() < 0.03:
            content *= FILE_BYTES // len(content)
        name = self.random.choice((name, name, name, "a" * 2000 + ".txt", "..\\..", "a.exe", "", "é\x00.md", '";a="'))
        parts += [("file", f'; filename="{name}"', content)] * self.random.choice((1, 1, 1, 0, 2, 12))
        heads = [f'--b\r\nContent-Disposition: form-data; name="{part}"{more}\r\n\r\n' for part, more, _ in parts]
        lines = [f"{head}{value}\r\n" for head, (_, _, value) in zip(heads, parts, strict=True)]
        return "".join([*lines, "--b--\r\n"]).encode("utf-8", "surrogatepass")

    def _head(self, kind: str, body: bytes) -> bytes:
        types = {"json": TYPES[0], "form": TYPES[1], "multipart": "multipart/form-data; boundary=b", "query": ""}
        content_type = types[kind] if self.random.random() < 0.9 else self.random.choice(TYPES)
        head = b"Host: localhost\r\nConnection: close\r\n"
        head += f"Content-Type: {content_type}\r\n".encode() if content_type else b""
        head += b"Content-Length: %d\r\n" % len(body)
        return head if self.random.random() < 0.85 else head + self.random.choice(HEADS)

    def _bytes(self, request: bytes) -> bytes:
        """Change, repeat, insert or cut bytes of one request in six."""
        if self.random.random() < 5 / 6:
            return request
        place, count = self.random.randrange(len(request)), self.random.choice((1, 2, 10, 100))
        match self.random.randrange(4):
            case 0:
                return request[:place] + self.random.randbytes(count) + request[place + count :]
            case 1:
                return request[:place] + request[place : place + count] * 50 + request[place + count :]
            case 2:
                return request[:place] + self.random.randbytes(count) + request[place:]
            case _:
                return request[:place] + request[place + count :]


def send(target: ServiceProcess, request: bytes, caller: str) -> bytes:
    """Return all that is answered to a request. Raises: TimeoutError if the connection is not closed in time."""
    received = b""
    with open_socket(target, caller, SECONDS) as connection:
        try:
            connection.sendall(request)
            if len(request) % 16 == 0:
                connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(1 << 16):
                received += part
        except TimeoutError:
            raise
        except OSError:
            pass  # closed by the service
    return received


def problem_of(answer: bytes) -> tuple[int, str]:
    """Return the last status of an answer, and the promise that it breaks or ""."""
    answer = answer.removeprefix(b"HTTP/1.1 100 Continue\r\n\r\n")
    if not answer:
        return 0, ""
    status = int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else -1
    if status < 0:
        return status, "not HTTP"
    if status >= 500 and not (status in (503, 504) and (status == 504 or b"retry-after:" in answer.lower())):
        return status, f"status {status}"
    return status, ""


def send_mutated(target: ServiceProcess, key: str, caller: str) -> tuple[int, str]:
    """Send the request of a key such as "1/7". Return its status (0: no answer), and the broken promise or ""."""
    request = RequestMutator(random.Random(key)).request()
    try:
        status, problem = problem_of(send(target, request, caller))
    except OSError as error:
        status, problem = -1, f"hangs or is refused: {error!r}"
    return status, f"request {key}: {problem}: {request[:300]!r}" if problem else ""


def run(count: int, seed: int, warm_up: int = 8000) -> list[str]:
    """Send mutated requests to a service. Print the statuses, and return the broken promises."""
    settings = {"MT_READ_TIMEOUT_SECONDS": "1", "MT_REQUEST_TIMEOUT_SECONDS": "20", "MT_MAX_GLOSSARIES": "10"}
    keys = (f"{seed}/{number}" for number in range(-warm_up, count))
    return attack_service(settings, keys, send_mutated, warm_up)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000, help="number of requests")
    parser.add_argument("--seed", type=int, default=1, help="number of the sequence of requests")
    options = parser.parse_args()
    problems = run(options.count, options.seed)
    print("\n".join(problems[:20]) or "no problem")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
