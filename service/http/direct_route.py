"""A route that calls its dependencies itself."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

from fastapi import Request, Response
from fastapi.routing import APIRoute


class DirectRoute(APIRoute):
    """Route whose endpoint returns a Response, and whose dependencies are coroutine functions of the request only.

    FastAPI solves dependencies of any kind, which takes as long as the rest of the answer from the cache of
    translations. The OpenAPI document is the same.
    """

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """Return the function that answers a request."""
        dependencies = [(cast(str, used.name), cast(Any, used.call)) for used in self.dependant.dependencies]
        request_name = self.dependant.request_param_name

        async def answer(request: Request) -> Response:
            values = {name: await call(request) for name, call in dependencies}
            if request_name:
                values[request_name] = request
            response: Response = await self.endpoint(**values)
            return response

        return answer
