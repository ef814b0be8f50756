"""Which requests the gate counts, and which it refuses once the service shuts down."""

import asyncio

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from service.http.admission import RequestGate
from service.http.middleware import GateMiddleware

COUNTED = [("GET", "/documents"), ("GET", "/v2/usage"), ("HEAD", "/download_file/a"), ("POST", "/translate")]
UNCOUNTED = [("GET", path) for path in ("/", "/web/style/text.css", "/docs", "/livez", "/readyz", "/metrics")]


async def answer(method: str, path: str, gate: RequestGate, counts: list[int]) -> httpx.Response:
    """Return the answer to a request; the application notes the number of active requests in `counts`."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        counts.append(gate.active)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"content"})

    middleware = GateMiddleware(application, gate)

    async def with_id(scope: Scope, receive: Receive, send: Send) -> None:
        await middleware({**scope, "state": {"request_id": "1"}}, receive, send)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(with_id), base_url="http://localhost") as client:
        return await client.request(method, path)


@pytest.mark.parametrize(("method", "path"), [*COUNTED, *UNCOUNTED])
def test_requests_that_do_work_are_counted_and_refused_during_the_shutdown(method: str, path: str) -> None:
    async def test() -> None:
        gate, counts = RequestGate(), list[int]()
        counted = (method, path) in COUNTED
        response = await answer(method, path, gate, counts)
        assert (response.status_code, counts, gate.active) == (200, [int(counted)], 0)
        assert response.content == (b"" if method == "HEAD" else b"content")
        assert "connection" not in response.headers
        gate.closed = True
        response = await answer(method, path, gate, counts)
        assert (response.status_code, len(counts)) == ((503, 1) if counted else (200, 2))
        assert response.headers["connection"] == "close"

    asyncio.run(test())
