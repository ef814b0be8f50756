"""/v3/translation_memories: the translation memories of /memories, by DeepL's contract. PUT /memories uploads one."""

from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Depends
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from service.http.bodies import BodyReader
from service.http.fields import FlagField, Number, OptionalText
from service.memories.units import MemoryUnit
from service.routes.access import CallerDependency
from service.routes.deepl.schemas import Body, Timestamp
from service.services import ServicesDependency

router = APIRouter(tags=["DeepL"], prefix="/v3/translation_memories")

MAX_PAGE = 100  # items of a page
MAX_FILTER = 1000  # characters of a text that each segment must contain


class MemoriesBody(Body):
    """The requested page of a list."""

    page: Number = Field(0, ge=0, le=1_000_000)
    page_size: Number = Field(25, ge=1, le=MAX_PAGE)


class SegmentsBody(Body):
    """The requested page of segments, and a text that each segment must contain."""

    page_size: Number = Field(50, ge=1, le=MAX_PAGE)
    page_cursor: OptionalText = Field(None, pattern="^[0-9]{1,9}$")
    filter_text: OptionalText = Field(None, max_length=MAX_FILTER)
    filter_case_sensitive: FlagField = False


class TranslationMemoryInfo(BaseModel):
    """A translation memory, without its segments."""

    model_config = ConfigDict(from_attributes=True)

    translation_memory_id: str = Field(validation_alias="id")
    name: str
    source_language: str = Field(validation_alias="source")
    target_languages: Annotated[list[str], BeforeValidator(lambda one: [one])] = Field(validation_alias="target")
    segment_count: int = Field(validation_alias="units")
    creation_time: Timestamp = Field(validation_alias="created")
    updated_time: Timestamp = Field(validation_alias="updated")


class MemoryInfos(BaseModel):
    translation_memories: list[TranslationMemoryInfo]
    total_count: int


class TargetSegment(BaseModel):
    target_segment_id: str
    target_language: str
    target_text: str


class MemorySegment(BaseModel):
    """A source text and its translation."""

    source_segment_id: str
    source_text: str
    targets: list[TargetSegment]


class MemorySegments(BaseModel):
    """A page of segments. `segment_count` counts all segments of the memory. The last page has no cursor."""

    segments: list[MemorySegment]
    segment_count: int
    next_page_cursor: str | None = None


MemoriesFields = Annotated[MemoriesBody, Depends(BodyReader(MemoriesBody))]
SegmentsFields = Annotated[SegmentsBody, Depends(BodyReader(SegmentsBody))]


@router.get("")
async def list_memories(caller: CallerDependency, body: MemoriesFields, services: ServicesDependency) -> MemoryInfos:
    """List the translation memories of this key. Without a key, the list is empty."""
    owned = await services.memories.owned(caller.id)
    first = body.page * body.page_size
    return MemoryInfos(
        translation_memories=list(map(TranslationMemoryInfo.model_validate, owned[first : first + body.page_size])),
        total_count=len(owned),
    )


@router.get("/{memory_id}")
async def get(memory_id: str, caller: CallerDependency, services: ServicesDependency) -> TranslationMemoryInfo:
    """Return a translation memory without its segments."""
    return TranslationMemoryInfo.model_validate(await services.memories.get(caller.id, memory_id))


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
    size = sum(len(unit.source) + len(unit.target) for unit in units)
    matching = await services.translations.threads.run(caller.id, size, partial(matching_units, units, body))
    read = 1 + matching[-1][0] if len(matching) == body.page_size else len(units)
    listed = [
        MemorySegment(
            source_segment_id=f"{first + number}",
            source_text=unit.source,
            targets=[
                TargetSegment(
                    target_segment_id=f"{first + number}",
                    target_language=memory.target,
                    target_text=unit.target,
                )
            ],
        )
        for number, unit in matching
    ]
    cursor = f"{first + read}" if first + read < memory.units else None
    return MemorySegments(segments=listed, segment_count=memory.units, next_page_cursor=cursor)


def matching_units(units: Sequence[MemoryUnit], body: SegmentsBody) -> list[tuple[int, MemoryUnit]]:
    """Return (index, unit) of the first units with the text of a request, up to the size of a page."""
    fold = str if body.filter_case_sensitive else str.casefold
    wanted = fold(body.filter_text or "")
    matching = ((number, unit) for number, unit in enumerate(units) if wanted in fold("\n".join(unit)))
    return list(islice(matching, body.page_size))
