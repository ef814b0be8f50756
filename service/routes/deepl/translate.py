"""POST /v2/translate."""

import re
import time
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from mt.text.alignment import is_wide
from mt.text.markup import MarkupOptions, xml_problem
from mt.text.terms import Terms
from service.access.control import Caller
from service.errors import BodyTooLarge, InvalidRequest
from service.glossaries.offered import OFFERED
from service.glossaries.store import glossary_direction
from service.http.bodies import JSON, URLENCODED, BodyReader
from service.http.direct_route import DirectRoute
from service.http.fields import AsChoice, FlagField, OptionalText, Texts, Words
from service.routes.access import CallerDependency
from service.routes.deepl.language_codes import parse_source, parse_target, source_code
from service.routes.deepl.schemas import CommonFields
from service.routes.translate import MAX_TEXTS, formality_of
from service.services import Services, ServicesDependency
from service.translation.answers import rounded_match
from service.translation.coroutines import TEXT_COST, deadline_at
from service.translation.jobs import Answer, Format, Job, free_characters

router = APIRouter(tags=["DeepL"], route_class=DirectRoute)

CLIENT_SECONDS = 9.0  # DeepL's SDK gives up after 10 s, and sends the same request again
UNSUPPORTED_FIELDS = ("style_id", "custom_instructions")
MODEL_TYPES = ("latency_optimized", "quality_optimized", "prefer_quality_optimized")


