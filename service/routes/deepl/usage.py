"""GET and POST /v2/usage."""

from fastapi import APIRouter

from service.routes.deepl.admission import AdmittedDependency
from service.routes.deepl.schemas import DeeplUsage

router = APIRouter()

NO_LIMIT = 1_000_000_000_000  # characters; DeepL's answer for an account without a limit


@router.post("/v2/usage")
@router.get("/v2/usage")
async def usage(call: AdmittedDependency) -> DeeplUsage:
    """Return the characters that this key has used this month, and its limit."""
    used = await call.access.usage(call.caller)
    limit = NO_LIMIT if used.limit is None else used.limit
    return DeeplUsage(character_count=used.characters, character_limit=limit)
