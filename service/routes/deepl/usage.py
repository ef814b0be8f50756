"""GET and POST /v2/usage."""

from fastapi import APIRouter
from pydantic import BaseModel

from service.routes.access import CallerDependency
from service.services import ServicesDependency

router = APIRouter(tags=["DeepL"])

NO_LIMIT = 1_000_000_000_000  # characters; DeepL's answer for an account without a limit


class DeeplUsage(BaseModel):
    """Characters used this month, and the limit. Without a limit, `character_limit` is 10^12."""

    character_count: int
    character_limit: int


@router.post("/v2/usage")
@router.get("/v2/usage")
async def usage(caller: CallerDependency, services: ServicesDependency) -> DeeplUsage:
    """Return the characters that this key has used this month, and its limit."""
    limit = NO_LIMIT if caller.key is None or caller.key.quota is None else caller.key.quota
    return DeeplUsage(character_count=await services.access.used(caller), character_limit=limit)