class TranslateBody(CommonFields):
    """The texts to translate, and the options."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"text": ["Where is the train station?"], "target_lang": "DE"}]}
    )

    text: Texts = Field(min_length=1, description="Texts, each of one language.")
    context: OptionalText = Field(None, description="Ignored: every sentence is translated by itself.")
    split_sentences: Annotated[Literal["0", "1", "nonewlines"] | None, AsChoice] = Field(
        None,
        description="`0`: each text is one sentence; `nonewlines`: a single line break does not end a sentence. "
        "In markup, no line break ends a sentence.",
    )
    preserve_formatting: FlagField = Field(False, description="Ignored: formatting is always preserved.")
    model_type: OptionalText = Field(
        None,
        description="Extension: the name of a model of GET /models. DeepL's values, latency_optimized, "
        "quality_optimized and prefer_quality_optimized, select the default model.",
    )
    tag_handling: Annotated[Literal["xml", "html"] | None, AsChoice] = Field(
        None, description="The markup of the texts; plain text if left out."
    )
    tag_handling_version: Annotated[Literal["v1", "v2"] | None, AsChoice] = Field(
        None,
        description="Ignored, but repeated in the response: both versions give the same result, in which each tag "
        "stays with its words.",
    )
    outline_detection: FlagField = Field(
        True,
        description="Whether the service detects which elements of XML separate texts, as paragraphs do. Without XML, "
        "it has no effect.",
    )
    non_splitting_tags: Words = Field(
        [], description="Elements that do not separate texts. Without tag_handling, they have no effect."
    )
    splitting_tags: Words = Field(
        [], description="Elements that separate texts, as paragraphs do. Without tag_handling, they have no effect."
    )
    ignore_tags: Words = Field(
        [], description="Elements whose text is not translated. Without tag_handling, they have no effect."
    )
    show_billed_characters: FlagField = Field(
        False, description="Whether the response has the number of charged characters."
    )
    show_untranslated: FlagField = Field(
        False, description="Extension: whether to list the sentences that stay unchanged and the missing clauses."
    )


class TranslatedText(BaseModel):
    detected_source_language: str
    text: str
    billed_characters: int | None = Field(None, description="Only with show_billed_characters.")
    model_type_used: str | None = Field(None, description="Only with model_type.")
    tag_handling_version: str | None = Field(None, description="Only with tag_handling; v2 unless the request has v1.")
    untranslated: list[str] | None = Field(None, description="Only with show_untranslated.")
    match: float | None = Field(
        None, description="Extension: similarity, from 0 to 1, to the match in the translation memory."
    )


class TranslateResult(BaseModel):
    """A translation of each text, in the order of the texts."""

    translations: list[TranslatedText]


TranslateFields = Annotated[TranslateBody, Depends(BodyReader(TranslateBody, JSON, URLENCODED))]

_LINE_BREAK = re.compile(r"(?<=\S)[ \t]*(?:\r\n|\r|\n)[ \t]*(?=\S)")


@router.post("/v2/translate", response_model=TranslateResult)
async def translate(
    caller: CallerDependency, body: TranslateFields, request: Request, services: ServicesDependency
) -> Response:
    """Translate texts."""
    check_options(body)
    size, limit = sum(map(len, body.text)), services.settings.max_characters
    if size > limit:
        raise BodyTooLarge(f"The request has {size} characters; the limit is {limit}")
    if len(body.text) > MAX_TEXTS:
        raise InvalidRequest.listing(f"there are {len(body.text)} texts; accepted: at most {MAX_TEXTS}")
    threads = services.translations.threads
    deadline: float = request.scope["state"]["deadline"]
    async with deadline_at(deadline):
        if body.tag_handling == "xml":
            await threads.run(caller.id, size, partial(check_xml, body.text))
        job = await job_for(body, caller, services, deadline)
        async with services.access.charged(caller, size) as charge:
            answers = await services.translations.translate(job)

            def encoded() -> bytes:
                result = TranslateResult(translations=translated_texts(body, answers))
                return result.model_dump_json(exclude_none=True).encode()

            content = await threads.run(caller.id, size + TEXT_COST * len(body.text), encoded)
            charge.free = free_characters(answers)
    return Response(content, media_type="application/json")


def check_options(body: CommonFields) -> None:
    """Raise InvalidRequest if the service does not support an option or a combination of options."""
    problems = [f"{name} is not supported; leave it out" for name in UNSUPPORTED_FIELDS if getattr(body, name)]
    if (body.glossary_id or body.glossary_ids) and not body.source_lang:
        problems.append("source_lang is required for a glossary")
    if "translation_memory_threshold" in body.model_fields_set and not body.translation_memory_id:
        problems.append("translation_memory_threshold requires translation_memory_id")
    if body.glossary_id and body.glossary_ids:
        problems.append("glossary_id and glossary_ids cannot be used together")
    if problems:
        raise InvalidRequest.listing(*problems)


def check_xml(texts: Sequence[str]) -> None:
    """Raise InvalidRequest if the tags of a text are not well-formed."""
    problems = ((number, xml_problem(text)) for number, text in enumerate(texts))
    if listed := [f"text {number} is not well-formed XML: {problem}" for number, problem in problems if problem]:
        raise InvalidRequest.listing(*listed)


async def job_without_texts(body: CommonFields, caller: Caller, services: Services) -> Job:
    """Return the job of a request, with the options but without texts.

    Raises: UnknownModel, UnsupportedLanguage, NotFound for an unknown glossary or memory, or InvalidRequest for options
        that the languages do not allow.
    """
    model = (isinstance(body, TranslateBody) and body.model_type) or ""
    model = "" if model in MODEL_TYPES else model
    routes = services.translations.routes_of(model)
    target = parse_target(body.target_lang, routes)
    source = parse_source(body.source_lang, routes) if body.source_lang else None
    ids = [body.glossary_id] if body.glossary_id else body.glossary_ids
    terms = Terms()
    if source and body.glossary_id == OFFERED and services.offered.path:
        terms = services.offered.terms.get(glossary_direction(source, target), terms)
    elif source and ids:
        terms = await services.glossaries.terms(caller.id, ids, source, target)
    if memory := body.translation_memory_id or "":
        await services.memories.check(caller.id, memory, source, target)
    return Job(
        texts=(),
        source=source,
        target=target,
        terms=terms,
        memory=memory,
        formality=formality_of(body.formality, target, body.target_lang),
        memory_score=body.translation_memory_threshold / 100,
        model=model,
        caller=caller.id,
    )


async def job_for(body: TranslateBody, caller: Caller, services: Services, deadline: float) -> Job:
    """Return the job of a request, with its texts. Raises: the errors of `job_without_texts`."""
    begun, texts = time.monotonic(), body.text
    if body.split_sentences == "nonewlines" and not body.tag_handling:
        join = partial(map, partial(_LINE_BREAK.sub, _join_lines), texts)
        texts = await services.translations.threads.run(caller.id, sum(map(len, texts)), lambda: list(join()))
    job = await job_without_texts(body, caller, services)
    job.texts, job.split_sentences = tuple(texts), body.split_sentences != "0"
    job.format, job.markup = Format(body.tag_handling or Format.TEXT), markup_options(body)
    job.deadline, job.repeated_after = deadline, begun + CLIENT_SECONDS
    return job


def _join_lines(line_break: re.Match[str]) -> str:
    """Return the replacement of a line break within a paragraph: a space, or "" if the script has no spaces."""
    before, after = line_break.string[line_break.start() - 1], line_break.string[line_break.end()]
    return "" if is_wide(before) and is_wide(after) else " "


def markup_options(body: TranslateBody) -> MarkupOptions:
    """Return the markup options of a request. The names of HTML elements are converted to lower case."""

    def names(tags: Sequence[str]) -> frozenset[str]:
        return frozenset(tags if body.tag_handling == "xml" else map(str.lower, tags))

    return MarkupOptions(
        ignore_tags=names(body.ignore_tags),
        non_splitting_tags=names(body.non_splitting_tags),
        splitting_tags=names(body.splitting_tags),
        outline_detection=body.outline_detection,
    )


def translated_texts(body: TranslateBody, answers: Sequence[Answer]) -> list[TranslatedText]:
    """Return the result for each text of a request, given the answers in the order of the texts."""
    model_type = body.model_type.removeprefix("prefer_") if body.model_type in MODEL_TYPES else body.model_type
    return [
        TranslatedText(
            detected_source_language=source_code(answer.source),
            text=answer.text,
            billed_characters=len(text) - free_characters([answer]) if body.show_billed_characters else None,
            model_type_used=model_type,
            tag_handling_version=(body.tag_handling_version or "v2") if body.tag_handling else None,
            untranslated=list(answer.untranslated) if body.show_untranslated else None,
            match=rounded_match(answer.match),
        )
        for text, answer in zip(body.text, answers, strict=True)
    ]
