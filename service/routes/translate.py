"""POST /translate, in LibreTranslate's shape."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, TypeVar

from fastapi import APIRouter, Request

from mt.errors import RequestError
from mt.text.terms import Terms
from service.access.glossaries import Glossaries
from service.bodies import TranslateBody, documented_body
from service.dependencies import (
    AccessDependency,
    GlossariesDependency,
    SettingsDependency,
    TranslationsDependency,
    address,
    while_connected,
)
from service.errors import (
    BodyTooLarge,
    CannotTranslate,
    DeadlineExceeded,
    InternalError,
    InvalidKey,
    InvalidRequest,
    NotFound,
    Overloaded,
    QuotaExceeded,
    ServiceError,
    TooManyRequests,
    Unavailable,
    UnsupportedLanguage,
    documented,
    problem,
    shown,
)
from service.events import EVENT_SCHEMA, EVENT_STREAM, EventStream, event
from service.schemas import (
    DetectedLanguage,
    Segment,
    SegmentAttention,
    StreamedSegment,
    TargetResponse,
    TranslateRequest,
    TranslateResponse,
)
from service.settings import Settings
from service.translation.core import Translations, together
from service.translation.jobs import Answer, Format, Job, Sentence, StreamedSentence, StreamEnd, Wants

T = TypeVar("T")

AUTO = "auto"
ACCESS = (InvalidKey, QuotaExceeded, TooManyRequests)
WORK = (CannotTranslate, UnsupportedLanguage, DeadlineExceeded, InternalError, Overloaded, Unavailable)
router = APIRouter(tags=["translation"])

EVENT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "event": {"enum": ["segment", "done", "error"]},
        "data": {"type": "string", "contentMediaType": "application/json"},
    },
    "required": ["event", "data"],
}
RESPONSES: dict[int | str, dict[str, Any]] = {
    **documented(InvalidRequest, NotFound, BodyTooLarge, *ACCESS, *WORK),
    200: {
        "description": "The translation; with `stream`, events: `segment` for each sentence, in order, then `done` "
        "with what would have been the answer, or `error` with the body of an error.",
        "content": {EVENT_STREAM: {"schema": EVENT_SCHEMA}},
    },
}


@router.post(
    "/translate",
    response_model=TranslateResponse,
    responses=RESPONSES,
    response_model_exclude_none=True,
    openapi_extra=documented_body(TranslateRequest),
)
async def translate(
    asked: TranslateBody,
    request: Request,
    translations: TranslationsDependency,
    access: AccessDependency,
    glossaries: GlossariesDependency,
    settings: SettingsDependency,
) -> TranslateResponse | EventStream:
    """Translate a text, or a list of texts. The same fields may come as JSON, as a form, or in the query."""
    caller = await access.admit(asked.api_key, address(request))
    check(asked, settings)
    jobs = {}
    for target in dict.fromkeys([asked.target, *asked.targets]):
        kept = await kept_terms(asked, target, caller.id, glossaries)
        jobs[target] = job_of(asked, target, caller.id, kept)
    async with access.charged(caller, sum(map(len, asked.texts)) * len(jobs)):
        if asked.stream:
            events = streamed(asked, translations.stream(jobs[asked.target]), request)
            first = await while_connected(request, first_of(events))  # what cannot begin gets a status of its own
            return EventStream(chained(first, events))
        answers = await while_connected(request, translate_all(translations, list(jobs.values())))
        return respond(asked, dict(zip(jobs, answers, strict=True)))


async def translate_all(translations: Translations, jobs: Sequence[Job]) -> list[list[Answer]]:
    return await together([translations.translate(job) for job in jobs])


def check(asked: TranslateRequest, settings: Settings) -> None:
    """Raises InvalidRequest, in LibreTranslate's words where it has some."""
    if asked.format not in ("text", "html"):
        raise InvalidRequest(f"{shown(asked.format)} format is not supported")
    size, count = sum(map(len, asked.texts)), len(asked.texts)
    languages = len({asked.target, *asked.targets})
    terms = len(asked.glossary) + len(asked.do_not_translate)
    limits = (
        ("alternatives", asked.alternatives, settings.max_alternatives),
        ("beam_size", asked.beam_size or 0, settings.max_beam_size),
        ("targets", len(asked.targets), settings.max_targets),
    )
    found = []
    if size > settings.max_characters:
        found.append(f"request ({size}) exceeds text limit ({settings.max_characters})")
    elif size * languages > settings.max_pending_characters:
        limit = settings.max_pending_characters // languages
        found.append(f"request ({size}) exceeds text limit ({limit}) for {languages} targets")
    if count > settings.max_texts:
        found.append(f"request ({count}) exceeds text limit ({settings.max_texts})")
    found += [f"{name} parameter must be <= {limit}" for name, value, limit in limits if value > limit]
    if terms > settings.max_terms:
        found.append(f"glossary and do_not_translate have {terms} terms; accepted: at most {settings.max_terms}")
    if asked.stream and asked.targets:
        found.append("stream and targets cannot be used together")
    if asked.glossary_id and asked.source == AUTO:
        found.append("glossary_id needs a source language")
    if found:
        raise InvalidRequest.listing(found)


