"""Uploads of mutated documents to a service in a process of its own."""

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from queue import SimpleQueue

from scripts.attack.mutations import MutatedDocument
from scripts.attack.target import ServiceProcess, percentile, running

CLIENTS = 4
SETTLED_SECONDS = 5.0
WARM_UP = 2000  # documents before memory counts: caches and pools fill, libraries are loaded
MAX_MEMORY_GROWTH = 20_000_000  # bytes
ACCEPTED = (200, 400, 413, 422)


def upload_all(documents: Iterable[MutatedDocument]) -> int:
    """Upload documents with several clients; print and return whether the service broke a promise."""
    with running(
        {"MT_CACHE_CHARACTERS": "0", "MT_MAX_DOCUMENT_CHARACTERS": "3000", "MT_FILE_RETENTION_SECONDS": "1"}
    ) as target:
        failures: list[str] = []
        livez: list[float] = []
        source = iter(documents)
        counts = _upload(target, _first(source, WARM_UP), failures, livez)
        before = _settled_memory(target)
        counts += _upload(target, source, failures, livez)
        after = _settled_memory(target)
        restarts = target.events("worker restarted", "worker hangs", "worker died")
        print(f"statuses {dict(counts)}, /livez p99 {1000 * percentile(livez, 99):.0f} ms")
        print(
            f"memory {before:,} bytes after {WARM_UP} documents, {after:,} at the end; {len(restarts)} worker restarts"
        )
        if restarts:
            failures.append(f"worker restarts: {restarts[:3]}")
        if after > before + MAX_MEMORY_GROWTH:
            failures.append(f"memory grew by {after - before:,} bytes")
        print(*failures[:20], sep="\n")
        return bool(failures)


def _first(source: Iterator[MutatedDocument], count: int) -> Iterator[MutatedDocument]:
    for _, document in zip(range(count), source, strict=False):
        yield document


def _upload(
    target: ServiceProcess, documents: Iterator[MutatedDocument], failures: list[str], livez: list[float]
) -> "Counter[int]":
    """Upload all documents; adds failures, and the latencies of /livez meanwhile."""
    counts: Counter[int] = Counter()
    queue: SimpleQueue[MutatedDocument | None] = SimpleQueue()
    slots = threading.Semaphore(2 * CLIENTS)

    def client(number: int) -> None:
        while (document := queue.get()) is not None:
            slots.release()
            answer = target.upload(document.name, document.content, caller=f"127.0.1.{number}", timeout=90)
            while answer.status == 503:  # the queue is full
                time.sleep(0.2)
                answer = target.upload(document.name, document.content, caller=f"127.0.1.{number}", timeout=90)
            counts[answer.status] += 1
            if answer.status not in ACCEPTED:
                failures.append(f"{answer.status} {answer.body[:200]!r} {document.name} {document.steps}")

    def probe(stop: threading.Event) -> None:
        while not stop.wait(0.05):
            livez.append(target.request("GET", "/livez", caller="127.0.0.4").seconds)

    stop = threading.Event()
    threads = [threading.Thread(target=client, args=(number,)) for number in range(1, CLIENTS + 1)]
    threads.append(threading.Thread(target=probe, args=(stop,)))
    for thread in threads:
        thread.start()
    for document in documents:
        slots.acquire()
        queue.put(document)
    for _ in range(CLIENTS):
        queue.put(None)
    for thread in threads[:-1]:
        thread.join()
    stop.set()
    threads[-1].join()
    return counts


def _settled_memory(target: ServiceProcess) -> int:
    time.sleep(SETTLED_SECONDS)
    return target.memory()
