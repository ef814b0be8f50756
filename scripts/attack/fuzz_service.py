"""Mutated requests from several clients to a service in a process of its own, and what they must not do to it."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count, islice
from typing import TypeVar

from scripts.attack.target import BYSTANDER, PROBER, ServiceProcess, percentile, running, together

CLIENTS = 6
MAX_MEMORY_GROWTH = 20_000_000  # bytes that may remain
SETTLED_SECONDS = 20.0  # in which memory is returned
DEFECTS = ("failed", "worker died", "worker hangs", "worker restarted", "parser failed")  # log events

Mutated = TypeVar("Mutated")
Send = Callable[[ServiceProcess, Mutated, str], tuple[int, str]]
"""Function that sends a mutated request from an address. It returns the status, and the broken promise or ""."""


def attack_service(
    settings: Mapping[str, str], requests: Iterable[Mutated], send: Send[Mutated], warm_up: int
) -> list[str]:
    """Send all requests to a service with these settings. Print the statuses, and return the broken promises.

    Memory counts after the first `warm_up` requests: until then, parsers start, libraries are loaded, caches fill.
    """
    with running({"MT_CACHE_CHARACTERS": "0", **settings}) as target:
        left, problems = iter(requests), list[str]()
        send_all(target, islice(left, warm_up), send, problems)
        processes, memory = set(target.processes()), target.memory()
        begun = time.monotonic()
        statuses = send_all(target, left, send, problems)
        seconds = time.monotonic() - begun
        if target.translate("Where is the station?", caller=BYSTANDER).status != 200:
            problems.append("the service does not translate any more")
        deadline = time.monotonic() + SETTLED_SECONDS
        while (growth := target.memory() - memory) > MAX_MEMORY_GROWTH and time.monotonic() < deadline:
            time.sleep(0.5)
        if growth > MAX_MEMORY_GROWTH:
            problems.append(f"{growth / 1e6:.0f} MB remain")
        problems += map(str, target.events(*DEFECTS))
        lost = processes - set(target.processes())
        print(f"{seconds:.0f} s, statuses {dict(sorted(statuses.items()))}")
        print(f"memory {growth / 1e6:+.1f} MB, ended processes {len(lost)}")
        return problems


def send_all(
    target: ServiceProcess, requests: Iterator[Mutated], send: Send[Mutated], problems: list[str]
) -> Counter[int]:
    """Send all requests from several clients at once. Append broken promises to `problems`, and return the statuses."""
    statuses, lock, numbers = Counter[int](), threading.Lock(), count(1)
    livez: list[float] = []
    done = threading.Event()

    def client() -> None:
        while True:
            with lock:
                request, number = next(requests, None), next(numbers)
            if request is None:
                return
            status, problem = send(target, request, f"127.0.1.{number % 200 + 1}")
            with lock:
                statuses[status] += 1
                if problem:
                    problems.append(problem)

    def probe() -> None:
        while not done.wait(0.05):
            livez.append(target.request("GET", "/livez", caller=PROBER).seconds)

    probing = threading.Thread(target=probe, daemon=True)
    probing.start()
    together(*[client] * CLIENTS)
    done.set()
    probing.join()
    if livez:
        print(f"/livez p99 {1000 * percentile(livez, 99):.0f} ms")
    return statuses
