"""Probes. They are never refused for rates, keys or a full queue."""

from fastapi import APIRouter

from service.dependencies import ReadinessDependency
from service.errors import NotServing, error_responses
from service.schemas import Health

router = APIRouter(tags=["service"])


@router.get("/livez")
async def livez() -> Health:
    """Report that the process answers. A process that does not answer should be restarted."""
    return Health()


@router.get("/readyz", responses=error_responses(NotServing))
async def readyz(readiness: ReadinessDependency) -> Health:
    """Report whether a translation would succeed. A service that is not ready should get no requests."""
    readiness.check()
    return Health()


@router.get("/health", responses=error_responses(NotServing))
async def health(readiness: ReadinessDependency) -> Health:
    """Report whether a translation would succeed, at LibreTranslate's path."""
    readiness.check()
    return Health()
