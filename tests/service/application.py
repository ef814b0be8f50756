"""The whole application on a socket, in a thread of this process, over models that a person can follow."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import deepl
import httpx
from fastapi import FastAPI

from service.access.api_keys import make_key
from service.app import create_app
from service.http.connections import Connections
from service.services import Services
from service.settings import Settings
from service.workers.fleet import Fleet
from tests.service.app_thread import PATIENCE, AppThread
from tests.service.doubles import Guesses, UnreliableDatabase, WordModels, WordOrder, upper

Replaced = Callable[[WordModels], Mapping[str, Any]]
"""Function from the models to services by name."""


class Application(AppThread):
    """A running service. `keys` are "rich", without a quota, and "poor", with 20 characters."""

    detector: type[Any] = Guesses

    def __init__(
        self, ways: Mapping[str, WordOrder] = {"en-de": upper}, replaced: Replaced = lambda _: {}, **settings: Any
    ) -> None:
        """`ways` are the directions and how each writes. `replaced` returns services in place of the usual ones."""
        database = settings.pop("database", Path("unused"))
        self.settings = Settings(model=(Path("unused"),), database=database, **settings)
        self.database = UnreliableDatabase.open(None)
        self.keys: dict[str, str] = {}
        self.models: WordModels
        self.services: Services
        self.ways, self._replaced = ways, replaced
        super().__init__(
            self._app,
            http=Connections(self.settings.read_timeout_seconds, 900).protocol(),
            ws="none",
            proxy_headers=False,
            timeout_keep_alive=3600,
            root_path=self.settings.root_path,
        )
        self.client = httpx.Client(base_url=self.url, trust_env=False, timeout=PATIENCE)
        self.renew()

    def _app(self) -> FastAPI:
        self.models = self.make_models()
        app = create_app(self.settings, cast(Fleet, self.models), self.database, self.detector)
        lifespan = app.router.lifespan_context

        @asynccontextmanager
        async def with_replaced(app: FastAPI) -> AsyncIterator[dict[str, Services]]:
            async with lifespan(app) as state:
                assert state is not None
                self.services = replace(state["services"], **self._replaced(self.models))
                yield {"services": self.services}

        app.router.lifespan_context = with_replaced
        return app

    def make_models(self) -> WordModels:
        return WordModels(self.ways)

    def renew(self) -> None:
        """Make new keys, which own nothing, and let the models forget what they were asked."""
        self.do(self.models.forget)
        for name, quota in (("rich", None), ("poor", 20)):
            make = partial(make_key, name=f"{name} {uuid4()}", quota=quota)
            self.keys[name], _ = self.database.run_sync(make)

    def post(self, path: str, body: Any, status: int = 200, key: str = "") -> Any:
        response = self.client.post(path, json=body, headers=self.headers(key) if key else {})
        assert response.status_code == status, response.text
        return response.json()

    def headers(self, key: str = "rich") -> dict[str, str]:
        return {"Authorization": f"DeepL-Auth-Key {self.keys.get(key, key)}"}

    def sdk(self, key: str = "rich") -> deepl.DeepLClient:
        return sdk(self.url, self.keys.get(key, key))

    def spent(self, key: str) -> int:
        return int(self.client.get("/v2/usage", headers=self.headers(key)).json()["character_count"])

    def stop(self) -> None:
        self.do(self.models.opened.set)
        self.client.close()
        super().stop()
        self.database.close()


def sdk(url: str, key: str) -> deepl.DeepLClient:
    client = deepl.DeepLClient(key, server_url=url)
    client._client._session.trust_env = False
    return client


def single(result: deepl.TextResult | list[deepl.TextResult]) -> deepl.TextResult:
    """Return the result for one text, which the SDK gives without a list."""
    assert isinstance(result, deepl.TextResult)
    return result


def several(results: deepl.TextResult | list[deepl.TextResult]) -> list[deepl.TextResult]:
    assert isinstance(results, list)
    return results
