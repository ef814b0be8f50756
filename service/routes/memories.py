"""PUT, GET and DELETE /memories: translation memories. Requests for translations name one in their field `memory`."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import PurePath
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from mt.data.translation_memory import write_tmx
from mt.languages import Direction
from service.access.control import Caller
from service.access.glossaries import glossary_direction
from service.access.memories import Memory, MemoryUnit, storable
from service.attachments import attachment
from service.bodies import MULTIPART, MemoryBody, documented_body, query_fields
from service.dependencies import (
    AccessDependency,
    MemoriesDependency,
    ParsersDependency,
    TranslationsDependency,
    client_address,
    while_connected,
)
from service.errors import (
    InvalidRequest,
    well_formed,
)
from service.parsers.operations import UNIT_SUFFIXES, read_units
from service.routes.deepl.admission import HeaderKey, key_of
from service.schemas import MemoryRequest

TMX = "application/x-tmx+xml"
router = APIRouter(tags=["translation memories"], prefix="/memories")


class MemoryInfo(BaseModel):
    """A translation memory, without its units."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": "1f0c7ad1-b6f9-4d5f-8f6f-4b3b1c1b8a55",
                "name": "handbook",
                "source": "en",
                "target": "de",
                "units": 1200,
                "created": 1790000000.0,
                "updated": 1790000000.0,
            }
        }
    )

    id: str
    name: str
    source: str
    target: str
    units: int
    created: float = Field(description="Seconds since 1970.")
    updated: float = Field(description="Seconds since 1970.")

    @classmethod
    def of(cls, memory: Memory) -> "MemoryInfo":
        direction = memory.direction
        return cls(
            id=memory.id,
            name=memory.name,
            source=direction.source,
            target=direction.target,
            units=memory.count,
            created=memory.created,
            updated=memory.updated,
        )


class StoredMemory(MemoryInfo):
    """A translation memory after an upload. `skipped` counts the units that are not stored: empty or too long ones."""

    skipped: int


class MemoryList(BaseModel):
    memories: list[MemoryInfo]


async def _caller(request: Request, authorization: HeaderKey, access: AccessDependency) -> Caller:
    """Admit the caller. The key is in the header `Authorization`, or in the field `api_key` of the query."""
    fields = query_fields(request)
    secret = fields.get("api_key")
    return await access.admit(
        key_of(authorization) or (secret if isinstance(secret, str) else None), client_address(request)
    )


CallerDependency = Annotated[Caller, Depends(_caller)]


@router.put(
    "",
    openapi_extra=documented_body(MemoryRequest, [MULTIPART]),
)
async def put(
    body: MemoryBody,
    request: Request,
    authorization: HeaderKey,
    access: AccessDependency,
    translations: TranslationsDependency,
    memories: MemoriesDependency,
    parsers: ParsersDependency,
) -> StoredMemory:
    """Add the units of a file to a translation memory. A new unit replaces the stored unit with the same source.

    A key has one memory for each name and pair of languages, which is created if necessary. Without a key, each upload
    creates a memory, which can be used by its id for a week.
    """
    caller = await access.admit(key_of(authorization) or body.api_key, client_address(request))
    name = PurePath(well_formed(body.file.filename or "").replace("\\", "/")).name
    if PurePath(name).suffix.lower() not in UNIT_SUFFIXES:
        raise InvalidRequest.listing([f"the file format is not supported; accepted: {', '.join(UNIT_SUFFIXES)}"])
    source, target = (translations.routes.resolve(code) for code in (body.source, body.target))
    translations.routes.check_supported(source, target)
    direction = glossary_direction(source, target)
    content, limit = await body.file.read(), memories.limits.units
    reading = parsers.documents.run(caller.id, read_units, name, content, *_languages(direction), limit)
    units = [MemoryUnit(*unit) for unit in await while_connected(request, reading)]
    skipped = await asyncio.to_thread(lambda: len(units) - sum(map(storable, units)))
    memory = await memories.put(caller.id, body.name or PurePath(name).stem, direction, units)
    return StoredMemory(**dict(MemoryInfo.of(memory)), skipped=skipped)


@router.get("")
async def list_memories(caller: CallerDependency, memories: MemoriesDependency) -> MemoryList:
    """List the translation memories of this key. Without a key, the list is empty."""
    return MemoryList(memories=[MemoryInfo.of(memory) for memory in await memories.owned(caller.id)])


@router.get("/{id}")
async def get(id: str, caller: CallerDependency, memories: MemoriesDependency) -> MemoryInfo:
    """Return a translation memory without its units."""
    return MemoryInfo.of(await memories.get(caller.id, id))


@router.delete("/{id}", status_code=204)
async def delete(id: str, caller: CallerDependency, memories: MemoriesDependency) -> None:
    """Delete a translation memory."""
    await memories.delete(caller.id, id)


@router.get(
    "/{id}/tmx",
    responses={200: {"content": {TMX: {"schema": {"type": "string"}}}}},
    response_class=StreamingResponse,
)
async def export(id: str, caller: CallerDependency, memories: MemoriesDependency) -> StreamingResponse:
    """Return the units of a translation memory as TMX."""
    memory = await memories.get(caller.id, id)
    units = memories.units(caller.id, id)
    return tmx_response(f"{memory.name}.tmx", units, *_languages(memory.direction))


def tmx_response(name: str, units: AsyncIterator[Sequence[MemoryUnit]], source: str, target: str) -> StreamingResponse:
    """Return a TMX file as a download with the file name `name`. `units` yields lists of the file's units."""
    return StreamingResponse(_tmx_parts(units, source, target), media_type=TMX, headers=attachment(name))


async def _tmx_parts(units: AsyncIterator[Sequence[MemoryUnit]], source: str, target: str) -> AsyncIterator[str]:
    head, tail = write_tmx([], source, target)
    yield head
    async for part in units:
        yield "".join(list(write_tmx(part, source, target))[1:-1])
    yield tail


def _languages(direction: Direction) -> tuple[str, str]:
    return direction.source, direction.target
