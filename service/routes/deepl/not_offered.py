"""Operations of DeepL's API that the service does not offer. The answer is 404 with a message that says so."""

from fastapi import APIRouter

from service.errors import NotFound

router = APIRouter(include_in_schema=False)

METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"]
STYLE_RULES = "Style rules are not offered by this service"
MEMORY_JOBS = (
    "Import and export jobs of translation memories are not offered by this service; "
    "use PUT /memories and GET /memories/ID/tmx"
)


@router.api_route("/v2/write/{rest:path}", methods=METHODS)
async def write(rest: str) -> None:
    """Refuse to rephrase or to correct texts."""
    raise NotFound("Rephrasing and correction of texts are not offered by this service")


@router.api_route("/v3/style_rules", methods=METHODS)
async def style_rules() -> None:
    """Refuse to list or create style rules."""
    raise NotFound(STYLE_RULES)


@router.api_route("/v3/style_rules/{rest:path}", methods=METHODS)
async def style_rule(rest: str) -> None:
    """Refuse to return or change a style rule."""
    raise NotFound(STYLE_RULES)


@router.post("/v3/translation_memories/import")
async def import_job() -> None:
    """Refuse an import job."""
    raise NotFound(MEMORY_JOBS)


@router.post("/v3/translation_memories/{memory_id}/export")
async def export_job(memory_id: str) -> None:
    """Refuse an export job."""
    raise NotFound(MEMORY_JOBS)


@router.get("/v3/translation_memories/jobs/{job_id}")
async def job(job_id: str) -> None:
    """Refuse to describe a job."""
    raise NotFound(MEMORY_JOBS)
