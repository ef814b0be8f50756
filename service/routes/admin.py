"""POST /admin/reload, for the operator."""

from fastapi import APIRouter, Depends
from pydantic import BaseModel

from service.dependencies import FleetDependency, admin
from service.errors import InvalidKey, NotFound, ReloadRefused, documented

router = APIRouter(tags=["service"], prefix="/admin", dependencies=[Depends(admin)])


class ReloadedModel(BaseModel):
    """A direction, and the version of its model that is used from now on."""

    source: str
    target: str
    version: str
    changed: bool


class Reloaded(BaseModel):
    """What is served after a reload."""

    models: list[ReloadedModel]


@router.post("/reload", responses=documented(InvalidKey, NotFound, ReloadRefused))
async def reload(fleet: FleetDependency) -> Reloaded:
    """Load the model directories anew; requests go on meanwhile. If one cannot be used, all stay as they are."""
    before = {direction: fleet.version(direction) for direction in fleet.directions}
    await fleet.reload()
    return Reloaded(
        models=[
            ReloadedModel(
                source=direction.source,
                target=direction.target,
                version=fleet.version(direction),
                changed=fleet.version(direction) != before.get(direction),
            )
            for direction in fleet.directions
        ]
    )
