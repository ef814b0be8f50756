"""What of service/ray_app.py needs no cluster."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI, Request
from starlette.testclient import TestClient

from service import ray_app

TRACEBACK = """The deployment failed to start 3 times in a row. Error:
Traceback (most recent call last):
  File "teams.py", line 59, in open
mt.errors.ModelError: these models cannot be served
  - a: no model here
  - b: no model here"""


def test_without_ray_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(ray_app, "ray", None)
    assert ray_app.main(["--model", "m"]) == 2
    assert capsys.readouterr().err == "error: ray is not installed; accepted: pip install 'mt-service[ray]'\n"


def test_the_message_of_a_replica_that_fails_is_found_in_its_traceback() -> None:
    said = ["", "The deployment is UPDATING", TRACEBACK]
    assert ray_app.problem_of(said) == "these models cannot be served\n  - a: no model here\n  - b: no model here"
    assert ray_app.problem_of(["", "ValueError: something else"]) == ""


def test_requests_have_what_the_lifespan_yields() -> None:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, Any]]:
        yield {"fleet": "there"}

    app = FastAPI(lifespan=lifespan)

    @app.get("/")
    async def read(request: Request) -> str:
        request.state.fleet += " once"
        return str(request.state.fleet)

    with TestClient(ray_app.WithState(app)) as client:
        assert [client.get("/").json() for _ in range(2)] == ["there once", "there once"]


def test_paths_are_the_same_wherever_a_replica_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = ray_app.load_settings({"model": "a,b", "database": "keys.db"})
    found = ray_app.resolved(given)
    assert found.model == (tmp_path / "a", tmp_path / "b") and found.database == tmp_path / "keys.db"
    assert found.models is None


def test_replicas_are_as_many_as_have_two_batches_each() -> None:
    one, two = (
        SimpleNamespace(aggregated_metrics={"batches": {"a": 5.0, "b": 2.0}}),
        SimpleNamespace(aggregated_metrics=None),
    )
    assert ray_app.replicas_for(one) == (3.5, {}) and ray_app.replicas_for(two) == (0.0, {})
