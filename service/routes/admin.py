"""POST /admin/reload, for the operator."""

from fastapi import APIRouter, Depends
from pydantic import BaseModel

from service.routes.access import require_admin
from service.services import ServicesDependency

router = APIRouter(tags=["service"], prefix="/admin", dependencies=[Depends(require_admin)])


class ReloadedModel(BaseModel):
    """A model that is served, and whether the reload changed it."""

    name: str
    version: str
    changed: bool


class Reloaded(BaseModel):
    """The models that are served after a reload."""

    models: list[ReloadedModel]


@router.post("/reload")
async def reload(services: ServicesDependency) -> Reloaded:
    """Load the model directories that have changed. If a model cannot be used, no model is replaced."""
    fleet = services.fleet
    before = {pool.description.version for pool in fleet.pools}
    await fleet.reload()
    versions = {pool.name: pool.description.version for pool in fleet.pools}
    models = [
        ReloadedModel(name=name, version=version, changed=version not in before) for name, version in versions.items()
    ]
    return Reloaded(models=models)
