"""A single sentence of one caller beside one busy caller (ATTACKS 10).

`python -m scripts.attack.fairness [MODEL] [ROW ...]` prints the table of all rows, or of rows with these names.
"""

import json
import math
import selectors
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from scripts.attack.target import (
    ATTACKER,
    BYSTANDER,
    EXTRA_SECONDS,
    MODEL,
    ServiceProcess,
    open_socket,
    percentile,
    running,
    sentence,
)

SAMPLES = 60
LONGEST_SECONDS = 30.0  # of the measurement beside a busy caller
WARM_UP_SECONDS = 1.0  # from the begin of the busy requests to the first measurement
MAX_CONNECTIONS_AT_ONCE = 50  # opened before answers are read; fewer than the system's queue of new connections
RETRY_SECONDS = 0.05  # until the busy caller sends a request again that was refused

Content = Callable[[int], Mapping[str, Any]]
"""Function from a number to the fields of a request; other numbers give other texts, which no cache answers."""


@dataclass(frozen=True)
class BusyLoad:
    """Requests of a busy caller, of which `concurrent` are in progress at any time."""

    concurrent: int
    content: Content


def sentences(number: int, size: int) -> list[str]:
    return [sentence(number * size + place) for place in range(size)]


LOADS = {
    "8 x 1,000 sentences": BusyLoad(8, lambda number: {"q": sentences(number, 1000)}),
    "1,000 single requests": BusyLoad(1000, lambda number: {"q": sentence(number)}),
    "98,000 characters without spaces": BusyLoad(
        1, lambda number: {"q": "".join(chr(0x4E00 + (number + place * place) % 5000) for place in range(98_000))}
    ),
    "16,000 x 'I GO. '": BusyLoad(1, lambda number: {"q": "I GO. " * 16_000 + str(number)}),
    "4 x 200, beam 10": BusyLoad(4, lambda number: {"q": sentences(number, 200), "beam_size": 10, "alternatives": 10}),
}
KINDS: dict[str, Content] = {
    "plain": lambda number: {"q": sentence(number)},
    "beam 2": lambda number: {"q": sentence(number), "beam_size": 2},
    "alternatives": lambda number: {"q": sentence(number), "alternatives": 3},
    "html": lambda number: {"q": f"<p>The <b>{sentence(number)[4:-1]}</b>.</p>", "format": "html"},
    "glossary": lambda number: {"q": sentence(number), "glossary": {"sees": "erblickt"}},
}
ROWS = [(load, "plain") for load in LOADS] + [("4 x 200, beam 10", kind) for kind in KINDS if kind != "plain"]


def body(content: Mapping[str, Any]) -> bytes:
    return json.dumps({"source": "en", "target": "de", **content}).encode()


@contextmanager
def busy(target: ServiceProcess, load: BusyLoad) -> Iterator[list[int]]:
    """Keep `load` in progress from one address. Yields a list that grows by the status of each answer."""
    statuses: list[int] = []
    stop, numbers = threading.Event(), count(1)

    def begin(selector: selectors.BaseSelector) -> None:
        connection = open_socket(target, ATTACKER)
        content = body(load.content(next(numbers)))
        head = f"POST /translate HTTP/1.0\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        connection.sendall(head.encode() + content)
        selector.register(connection, selectors.EVENT_READ, bytearray())

    def run() -> None:
        with selectors.DefaultSelector() as selector:
            while not stop.is_set():
                for _ in range(min(load.concurrent - len(selector.get_map()), MAX_CONNECTIONS_AT_ONCE)):
                    begin(selector)
                refused = False
                for key, _ in selector.select(0.01):
                    try:
                        data = key.fileobj.recv(1 << 20)  # type: ignore[union-attr]
                    except OSError:
                        data = b""
                    if data:
                        key.data.extend(data[: 64 - len(key.data)])
                        continue
                    status = int((key.data.split() or [b"", b"0"])[1])
                    statuses.append(status)
                    refused |= status != 200
                    selector.unregister(key.fileobj)
                    key.fileobj.close()  # type: ignore[union-attr]
                if refused:
                    stop.wait(RETRY_SECONDS)
            for key in list(selector.get_map().values()):
                key.fileobj.close()  # type: ignore[union-attr]

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield statuses
    finally:
        stop.set()
        thread.join()


def latencies(
    target: ServiceProcess, kind: str, numbers: Iterator[int], seconds: float = LONGEST_SECONDS
) -> list[float]:
    """Return the seconds of SAMPLES requests of an uninvolved caller, or of fewer if they take too long."""
    measured: list[float] = []
    stop = time.monotonic() + seconds
    while len(measured) < SAMPLES and (time.monotonic() < stop or len(measured) < 3):
        content = KINDS[kind](next(numbers))
        start = time.monotonic()
        answer = target.request(
            "POST", "/translate", body(content), {"Content-Type": "application/json"}, caller=BYSTANDER, timeout=120
        )
        measured.append(time.monotonic() - start if answer.status == 200 else math.inf)
        time.sleep(0.01)
    return measured


@dataclass(frozen=True)
class FairnessRow:
    """Latencies in seconds."""

    alone: list[float]
    meanwhile: list[float]
    statuses: list[int]  # of the busy caller

    @property
    def within(self) -> bool:
        """Whether the promise holds."""
        return percentile(self.meanwhile, 95) <= 2 * percentile(self.alone, 95) + EXTRA_SECONDS

    def __str__(self) -> str:
        columns = [
            f"{1000 * percentile(values, percent):.0f}"  # inf if requests failed
            for values in (self.alone, self.meanwhile)
            for percent in (50, 95, 100)
        ]
        answers = {status: self.statuses.count(status) for status in sorted(set(self.statuses))}
        return " | ".join([*columns, "yes" if self.within else "NO", f"{len(self.meanwhile)} samples, {answers}"])


def measure(target: ServiceProcess, load: str, kind: str, numbers: Iterator[int]) -> FairnessRow:
    """Measure an uninvolved caller's sentences alone and beside a busy caller."""
    latencies(target, kind, numbers, 1)
    alone = latencies(target, kind, numbers)
    with busy(target, LOADS[load]) as statuses:
        time.sleep(WARM_UP_SECONDS)
        return FairnessRow(alone, latencies(target, kind, numbers), statuses)


def main(arguments: list[str]) -> None:
    model = arguments.pop(0) if arguments and Path(arguments[0]).is_dir() else str(MODEL)
    print("busy caller | sentence | alone p50 ms | p95 | max | meanwhile p50 ms | p95 | max | within | notes")
    for load, kind in ROWS:
        if arguments and not any(name in (load, kind) for name in arguments):
            continue
        with running({"MT_CACHE_CHARACTERS": "0", "MT_MODEL": model}) as service:
            print(f"{load} | {kind} | {measure(service, load, kind, count(10_000_000))}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
