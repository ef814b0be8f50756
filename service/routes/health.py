"""For whoever watches the service. None of these is ever refused for rates, keys or a full queue."""

from fastapi import APIRouter

from service.dependencies import ReadinessDependency
from service.errors import NotServing, documented
from service.schemas import Health

router = APIRouter(tags=["service"])


@router.head("/livez", include_in_schema=False)
@router.get("/livez")
async def livez() -> Health:
    """Whether the process answers: what does not is to be started anew."""
    return Health()


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", responses=documented(NotServing))
async def readyz(readiness: ReadinessDependency) -> Health:
    """Whether a translation would work: what is not ready is to be sent none."""
    readiness.check()
    return Health()


@router.head("/health", include_in_schema=False)
@router.get("/health", responses=documented(NotServing))
async def health(readiness: ReadinessDependency) -> Health:
    """The same, where LibreTranslate has it."""
    readiness.check()
    return Health()
