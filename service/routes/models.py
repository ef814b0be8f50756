"""GET /models: the models that the service serves."""

from fastapi import APIRouter
from pydantic import BaseModel, Field

from mt.bundled import STARTER_MODEL
from service.services import ServicesDependency

router = APIRouter(tags=["service"])


class ModelInfo(BaseModel):
    """A served model. Without `pairs`, it translates each source language into each target language."""

    name: str
    version: str = Field(description="Digest of the files of the model.")
    about: str = Field(description="What the model was trained on, or an empty text.")
    licence: str = Field(description="Licence as the model card states it, or an empty text.")
    bundled: bool = Field(description="Whether this is the starter model of the package, which is for trying out.")
    scores: str = Field(description="Scores as the model card states them, or an empty text.")
    size: int = Field(description="Size of the weights on disk in bytes.")
    loaded: bool = Field(
        description="Whether the model is in memory. Otherwise, the next request that needs the model loads it."
    )
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    pairs: list[str] | None


@router.get("/models")
async def models(services: ServicesDependency) -> list[ModelInfo]:
    """List the models with their languages. The first model of a direction is the default of this direction."""
    return [
        ModelInfo(
            name=pool.name,
            version=pool.description.version,
            about=pool.description.about,
            licence=pool.card.licence,
            bundled=pool.model == STARTER_MODEL,
            scores=pool.card.scores,
            size=pool.size,
            loaded=pool.loaded,
            sources=pool.description.directions.sources,
            targets=pool.description.directions.targets,
            pairs=None
            if pool.description.directions.pairs is None
            else list(map(str, pool.description.directions.pairs)),
        )
        for pool in services.fleet.pools
    ]
