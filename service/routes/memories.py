"""PUT, GET and DELETE /memories: translation memories. Requests for translations name one in their field `memory`."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import nullcontext
from functools import partial
from itertools import islice
from pathlib import PurePath
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from mt.data.translation_memory import write_tmx
from mt.languages import Direction
from service.errors import InvalidRequest
from service.freed_memory import LongList
from service.glossaries.store import glossary_direction
from service.http.admission import while_connected
from service.http.attachments import attachment
from service.http.bodies import MULTIPART, BodyReader, uploaded_content, uploaded_name
from service.http.fields import FileField, LanguageField, TextField
from service.memories.store import SMALL_FILE, Memory, MemoryStore
from service.memories.units import MemoryUnit, unit_problem
from service.parsers.operations import UNIT_SUFFIXES, read_units
from service.routes.access import CallerDependency
from service.routes.frontend import PageMemory
from service.schemas import RequestFields
from service.services import Services, ServicesDependency

TMX = "application/x-tmx+xml"
router = APIRouter(tags=["translation memories"], prefix="/memories")


class MemoryRequest(RequestFields):
    """A file with units of a translation memory."""

    file: FileField = Field(
        description="File .tmx, .xliff, .xlf or .po; or .tsv, with a source, a tab and its translation on each line."
    )
    source: LanguageField = Field(description="Code of GET /languages.")
    target: LanguageField = Field(description="Code of GET /languages.")
    name: TextField = Field("", description="Name of the memory; the name of the file without its ending if left out.")


MemoryBody = Annotated[MemoryRequest, Depends(BodyReader(MemoryRequest, MULTIPART))]


class MemoryInfo(PageMemory):
    """A translation memory, without its units."""

    model_config = ConfigDict(from_attributes=True)

    created: float = Field(description="Seconds since 1970.")
    updated: float = Field(description="Seconds since 1970.")


class StoredMemory(MemoryInfo):
    """A translation memory after an upload. `skipped` counts the units that are not stored: empty or too long ones."""

    skipped: int


class MemoryList(BaseModel):
    memories: list[MemoryInfo]


@router.put("")
async def put(
    caller: CallerDependency, body: MemoryBody, request: Request, services: ServicesDependency
) -> StoredMemory:
    """Add the units of a file to a translation memory. A new unit replaces the stored unit with the same source.

    A key has one memory for each name and pair of languages, which is created if necessary. Without a key, each upload
    creates a memory, which can be used by its id for a week.
    """
    name = uploaded_name(body.file)
    if PurePath(name).suffix.lower() not in UNIT_SUFFIXES:
        raise InvalidRequest.listing(f"the file format is not supported; accepted: {', '.join(UNIT_SUFFIXES)}")
    direction = glossary_direction(*services.translations.routes.resolve_supported(body.source, body.target))
    file, wanted = (name, uploaded_content(body.file)), (body.name or PurePath(name).stem, direction)
    memory, skipped = await store_file(services, request, caller.id, file, wanted)
    return StoredMemory(**dict(MemoryInfo.model_validate(memory)), skipped=skipped)


async def store_file(
    services: Services, request: Request, owner: str, file: tuple[str, bytes], wanted: tuple[str, Direction]
) -> tuple[Memory, int]:
    """Add the units of a file to a memory of `owner`. Return the memory, and the number of units that are not stored.

    `file` is the name and the content of the file; `wanted` is the name and the direction of the memory.
    """
    memories, (name, direction) = services.memories, wanted
    languages = direction.source, direction.target

    async def work() -> tuple[Memory, int]:
        async with memories.uploads.held(owner) if len(file[1]) > SMALL_FILE else nullcontext():
            pairs = await services.parsers.run(owner, read_units, *file, *languages, memories.limits.units)
            units, skipped = await services.translations.threads.run(owner, len(file[1]), partial(take_units, pairs))
            return await memories.put(owner, name, direction, units), skipped

    return await while_connected(request, work())


@router.get("")
async def list_memories(caller: CallerDependency, services: ServicesDependency) -> MemoryList:
    """List the translation memories of this key. Without a key, the list is empty."""
    return MemoryList(
        memories=[MemoryInfo.model_validate(memory) for memory in await services.memories.owned(caller.id)]
    )


@router.get("/{id}")
async def get(id: str, caller: CallerDependency, services: ServicesDependency) -> MemoryInfo:
    """Return a translation memory without its units."""
    return MemoryInfo.model_validate(await services.memories.get(caller.id, id))


@router.delete("/{id}", status_code=204)
async def delete(id: str, caller: CallerDependency, services: ServicesDependency) -> None:
    """Delete a translation memory."""
    await services.memories.delete(caller.id, id)


@router.get(
    "/{id}/tmx",
    responses={200: {"content": {TMX: {"schema": {"type": "string"}}}}},
    response_class=StreamingResponse,
)
async def export(id: str, caller: CallerDependency, services: ServicesDependency) -> StreamingResponse:
    """Return the units of a translation memory as TMX."""
    return tmx_response(await services.memories.get(caller.id, id), services.memories, caller.id)


def tmx_response(memory: Memory, memories: MemoryStore, owner: str) -> StreamingResponse:
    """Return a memory of `owner` as a TMX file to download."""
    parts = tmx_parts(memories.units(owner, memory.id), memory.source, memory.target)
    return StreamingResponse(parts, media_type=TMX, headers=attachment(f"{memory.name.removesuffix('.tmx')}.tmx"))


async def tmx_parts(units: AsyncIterator[Sequence[MemoryUnit]], source: str, target: str) -> AsyncIterator[bytes]:
    """Yield a TMX file in parts, one for each list of units, as DocumentStore.parts does."""
    head, tail = write_tmx([], source, target)
    yield head.encode()
    async for listed in units:
        part = "".join(islice(write_tmx(listed, source, target), 1, 1 + len(listed))).encode()
        del listed
        yield part
        del part
        yield b""
        await asyncio.sleep(0)  # sending does not wait for a client that reads fast
    yield tail.encode()


def take_units(pairs: list[tuple[str, str]]) -> tuple[list[MemoryUnit], int]:
    """Return the units with two texts that can be stored, and the number of the others."""
    units = LongList(MemoryUnit(*pair) for pair in pairs if not unit_problem(pair))
    return units, len(pairs) - len(units)
