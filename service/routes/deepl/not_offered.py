"""Operations of DeepL's API that the service does not offer. The answer is 404 with the reason."""

from collections.abc import Mapping
from functools import partial

from fastapi import APIRouter

from service.errors import NotFound
from service.http.problems import METHODS

REASONS: Mapping[str, str] = {
    "/v2/write": "Rephrasing and correction of texts are not offered by this service: its models only translate",
    "/v3/style_rules": "Style rules are not offered by this service: its models take no instructions",
    "/v1/quality-evaluation": "The evaluation of given translations is not offered by this service; POST /translate "
    "with quality estimates the quality of its own translations, and `mt-service evaluate` scores a test set",
    "/v2/admin": "The administration of keys and their usage is not offered over HTTP; the operator of this service "
    "uses `mt-service keys`",
    "/v3/voice": "Voice is not offered by this service: it translates texts and documents",
    "/v1/voice": "Voice is not offered by this service: it translates texts and documents",
    "/v1/jobs/voice": "Voice is not offered by this service: it translates texts and documents",
}
"""The reason for each path. It also holds for the paths below."""


async def refuse(reason: str) -> None:
    """Answer 404 with `reason`."""
    raise NotFound(reason)


def refusing_router() -> APIRouter:
    """Return a router that refuses every method of every path in REASONS."""
    router = APIRouter(include_in_schema=False)
    for path, reason in REASONS.items():
        for below in ("", "/{rest:path}"):
            router.add_api_route(path + below, partial(refuse, reason), methods=[*METHODS])
    return router


router = refusing_router()
