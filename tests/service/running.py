"""The real program under load: started, asked by many clients at once, with a list of what became of each request."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from scripts.attack.target import ServiceProcess, running
from scripts.attack.target import sentence as numbered_sentence
from tests.conftest import DEVICE

FROZEN = Path(__file__).resolve().parents[1] / "frozen" / "model"
LOCAL = {"OMP_NUM_THREADS": "1", "MT_THREADS": "1", "MT_DEVICE": DEVICE}
NUMBERS = count()


def started(
    model: Path = FROZEN, rigged: dict[str, Any] | None = None, **settings: str
) -> AbstractContextManager[ServiceProcess]:
    """`python -m service`, with an engine that is rigged like this, if it is; killed at the end if it still runs."""
    environment = {**LOCAL, "MT_MODEL": str(model), **settings, "RIGGED": json.dumps(rigged)}
    return running(environment, ready=False, program="tests.service.rigged_service" if rigged else "service")


@dataclass(frozen=True)
class Sent:
    """A request and what became of it: status 0 where no answer came. Times are by time.monotonic()."""

    begun: float
    ended: float
    status: int
    body: dict[str, Any]
    retry_after: str = ""

    @property
    def seconds(self) -> float:
        return self.ended - self.begun

    @property
    def text(self) -> Any:
        return self.body["translatedText"]


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[httpx.AsyncClient]:
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=300, limits=limits) as client:
        yield client


async def ask(client: httpx.AsyncClient, q: Any, **more: Any) -> Sent:
    """POST /translate from English to German. Never raises."""
    begun = time.monotonic()
    try:
        answer = await client.post("/translate", json={"q": q, "source": "en", "target": "de", **more})
        retry = answer.headers.get("retry-after", "")
        return Sent(begun, time.monotonic(), answer.status_code, answer.json(), retry)
    except httpx.HTTPError as error:
        return Sent(begun, time.monotonic(), 0, {"error": repr(error)})


async def keep_asking(
    client: httpx.AsyncClient,
    sent: list[Sent],
    clients: int,
    stopped: Callable[[], bool],
    text: Callable[[], Any] = lambda: numbered_sentence(next(NUMBERS)),  # nobody has sent it before
) -> None:
    """So many clients, each of which sends its next request when the last is answered with 200, and ends otherwise."""

    async def one() -> None:
        while not stopped():
            sent.append(await ask(client, text()))
            if sent[-1].status != 200:
                return

    await asyncio.gather(*(one() for _ in range(clients)))


async def figures(client: httpx.AsyncClient) -> dict[str, float]:
    text = (await client.get("/metrics")).text
    return {name: float(value) for name, value in re.findall(r"^(mt_\w+) ([\d.e+]+)$", text, re.MULTILINE)}


async def until(condition: Callable[[], object], seconds: float = 300) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.005)
