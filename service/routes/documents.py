"""/documents: the sentences of a translated file, which a person reads and edits, and the file with the edits.

POST /translate_file stores a document if its field `segments` is true.
"""

from collections.abc import AsyncIterator
from pathlib import PurePath
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from mt.text.documents import translated_name
from service.access.memories import MemoryUnit, clean_unit, storable
from service.attachments import attachment
from service.bodies import EditBody, documented_body
from service.dependencies import (
    AccessDependency,
    EditableDocumentsDependency,
    TranslationsDependency,
    client_address,
    while_connected,
)
from service.errors import (
    InvalidDocument,
    NotFound,
    ParsingLimitExceeded,
    Unavailable,
    error_responses,
    well_formed,
)
from service.routes.deepl.admission import HeaderKey, key_of
from service.routes.memories import ACCESS, TMX, CallerDependency, tmx_response
from service.schemas import EditRequest, percent
from service.translation.answers import rounded_match
from service.translation.document_sentences import DocumentSentence
from service.translation.editable_documents import SentencePage

MAX_NUMBER = 2**31
FILE = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
SentenceNumber = Annotated[int, Path(ge=0, le=MAX_NUMBER, description="Number of a sentence, from 0.")]
FirstNumber = Annotated[int, Query(ge=0, le=MAX_NUMBER, description="Number of the first sentence to return.")]

router = APIRouter(tags=["documents"], prefix="/documents/{id}")


class DocumentSegment(BaseModel):
    """A sentence of a translated document, and its translation."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "number": 0,
                "source": "Where is the train station?",
                "target": "Wo ist der Bahnhof?",
                "quality": 71.3,
                "edited": False,
            }
        }
    )

    number: int
    source: str
    target: str
    edited: bool = Field(description="Whether a request has changed the translation.")
    quality: float | None = Field(None, description="From 0 to 100.")
    unfamiliar: bool | None = Field(
        None, description="True if `quality` is absent because the sentence is unlike the model's training text."
    )
    match: float | None = Field(None, description="From 0 to 1; only with a match in the memory.")


class DocumentPage(BaseModel):
    """A document and some of its sentences. `source` and `target` are the languages."""

    name: str
    source: str
    target: str
    count: int = Field(description="Number of sentences of the document.")
    segments: list[DocumentSegment]
    next: int | None = Field(None, description="`first` of the request for the next sentences; absent at the end.")


@router.get("/segments", responses=error_responses(*ACCESS, NotFound), response_model_exclude_none=True)
async def segments(
    id: str, caller: CallerDependency, documents: EditableDocumentsDependency, first: FirstNumber = 0
) -> DocumentPage:
    """Return up to 100 sentences of a document with their translations, beginning with sentence number `first`."""
    document, page = await documents.page(caller.id, id, first)
    end = page.first + len(page.sentences)
    return DocumentPage(
        name=document.name,
        source=document.source,
        target=document.target,
        count=document.sentences,
        segments=[_segment(number, sentence) for number, sentence in enumerate(page.sentences, start=page.first)],
        next=end if end < document.sentences else None,
    )


@router.put(
    "/segments/{number}",
    responses=error_responses(*ACCESS, NotFound),
    response_model_exclude_none=True,
    openapi_extra=documented_body(EditRequest),
)
async def edit(
    id: str,
    number: SentenceNumber,
    body: EditBody,
    request: Request,
    authorization: HeaderKey,
    access: AccessDependency,
    documents: EditableDocumentsDependency,
) -> DocumentSegment:
    """Replace the translation of a sentence."""
    caller = await access.admit(key_of(authorization) or body.api_key, client_address(request))
    return _segment(number, await documents.edit(caller.id, id, number, body.target))


@router.get(
    "/file",
    responses=error_responses(*ACCESS, NotFound, InvalidDocument, ParsingLimitExceeded, Unavailable)
    | {200: {"content": FILE}},
    response_class=Response,
)
async def file(
    id: str,
    request: Request,
    caller: CallerDependency,
    translations: TranslationsDependency,
    documents: EditableDocumentsDependency,
) -> Response:
    """Return the translated file with all edits so far."""
    document, file = await documents.get(caller.id, id), await documents.file(caller.id, id)
    sentences = [sentence async for page in documents.pages(caller.id, id) for sentence in page.sentences]
    content = await while_connected(request, translations.documents.written(caller.id, file, sentences))
    path = PurePath(translated_name(document.name))
    headers = attachment(f"{path.stem}_{document.target}{path.suffix}")
    return Response(content, media_type="application/octet-stream", headers=headers)


@router.get(
    "/tmx",
    responses=error_responses(*ACCESS, NotFound) | {200: {"content": {TMX: {"schema": {"type": "string"}}}}},
    response_class=Response,
)
async def tmx(id: str, caller: CallerDependency, documents: EditableDocumentsDependency) -> Response:
    """Return the sentences and their edited translations as TMX. Empty or very long sentences are left out."""
    document = await documents.get(caller.id, id)
    units = _units(documents.pages(caller.id, id))
    name = f"{PurePath(document.name).stem}_{document.target}.tmx"
    return tmx_response(name, units, document.source, document.target)


@router.delete("", status_code=204, responses=error_responses(*ACCESS, NotFound))
async def delete(id: str, caller: CallerDependency, documents: EditableDocumentsDependency) -> None:
    """Delete a document. The translated file at `translatedFileUrl` is not deleted."""
    await documents.delete(caller.id, id)


def _segment(number: int, sentence: DocumentSentence) -> DocumentSegment:
    return DocumentSegment(
        number=number,
        source=well_formed(sentence.source),
        target=well_formed(sentence.target),
        edited=sentence.edited,
        quality=percent(sentence.confidence),
        unfamiliar=sentence.unfamiliar or None,
        match=rounded_match(sentence.match),
    )


async def _units(pages: AsyncIterator[SentencePage]) -> AsyncIterator[list[MemoryUnit]]:
    async for page in pages:
        pairs = ((well_formed(sentence.source), well_formed(sentence.target)) for sentence in page.sentences)
        yield [clean_unit(pair) for pair in pairs if storable(pair)]
