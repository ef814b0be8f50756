"""Which requests the gate counts, and which it refuses once the service shuts down."""

from contextlib import ExitStack, suppress

import httpx
import pytest
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from service.app import ROUTERS
from service.errors import Overloaded, ServiceError, TooManyRequests
from service.http import admission
from service.http.admission import RequestGate, WorkKind, WorkLimit
from service.http.middleware import RequestGateMiddleware
from service.routes import access
from service.settings import Settings

COUNTED = [("GET", "/documents"), ("GET", "/v2/usage"), ("HEAD", "/download_file/a"), ("POST", "/translate")]
UNCOUNTED = [("GET", path) for path in ("/", "/web/style/text.css", "/docs", "/livez", "/readyz", "/metrics")]


async def answer(method: str, path: str, gate: RequestGate, counts: list[int]) -> httpx.Response:
    """Return the answer to a request; the application notes the number of active requests in `counts`."""

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        counts.append(gate.active)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"content"})

    middleware = RequestGateMiddleware(application, Settings(model="m"), gate)

    async def with_id(scope: Scope, receive: Receive, send: Send) -> None:
        await middleware({**scope, "state": {"request_id": "1"}}, receive, send)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(with_id), base_url="http://localhost") as client:
        return await client.request(method, path)


@pytest.mark.parametrize(("method", "path"), [*COUNTED, *UNCOUNTED])
async def test_requests_that_do_work_are_counted_and_refused_during_the_shutdown(method: str, path: str) -> None:
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


def test_work_in_progress_is_bounded_for_each_caller_and_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {kind: WorkLimit(per_caller=2, total=3) for kind in WorkKind}
    monkeypatch.setattr(admission, "LIMITS", limits)
    gate = RequestGate()

    def refused(kind: WorkKind, caller: str) -> type[ServiceError]:
        with pytest.raises((TooManyRequests, Overloaded)) as raised, gate.admitted(kind, caller):
            pytest.fail("admitted")
        assert int(raised.value.headers["Retry-After"]) > 0
        return raised.type

    with ExitStack() as work:
        for _ in range(2):
            work.enter_context(gate.admitted(WorkKind.READ, "a"))
        assert refused(WorkKind.READ, "a") is TooManyRequests
        work.enter_context(gate.admitted(WorkKind.WRITE, "a"))
        with gate.admitted(WorkKind.READ, "b"):
            assert refused(WorkKind.READ, "b") is Overloaded
        work.enter_context(gate.admitted(WorkKind.READ, "b"))
    for _ in range(3):  # an error frees the place, too
        with suppress(ZeroDivisionError), gate.admitted(WorkKind.READ, "a"), gate.admitted(WorkKind.READ, "a"):
            raise ZeroDivisionError


NOT_ADMITTED = {
    *("/health", "/livez", "/readyz", "/metrics"),
    *("/", "/web/{name:path}", "/docs", "/openapi.json", "/spec"),
    *("/languages", "/models", "/frontend/settings"),  # short answers that do not depend on the request
    "/admin/reload",  # of the operator
}


def test_every_other_route_is_admitted() -> None:
    admitting = {access.admit, access.admit_address}
    for route in (route for router in ROUTERS for route in router.routes):
        if isinstance(route, APIRoute) and route.include_in_schema and route.path not in NOT_ADMITTED:
            assert admitting & {dependency.call for dependency in route.dependant.dependencies}, route.path
