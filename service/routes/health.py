"""GET /health, for whoever watches the service, and GET /, for whoever looks in."""

from importlib.metadata import version

from fastapi import APIRouter

from service.dependencies import WorkerDependency
from service.errors import Unavailable, documented
from service.schemas import About, Health

router = APIRouter(tags=["service"])


@router.get("/health", responses=documented(Unavailable))
async def health(worker: WorkerDependency) -> Health:
    """Whether the service can translate."""
    if not worker.alive:
        raise Unavailable
    return Health()


@router.get("/")
async def about() -> About:
    """What answers here."""
    return About(name="mt-service", version=version("mt-service"), documentation="/docs")
