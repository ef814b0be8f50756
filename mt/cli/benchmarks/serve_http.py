"""HTTP client of the benchmark `serve`. It sends sentences at given times to a running service, or to one it starts."""

import asyncio
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from mt.errors import MTError

from .programs import started
from .queueing import PATIENCE

FIRST_ANSWER = 60.0
"""Maximum number of seconds to wait for the first answer of a service, whose machine may be busy."""


@dataclass(frozen=True)
class Client:
    """HTTP client of a service, for the direction from `source` to `target`. Each probe opens new connections."""

    url: str
    source: str
    target: str

    def run(self, lines: Sequence[str], arrivals: Sequence[float], bound: float) -> list[float]:
        """Send a line at each time of `arrivals`, and return the latency of each request in seconds.

        The latency is infinite if a request fails or takes longer than PATIENCE * `bound` seconds. If there are more
        arrivals than `lines`, the lines are sent again.
        """
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
    """Yield a client of the service at `url`. If `url` is None, start a service that runs during the context.

    Raises: MTError if the service does not start or does not answer.
    """
    if url is not None:
        yield _client(url)
        return
    options = ["--model", str(model), "--port", "0", "--dtype", dtype, "--threads", str(threads), "--log-json", "true"]
    options += ["--cache-characters", "0"]  # a sentence of the sample is sent several times
    with started("service", options, output / "service.log") as port:
        yield _client(f"http://127.0.0.1:{port}")


def _client(url: str) -> Client:
    """Return a client for the first direction of the service at `url`. Raises: MTError if no service answers."""
    try:
        languages = httpx.get(f"{url}/languages", timeout=FIRST_ANSWER).raise_for_status().json()
    except (httpx.HTTPError, ValueError) as error:
        raise MTError(
            f"no service answers at {url} ({error}); accepted: the address of a running python -m service"
        ) from error
    directions = ((language["code"], target) for language in languages for target in language["targets"])
    source, target = next(pair for pair in directions if pair[0] != pair[1])
    return Client(url, source, target)
