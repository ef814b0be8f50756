"""GET /models: the models that the service has loaded."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from service.dependencies import FleetDependency

router = APIRouter(tags=["service"])


class ModelInfo(BaseModel):
    """A served model. Without `pairs`, it translates each source language into each target language."""

    name: str
    version: str = Field(description="Digest of the files of the model.")
    about: str = Field(description="What the model was trained on, or an empty text.")
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    pairs: list[str] | None


@router.get("/models")
async def models(fleet: FleetDependency) -> list[ModelInfo]:
    """List the models with their languages."""
    return [
        ModelInfo(
            name=model.name,
            version=model.version,
            about=model.about,
            sources=model.directions.sources,
            targets=model.directions.targets,
            pairs=None if model.directions.pairs is None else list(map(str, model.directions.pairs)),
        )
        for model in fleet.models
    ]
