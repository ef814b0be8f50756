"""The HTTP side of `serve`: starts `python -m service`, or takes one that runs, and sends sentences at given times."""

import asyncio
import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from mt.errors import MTError

from .contender import ROOT
from .queueing import PATIENCE

START = 120.0  # seconds for a service to load its model


@dataclass(frozen=True)
class Client:
    """One event loop; each probe opens its connections anew."""

    url: str
    source: str
    target: str

    def run(self, lines: Sequence[str], arrivals: Sequence[float], bound: float) -> list[float]:
        """The latency of each line, from when it should have been sent; infinite where it was refused or came late."""
        return asyncio.run(self._run(lines, arrivals, bound))

    async def _run(self, lines: Sequence[str], arrivals: Sequence[float], bound: float) -> list[float]:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
        async with httpx.AsyncClient(base_url=self.url, limits=limits, timeout=PATIENCE * bound) as client:
            begun = time.perf_counter()

            async def ask(place: int) -> float:
                wanted = {"q": lines[place % len(lines)], "source": self.source, "target": self.target}
                try:
                    answer = await client.post("/translate", json=wanted)
                except httpx.HTTPError:
                    return math.inf
                return time.perf_counter() - begun - arrivals[place] if answer.is_success else math.inf

            tasks = []
            for place, arrival in enumerate(arrivals):
                await asyncio.sleep(max(0.0, begun + arrival - time.perf_counter()))
                tasks.append(asyncio.create_task(ask(place)))
            return await asyncio.gather(*tasks)


@contextmanager
def service(url: str | None, model: Path, dtype: str, threads: int, output: Path) -> Iterator[Client]:
    """A client of the service at `url`, or of one of our own until the block ends. Raises MTError."""
    if url is not None:
        yield _client(url)
        return
    log = output / "service.log"
    options = ["--model", str(model), "--port", "0", "--dtype", dtype, "--threads", str(threads), "--log-json", "true"]
    with log.open("w", encoding="utf-8") as file:
        process = subprocess.Popen([sys.executable, "-m", "service", *options], cwd=ROOT, stdout=file, stderr=file)
    try:
        yield _client(_listening(process, log))
    finally:
        process.terminate()
        process.wait(timeout=60)


def _client(url: str) -> Client:
    """Knows the first direction that the service offers."""
    try:
        languages = httpx.get(f"{url}/languages").raise_for_status().json()
    except (httpx.HTTPError, ValueError) as error:
        raise MTError(
            f"{url}: no service answers there ({error}); accepted: the address of python -m service"
        ) from error
    directions = ((each["code"], target) for each in languages for target in each["targets"])
    source, target = next(pair for pair in directions if pair[0] != pair[1])
    return Client(url, source, target)


def _listening(process: "subprocess.Popen[bytes]", log: Path) -> str:
    """The address that the service says it listens on."""
    until = time.monotonic() + START
    while time.monotonic() < until and process.poll() is None:
        for line in log.read_text(encoding="utf-8").splitlines():
            if '"listening"' in line:
                return f"http://127.0.0.1:{json.loads(line)['port']}"
        time.sleep(0.1)
    raise MTError(f"python -m service did not start; {log} ends with: {log.read_text(encoding='utf-8')[-300:]}")
