"""Probes. They need no key, and are never refused because of rate limits or a full queue."""

from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel

from service.services import ServicesDependency

router = APIRouter(tags=["service"])


class Health(BaseModel):
    """Answer to a probe if the service works."""

    status: Literal["ok"] = "ok"


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
