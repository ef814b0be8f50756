"""Answers to errors that no route expects."""

import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from service.errors import install_error_handlers


@asynccontextmanager
async def with_request_id(_: FastAPI) -> AsyncIterator[dict[str, str]]:
    yield {"request_id": "1"}


@pytest.mark.parametrize(("number", "status"), [(errno.ENOSPC, 507), (errno.EDQUOT, 507), (errno.EIO, 500)])
def test_a_full_disk_is_answered_with_507(number: int, status: int) -> None:
    app = FastAPI(lifespan=with_request_id)
    install_error_handlers(app)

    @app.get("/")
    async def fail() -> None:
        raise OSError(number, "a reason")

    with TestClient(app, raise_server_exceptions=False) as client:
        answer = client.get("/")
    assert answer.status_code == status
    assert "a reason" not in answer.text
