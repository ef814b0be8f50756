"""/v3/translation_memories: the translation memories of /memories, by DeepL's contract. PUT /memories uploads one."""

from fastapi import APIRouter

from service.access.memories import Memory
from service.bodies import parse_body
from service.routes.deepl.admission import AdmittedDependency
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

PAGE = {"in": "query", "schema": {"type": "integer"}}

router = APIRouter(prefix="/v3/translation_memories")


@router.get("", openapi_extra={"parameters": [{"name": "page", **PAGE}, {"name": "page_size", **PAGE}]})
async def list_memories(call: AdmittedDependency) -> MemoryInfos:
    """List the translation memories of this key. Without a key, the list is empty."""
    body = parse_body(MemoriesBody, call.fields)
    owned = await call.memories.owned(call.caller.id)
    first = body.page * body.page_size
    return MemoryInfos(
        translation_memories=[info(memory) for memory in owned[first : first + body.page_size]], total_count=len(owned)
    )


@router.get("/{memory_id}")
async def get(memory_id: str, call: AdmittedDependency) -> TranslationMemoryInfo:
    """Return a translation memory without its segments."""
    return info(await call.memories.get(call.caller.id, memory_id))


@router.delete("/{memory_id}", status_code=204)
async def delete(memory_id: str, call: AdmittedDependency) -> None:
    """Delete a translation memory."""
    await call.memories.delete(call.caller.id, memory_id)


@router.get(
    "/{memory_id}/segments",
    response_model_exclude_none=True,
    openapi_extra={
        "parameters": [
            {"name": "page_size", **PAGE},
            {"name": "page_cursor", "in": "query", "schema": {"type": "string"}},
            {"name": "filter_text", "in": "query", "schema": {"type": "string"}},
            {"name": "filter_case_sensitive", "in": "query", "schema": {"type": "boolean"}},
        ]
    },
)
async def segments(memory_id: str, call: AdmittedDependency) -> MemorySegments:
    """Return a page of the segments of a translation memory. With `filter_text`, a page may have fewer segments."""
    body = parse_body(SegmentsBody, call.fields)
    memory = await call.memories.get(call.caller.id, memory_id)
    first = int(body.page_cursor or 0)
    units = await call.memories.page(call.caller.id, memory, first)
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
