"""Clients of DeepL's dialect: the official SDK, and none."""

from collections.abc import Callable, Iterator
from typing import Any

import deepl
import httpx
import pytest

from tests.service.capitals import Running


@pytest.fixture
def start() -> Iterator[Callable[..., Running]]:
    started: list[Running] = []

    def begin(**options: Any) -> Running:
        started.append(Running(**options))
        return started[-1]

    yield begin
    for running in started:
        running.stop()


@pytest.fixture(scope="module")
def served() -> Iterator[Running]:
    served = Running()
    yield served
    served.stop()


@pytest.fixture
def running(served: Running) -> Running:
    served.renew()
    return served


@pytest.fixture
def client(running: Running) -> deepl.DeepLClient:
    return running.client()


@pytest.fixture
def raw(running: Running) -> Iterator[httpx.Client]:
    """Without the SDK."""
    headers = {"Authorization": f"DeepL-Auth-Key {running.keys['rich']}"}
    with httpx.Client(base_url=running.url, headers=headers, trust_env=False, timeout=30) as client:
        yield client


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deepl.http_client._BackoffTimer, "BACKOFF_INITIAL", 0.05)
    monkeypatch.setattr(deepl.http_client._BackoffTimer, "BACKOFF_MULTIPLIER", 1.0)