async def kept_terms(asked: TranslateRequest, target: str, caller: str, glossaries: Glossaries) -> Terms:
    """Of the caller's own glossary. Raises NotFound and InvalidRequest."""
    if asked.glossary_id is None:
        return Terms()
    return await glossaries.terms(caller, [asked.glossary_id], asked.source, target)


def job_of(asked: TranslateRequest, target: str, caller: str, kept: Terms) -> Job:
    """One for each target; with the request's own terms, and those that are kept here."""
    return Job(
        texts=asked.texts,
        source=None if asked.source == AUTO else asked.source,
        target=target,
        format=Format(asked.format),
        sentences=not asked.split_sentences,
        beam_size=asked.beam_size,
        terms=terms_of(asked, kept),
        wants=Wants(asked.alternatives, asked.alignment, asked.attention),
        caller=caller,
        deadline=None if asked.timeout_ms is None else time.monotonic() + asked.timeout_ms / 1000,
    )


def terms_of(asked: TranslateRequest, kept: Terms) -> Terms:
    """Raises InvalidRequest."""
    if not asked.glossary and not asked.do_not_translate:
        return kept
    try:
        return Terms(tuple({**dict(kept.glossary), **asked.glossary}.items()), tuple(asked.do_not_translate))
    except RequestError as error:
        raise InvalidRequest.listing([str(error)]) from error


def respond(asked: TranslateRequest, answers: dict[str, Sequence[Answer]]) -> TranslateResponse:
    """By target."""
    found = {target: translated(asked, each) for target, each in answers.items()}
    others = {target: found[target] for target in dict.fromkeys(asked.targets)}
    return TranslateResponse(**dict(found[asked.target]), translations=others or None)


def translated(asked: TranslateRequest, answers: Sequence[Answer]) -> TargetResponse:
    """A text for a text, a list for a list."""

    def each(value: Callable[[Answer], T]) -> Any:
        found = [value(answer) for answer in answers]
        return found[0] if isinstance(asked.q, str) else found

    return TargetResponse(
        translatedText=each(lambda answer: answer.text),
        detectedLanguage=each(_detected) if asked.source == AUTO else None,
        alternatives=each(lambda answer: list(answer.alternatives)) if asked.alternatives else None,
        bridge=each(lambda answer: answer.bridge or None) if any(answer.bridge for answer in answers) else None,
        quality=each(lambda answer: percent(answer.confidence)) if asked.quality else None,
        segments=each(lambda answer: [_segment(asked, sentence) for sentence in answer.sentences])
        if asked.segments or asked.alignment or asked.attention
        else None,
    )


def percent(confidence: float | None) -> float | None:
    """0 to 100, as LibreTranslate has it."""
    return None if confidence is None else round(100 * confidence, 1)


def _detected(answer: Answer) -> DetectedLanguage:
    assert answer.detected is not None
    return DetectedLanguage(confidence=round(100 * answer.detected.confidence, 1), language=answer.detected.language)


def _segment(asked: TranslateRequest, sentence: Sentence) -> Segment:
    maps = sentence.attention
    return Segment(
        source=sentence.source,
        target=sentence.target,
        quality=percent(sentence.confidence),
        alternatives=sentence.alternatives if asked.alternatives else None,
        alignment=sentence.alignment if asked.alignment else None,
        attention=SegmentAttention(source=maps.source, target=maps.target, weights=maps.weights) if maps else None,
    )


async def streamed(
    asked: TranslateRequest, found: AsyncIterator[StreamedSentence | StreamEnd], request: Request
) -> AsyncIterator[bytes]:
    """Events; an error after the first of them is one, too."""
    begun = False
    try:
        async for each in found:
            match each:
                case StreamedSentence():
                    segment = StreamedSegment(
                        text=each.text if isinstance(asked.q, list) else None,
                        index=each.index,
                        source=each.source,
                        translatedText=each.translation,
                        quality=percent(each.confidence),
                    )
                    yield event("segment", segment)
                case StreamEnd():
                    yield event("done", respond(asked, {asked.target: each.answers}))
            begun = True
    except ServiceError as error:
        if not begun:
            raise
        yield event("error", problem(request.scope, error))


async def first_of(events: AsyncIterator[bytes]) -> bytes:
    return await anext(events)


async def chained(first: bytes, events: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for each in events:
        yield each
