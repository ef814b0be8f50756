"""Probes. They need no key, and are never refused because of rate limits or a full queue."""

from fastapi import APIRouter

from service.schemas import Health
from service.services import ServicesDependency

router = APIRouter(tags=["service"])


@router.get("/livez")
async def livez() -> Health:
    """Report that the process answers. If a process does not answer, it should be restarted."""
    return Health()


@router.get("/health")  # of LibreTranslate
@router.get("/readyz")
async def readyz(services: ServicesDependency) -> Health:
    """Report whether a translation would succeed. If not, the service should get no requests."""
    services.readiness.check()
    return Health()
