"""/v3/translation_memories: the translation memories of /memories, by DeepL's contract. PUT /memories uploads one."""

from typing import Annotated

from fastapi import APIRouter, Depends

from service.http.bodies import BodyReader
from service.memories.store import Memory
from service.routes.access import CallerDependency
from service.routes.deepl.schemas import (
    MemoriesBody,
    MemoryInfos,
    MemorySegment,
    MemorySegments,
    SegmentsBody,
    TargetSegment,
    TranslationMemoryInfo,
    timestamp,
)
from service.services import ServicesDependency

router = APIRouter(prefix="/v3/translation_memories")

MemoriesFields = Annotated[MemoriesBody, Depends(BodyReader(MemoriesBody))]
SegmentsFields = Annotated[SegmentsBody, Depends(BodyReader(SegmentsBody))]


@router.get("")
async def list_memories(caller: CallerDependency, body: MemoriesFields, services: ServicesDependency) -> MemoryInfos:
    """List the translation memories of this key. Without a key, the list is empty."""
    owned = await services.memories.owned(caller.id)
    first = body.page * body.page_size
    return MemoryInfos(
        translation_memories=[info(memory) for memory in owned[first : first + body.page_size]], total_count=len(owned)
    )


@router.get("/{memory_id}")
async def get(memory_id: str, caller: CallerDependency, services: ServicesDependency) -> TranslationMemoryInfo:
    """Return a translation memory without its segments."""
    return info(await services.memories.get(caller.id, memory_id))


@router.delete("/{memory_id}", status_code=204)
async def delete(memory_id: str, caller: CallerDependency, services: ServicesDependency) -> None:
    """Delete a translation memory."""
    await services.memories.delete(caller.id, memory_id)


@router.get("/{memory_id}/segments", response_model_exclude_none=True)
async def segments(
    memory_id: str, caller: CallerDependency, body: SegmentsFields, services: ServicesDependency
) -> MemorySegments:
    """Return a page of the segments of a translation memory. With `filter_text`, a page may have fewer segments."""
    memory = await services.memories.get(caller.id, memory_id)
    first = int(body.page_cursor or 0)
    units = await services.memories.page(caller.id, memory, first)
    wanted = body.filter_text or ""
    found: list[MemorySegment] = []
    for number, unit in enumerate(units, start=first):
        if len(found) == body.page_size:
            break
        first = number + 1
        text = "\n".join(unit)
        if wanted in text or (not body.filter_case_sensitive and wanted.casefold() in text.casefold()):
            target = TargetSegment(
                target_segment_id=f"{number}", target_language=memory.direction.target, target_text=unit.target
            )
            found.append(MemorySegment(source_segment_id=f"{number}", source_text=unit.source, targets=[target]))
    cursor = f"{first}" if first < memory.count else None
    return MemorySegments(segments=found, segment_count=memory.count, next_page_cursor=cursor)


def info(memory: Memory) -> TranslationMemoryInfo:
    """Describe a translation memory in DeepL's format."""
    return TranslationMemoryInfo(
        translation_memory_id=memory.id,
        name=memory.name,
        source_language=memory.direction.source,
        target_languages=[memory.direction.target],
        segment_count=memory.count,
        creation_time=timestamp(memory.created),
        updated_time=timestamp(memory.updated),
    )
