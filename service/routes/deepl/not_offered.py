"""Operations of DeepL's API that the service does not offer. The answer is 404 with a message that says so."""

from fastapi import APIRouter

from service.errors import NotFound

router = APIRouter(include_in_schema=False)

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]


@router.api_route("/v2/write/{rest:path}", methods=METHODS)
async def write() -> None:
    """Refuse to rephrase or to correct texts."""
    raise NotFound("Rephrasing and correction of texts are not offered by this service")


@router.api_route("/v3/style_rules", methods=METHODS)
@router.api_route("/v3/style_rules/{rest:path}", methods=METHODS)
async def style_rules() -> None:
    """Refuse to list, create, return or change style rules."""
    raise NotFound("Style rules are not offered by this service")


@router.post("/v3/translation_memories/import")
@router.post("/v3/translation_memories/{memory_id}/export")
@router.get("/v3/translation_memories/jobs/{job_id}")
async def memory_jobs() -> None:
    """Refuse import and export jobs."""
    raise NotFound(
        "Import and export jobs of translation memories are not offered by this service; "
        "use PUT /memories and GET /memories/ID/tmx"
    )
