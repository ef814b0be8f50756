"""HTTP client of `serve`: starts a service or uses a running one, and sends sentences at scheduled times."""

import asyncio
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from mt.errors import MTError

from .programs import ServerProgram, started
from .queueing import PATIENCE

FIRST_ANSWER = 60.0
"""Seconds to wait for the first answer of a service, which may share a busy machine."""


@dataclass(frozen=True)
class Client:
    """HTTP client of a service for one direction; each probe opens new connections."""

    url: str
    source: str
    target: str

    def run(self, lines: Sequence[str], arrivals: Sequence[float], bound: float) -> list[float]:
        """Return the latency of each line in seconds from its scheduled time; infinite if it was refused or late."""
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
    """Yield a client of the service at `url` or, if that is None, of a service that runs during the block.

    Raises: MTError if the service does not answer.
    """
    if url is not None:
        yield _client(url)
        return
    options = ["--model", str(model), "--port", "0", "--dtype", dtype, "--threads", str(threads), "--log-json", "true"]
    options += ["--cache-characters", "0"]  # a sentence of the sample is sent several times
    with started("service", ServerProgram("service", tuple(options)), output) as port:
        yield _client(f"http://127.0.0.1:{port}")


def _client(url: str) -> Client:
    """Return a client for the first direction of the service."""
    try:
        languages = httpx.get(f"{url}/languages", timeout=FIRST_ANSWER).raise_for_status().json()
    except (httpx.HTTPError, ValueError) as error:
        raise MTError(
            f"{url}: no service answers there ({error}); accepted: the address of python -m service"
        ) from error
    directions = ((language["code"], target) for language in languages for target in language["targets"])
    source, target = next(pair for pair in directions if pair[0] != pair[1])
    return Client(url, source, target)
