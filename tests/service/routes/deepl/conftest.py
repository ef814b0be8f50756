"""One application for all tests of DeepL's routes, and its clients: the official SDK, and none."""

from collections.abc import Iterator

import deepl
import httpx
import pytest

from tests.service.app_thread import PATIENCE
from tests.service.application import Application
from tests.service.doubles import WordModels


@pytest.fixture
def running(deepl_application: Application) -> Application:
    deepl_application.renew()
    return deepl_application


@pytest.fixture
def models(running: Application) -> WordModels:
    return running.models


@pytest.fixture
def client(running: Application) -> deepl.DeepLClient:
    return running.sdk()


@pytest.fixture
def raw(running: Application) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=running.url, headers=running.headers(), trust_env=False, timeout=PATIENCE) as client:
        yield client
