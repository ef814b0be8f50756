"""GET /metrics, for Prometheus."""

from fastapi import APIRouter, Depends, Response

from service.metrics import CONTENT_TYPE
from service.routes.access import require_admin_unless_public
from service.services import ServicesDependency

router = APIRouter(tags=["service"], dependencies=[Depends(require_admin_unless_public)])


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(services: ServicesDependency) -> Response:
    """Return counters, gauges and histograms in Prometheus's text format."""
    return Response(await services.metrics.text(), media_type=CONTENT_TYPE)
