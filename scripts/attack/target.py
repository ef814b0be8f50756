"""A real service process under attack, and a probe that measures what an uninvolved caller sees.

This module imports nothing of the product, so that the same attacks run against any version of it.
"""

import contextlib
import http.client
import json
import os
import queue
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "tests" / "frozen" / "model"
ATTACKER, BYSTANDER, PROBER = "127.0.0.2", "127.0.0.3", "127.0.0.4"  # a caller without a key is its address

LIVEZ_SECONDS = 0.1  # the promise: p99 of /livez during an attack
EXTRA_SECONDS = 0.1  # the promise: an uninvolved sentence takes at most twice its time alone plus this


@dataclass(frozen=True)
class Response:
    """Answer to a request; status 0 if none came."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    seconds: float

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def form(fields: Mapping[str, str], name: str = "", content: bytes = b"") -> tuple[bytes, dict[str, str]]:
    """Return the body and the headers of a multipart form, with a file if it has a name."""
    boundary = uuid4().hex
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'.encode()
        for field, value in fields.items()
    ]
    if name:
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        parts.append(head.encode() + content + b"\r\n")
    kind = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    return b"".join([*parts, f"--{boundary}--\r\n".encode()]), kind


@dataclass
class ServiceProcess:
    """`python -m service` in a process of its own."""

    process: subprocess.Popen[bytes]
    port: int
    logs: list[dict[str, Any]] = field(default_factory=list)
    reader: threading.Thread = field(init=False)  # of the log

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        caller: str = ATTACKER,
        timeout: float = 60,
    ) -> Response:
        """Send a request from the address `caller`. Never raises."""
        start = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout, source_address=(caller, 0))
        try:
            connection.request(method, path, body, dict(headers or {}))
            answer = connection.getresponse()
            content = answer.read()
            lowered = {name.lower(): value for name, value in answer.getheaders()}
            return Response(answer.status, content, lowered, time.monotonic() - start)
        except (OSError, http.client.HTTPException) as error:
            return Response(0, repr(error).encode(), {}, time.monotonic() - start)
        finally:
            connection.close()

    def post_json(self, path: str, content: Any, *, caller: str = ATTACKER, timeout: float = 60) -> Response:
        """Send JSON."""
        headers = {"Content-Type": "application/json"}
        return self.request("POST", path, json.dumps(content).encode(), headers, caller=caller, timeout=timeout)

    def translate(
        self, q: Any, fields: Mapping[str, Any] | None = None, *, caller: str = ATTACKER, timeout: float = 60
    ) -> Response:
        """Translate from English to German."""
        content = {"q": q, "source": "en", "target": "de", **(fields or {})}
        return self.post_json("/translate", content, caller=caller, timeout=timeout)

    def send_file(
        self,
        path: str,
        name: str,
        content: bytes,
        fields: Mapping[str, str] | None = None,
        *,
        method: str = "POST",
        caller: str = ATTACKER,
        timeout: float = 60,
    ) -> Response:
        """Send a file from English into German, with the fields of both dialects, as a multipart form."""
        languages = {"source": "en", "target": "de", "source_lang": "EN", "target_lang": "DE"}
        body, headers = form({**languages, **(fields or {})}, name, content)
        return self.request(method, path, body, headers, caller=caller, timeout=timeout)

    def upload(self, name: str, content: bytes, *, caller: str = ATTACKER, timeout: float = 60) -> Response:
        """Translate a file."""
        return self.send_file("/translate_file", name, content, caller=caller, timeout=timeout)

    def processes(self) -> list[int]:
        """Return the ids of the service's processes."""
        ids, pending = [], [self.process.pid]
        while pending:
            pid = pending.pop()
            ids.append(pid)
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                pending += map(int, task.read_text().split())
        return ids

    def memory(self) -> int:
        """Return the anonymous memory of the service's processes in bytes."""
        total = 0
        for pid in self.processes():
            try:
                status = Path(f"/proc/{pid}/status").read_text()
            except OSError:
                continue
            total += 1024 * sum(map(int, re.findall(r"^RssAnon:\s+(\d+) kB", status, re.MULTILINE)))
        return total

    def cpu_seconds(self) -> float:
        """Return the processor time of the service's processes, ended ones included."""
        ticks = 0
        for pid in self.processes():
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            ticks += sum(map(int, fields[11:15]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def loop_seconds(self) -> float:
        """Return the processor time of the thread that runs the event loop."""
        return int(Path(f"/proc/{self.process.pid}/schedstat").read_text().split()[0]) / 1e9

    def events(self, *names: str) -> list[dict[str, Any]]:
        """Return the log lines of these events."""
        return [line for line in self.logs if line.get("event") in names]

    def stop(self, seconds: float = 40) -> int:
        """Send SIGTERM and return the exit status. Raises subprocess.TimeoutExpired if the process does not end."""
        self.process.send_signal(signal.SIGTERM)
        return self.wait(seconds)

    def wait(self, seconds: float = 60) -> int:
        """Return the exit status once the process has ended and its log is complete."""
        status = self.process.wait(seconds)
        self.reader.join(5)
        return status


@contextlib.contextmanager
def running(
    settings: Mapping[str, str] | None = None,
    *,
    ready: bool = True,
    descriptors: int | None = None,
    listening: bool = True,
    program: str = "service",
) -> Iterator[ServiceProcess]:
    """Start the service with settings such as MT_DATABASE, wait until it is ready, and kill it at the end.

    `program` is the module that is run.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MT_")}
    environment |= {"MT_MODEL": str(MODEL), "MT_PORT": "0", "MT_LOG_JSON": "true", "PYTHONPATH": str(ROOT)}
    environment |= settings or {}

    def limit() -> None:
        if descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    if program == "service" and "RECORDED_LOOP" in environment:
        program = "tests.service.recorded_service"
    process = subprocess.Popen(
        [sys.executable, "-m", program], cwd=ROOT, env=environment, stderr=subprocess.PIPE, preexec_fn=limit
    )
    target = ServiceProcess(process, 0)
    ports: queue.Queue[int] = queue.Queue()

    def read() -> None:
        assert process.stderr is not None
        for line in process.stderr:
            try:
                entry = json.loads(line)
            except ValueError:
                entry = {"event": "text", "text": line.decode(errors="replace")}
            target.logs.append(entry)
            if len(target.logs) > 100_000:
                del target.logs[:50_000]
            if entry.get("event") == "listening":
                ports.put(int(entry["port"]))
        ports.put(0)

    target.reader = threading.Thread(target=read, daemon=True)
    target.reader.start()
    try:
        if listening:
            target.port = ports.get(timeout=300)
            assert target.port, target.logs[-5:]
        if listening and ready:
            deadline = time.monotonic() + 120
            while target.request("GET", "/readyz").status != 200:
                assert process.poll() is None and time.monotonic() < deadline, target.logs[-5:]
                time.sleep(0.05)
        yield target
    finally:
        process.kill()
        process.wait()
        target.reader.join(5)


def percentile(values: list[float], percent: float) -> float:
    """Return the smallest value that `percent` of all do not exceed."""
    return sorted(values)[max(0, -int(-len(values) * percent // 100) - 1)]


NOUNS = ("dog", "cat", "man", "woman", "hotel", "train")


def sentence(number: int) -> str:
    """Return a sentence that differs from all others, so that no cache answers it."""
    return f"The {NOUNS[number % 6]} sees the {NOUNS[number // 6 % 6]} {number}."


@dataclass
class Probe:
    """Latencies of /livez and of an uninvolved caller's sentences, in seconds, measured by two threads."""

    target: ServiceProcess
    livez: list[float] = field(default_factory=list)
    sentences: list[float] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    work: list[float] = field(default_factory=list)  # processor time of the event loop during each /livez

    def run(self, stop: threading.Event) -> list[threading.Thread]:
        def ask_livez() -> None:
            while not stop.is_set():
                before = self.target.loop_seconds()
                answer = self.target.request("GET", "/livez", caller=PROBER, timeout=120)
                self.work.append(self.target.loop_seconds() - before)
                self.livez.append(answer.seconds)
                if answer.status != 200:
                    self.failures.append(f"/livez {answer.status} {answer.body[:80]!r}")
                stop.wait(0.02)

        def ask_sentences() -> None:
            number = int(time.monotonic() * 1000) % 1_000_000
            while not stop.is_set():
                number += 1
                answer = self.target.translate(sentence(number), caller=BYSTANDER, timeout=120)
                self.sentences.append(answer.seconds)
                if answer.status != 200:
                    self.failures.append(f"/translate {answer.status} {answer.body[:80]!r}")
                stop.wait(0.02)

        threads = [threading.Thread(target=work, daemon=True) for work in (ask_livez, ask_sentences)]
        for thread in threads:
            thread.start()
        return threads


@dataclass(frozen=True)
class Impact:
    """Effect of an attack on others: p99 of /livez, p95 of an uninvolved sentence alone and meanwhile (seconds)."""

    livez: float
    alone: float
    meanwhile: float
    failures: tuple[str, ...]
    work: float  # p90 of the processor time of the event loop during a /livez: also tells on a busy machine

    def problems(self) -> list[str]:
        """Return the broken promises."""
        broken = list(self.failures[:3])
        if self.livez > LIVEZ_SECONDS:
            broken.append(f"/livez p99 {1000 * self.livez:.0f} ms")
        if self.meanwhile > 2 * self.alone + EXTRA_SECONDS:
            broken.append(f"a sentence {1000 * self.meanwhile:.0f} ms, alone {1000 * self.alone:.0f} ms")
        return broken

    def __str__(self) -> str:
        return (
            f"/livez p99 {1000 * self.livez:.0f} ms (work p90 {1000 * self.work:.0f} ms), "
            f"sentence alone {1000 * self.alone:.0f} ms, meanwhile {1000 * self.meanwhile:.0f} ms, "
            f"failures {len(self.failures)}"
        )


def measure(
    target: ServiceProcess, attack: Callable[[], None], alone_seconds: float = 2, least_seconds: float = 1
) -> Impact:
    """Measure the service alone, then run the attack and measure again while it runs."""
    probes = []
    phases: tuple[Callable[[], None], ...] = (lambda: time.sleep(alone_seconds), attack)
    for work in phases:
        probe, stop = Probe(target), threading.Event()
        threads = probe.run(stop)
        start = time.monotonic()
        work()
        time.sleep(max(0.0, least_seconds - (time.monotonic() - start)))
        stop.set()
        for thread in threads:
            thread.join(120)
        probes.append(probe)
    alone, meanwhile = probes
    return Impact(
        livez=percentile(meanwhile.livez, 99),
        alone=percentile(alone.sentences, 95),
        meanwhile=percentile(meanwhile.sentences, 95),
        failures=tuple(meanwhile.failures),
        work=percentile(meanwhile.work, 90),
    )


def glossary(entries: int = 1) -> dict[str, str]:
    """Return the body of a glossary from English into German with so many entries."""
    tsv = "\n".join(f"word {number}\tWort {number}" for number in range(entries))
    return {"name": "a", "source_lang": "en", "target_lang": "de", "entries": tsv, "entries_format": "tsv"}


def together(*calls: Callable[[], object]) -> None:
    """Run calls in threads and wait for all."""
    threads = [threading.Thread(target=call, daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def open_socket(target: ServiceProcess, caller: str = ATTACKER, timeout: float = 30) -> socket.socket:
    """Open a TCP connection to the service."""
    return socket.create_connection(("127.0.0.1", target.port), timeout, source_address=(caller, 0))
