"""GET /languages, in LibreTranslate's shape."""

from fastapi import APIRouter

from service.dependencies import WorkerDependency
from service.languages import listed
from service.schemas import Language

router = APIRouter(tags=["translation"])


@router.get("/languages")
async def languages(worker: WorkerDependency) -> list[Language]:
    """The model's languages, and what each can be translated into."""
    return listed(worker.directions)
