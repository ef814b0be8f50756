"""A route that calls its dependencies itself."""

from typing import Any, cast

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.types import Receive, Scope, Send

from service.http.admission import while_connected


class DirectRoute(APIRoute):
    """Route whose endpoint returns a Response, and whose dependencies are coroutine functions of the request only.

    FastAPI solves dependencies of any kind, and opens contexts for them, which takes as long as the rest of the answer
    from the cache of translations. The OpenAPI document is the same.
    """

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request. If its client disconnects, the work for it ends."""
        if scope["method"] not in (self.methods or ()):
            await super().handle(scope, receive, send)
            return
        request = Request(scope, receive, send)
        response = await while_connected(request, self._response(request))
        await response(scope, receive, send)

    async def _response(self, request: Request) -> Response:
        values = {str(used.name): await cast(Any, used.call)(request) for used in self.dependant.dependencies}
        response: Response = await self.endpoint(request=request, **values)
        return response
