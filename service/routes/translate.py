"""POST /translate, by LibreTranslate's contract."""

import json
from collections.abc import AsyncGenerator
from functools import partial
from itertools import chain
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from mt.errors import RequestError
from mt.text.formality import Formality, chosen_formality
from mt.text.terms import Terms
from service.access.control import Caller
from service.errors import InvalidRequest, NotFound, ServiceError, shorten
from service.glossaries.entries import terms_of
from service.glossaries.offered import OFFERED, OfferedGlossary, OfferedTerms
from service.glossaries.store import glossary_direction
from service.http.bodies import BodyReader
from service.http.direct_route import DirectRoute
from service.http.events import EVENT_SCHEMA, EVENT_STREAM, EventStream, encode_event
from service.http.parts import answer_in_parts, sent_parts
from service.http.problems import problem_body
from service.routes.access import CallerDependency
from service.schemas import (
    AUTO,
    FileRequest,
    StreamedSegment,
    TargetResponse,
    TranslateRequest,
    TranslateResponse,
    TranslationFields,
    parts_of,
)
from service.services import Services, ServicesDependency
from service.settings import Settings
from service.translation.coroutines import TEXT_COST, THREAD_CHARACTERS, deadline_at, gather_or_raise
from service.translation.jobs import Format, Job, StreamedSentence, free_characters
from service.workers.messages import NO_TERMS

MAX_TEXTS, MAX_TARGETS, MAX_ALTERNATIVES, MAX_BEAM_SIZE = 1000, 20, 10, 10  # limits of a request
MAX_WEIGHTS = 200_000  # attention weights of all texts of a request: writing more would stop the event loop for long
MAX_ANSWER = 2_000_000  # characters of all texts, for each target and each of its alternatives
router = APIRouter(tags=["translation"], route_class=DirectRoute)

TranslateRequestBody = Annotated[TranslateRequest, Depends(BodyReader(TranslateRequest))]

RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The translation. With `stream`: the event `segment` for each sentence, in order, and then "
        "`done` with the complete answer, or `error` with the body of an error.",
        "content": {EVENT_STREAM: {"schema": EVENT_SCHEMA}},
    },
}


@router.post("/translate", response_model=TranslateResponse, responses=RESPONSES)
async def translate(
    caller: CallerDependency, body: TranslateRequestBody, request: Request, services: ServicesDependency
) -> Response:
    """Translate a text, or a list of texts. The fields may be sent as JSON, as a form, or in the query."""
    check_limits(body, services.settings)
    translations = services.translations
    routes = translations.routes_of(body.model or "")
    names = {name: routes.resolve(name) for name in (body.target, *body.targets)}  # several may name one language
    deadline: float = request.scope["state"]["deadline"]
    if body.timeout_ms is not None:
        deadline -= max(0, services.settings.request_timeout_seconds - body.timeout_ms / 1000)
    async with deadline_at(deadline):
        jobs = {to: await job_for(body, to, caller, services, deadline) for to in dict.fromkeys(names.values())}
        if body.stream:
            events = stream_events(body, request, services, caller, jobs[names[body.target]])
            return EventStream(await anext(events), events)  # an error before the first event has a status of its own
        async with services.access.charged(caller, characters(body) * len(jobs)) as charge:
            answers = await gather_or_raise([translations.translate(job) for job in jobs.values()])

            def encoded() -> list[bytes]:
                of = {to: parts_of(TargetResponse.written(body, its)) for to, its in zip(jobs, answers, strict=True)}
                parts = list(of[names[body.target]])
                for number, name in enumerate(dict.fromkeys(body.targets)):
                    before = b"," if number else b',"translations":{'
                    parts += [before, f"{json.dumps(name)}:".encode(), *of[names[name]], b"}"]
                return [*parts, b"}}" if body.targets else b"}"]

            parts = await translations.threads.run(caller.id, effort(body) * len(jobs), encoded)
            charge.free = sum(map(free_characters, answers))
    return answer_in_parts(request, parts)


def characters(body: TranslateRequest) -> int:
    """Return the number of characters of all texts."""
    return sum(map(len, body.texts))


def effort(body: TranslateRequest) -> int:
    """Return the effort of writing the answer for one target, as the number of characters of a plain text."""
    if body.attention:
        return THREAD_CHARACTERS
    return (characters(body) + TEXT_COST * len(body.texts)) * (1 + body.alternatives)


def check_limits(body: TranslateRequest, settings: Settings) -> None:
    """Check the format, the limits, and combinations of fields.

    Raises:
        InvalidRequest: if a check fails. The message lists all problems, in LibreTranslate's wording where it has one.
    """
    if body.format not in ("text", "html"):
        raise InvalidRequest(f"{shorten(body.format)} format is not supported")
    size, count = characters(body), len(body.texts)
    languages = len({body.target, *body.targets})
    limits = (
        ("alternatives", body.alternatives, MAX_ALTERNATIVES),
        ("beam_size", body.beam_size or 0, MAX_BEAM_SIZE),
        ("targets", len(body.targets), MAX_TARGETS),
    )
    problems, accepted = [], ""
    if size > settings.max_characters:
        accepted = f"at most {settings.max_characters} characters"
        problems.append(f"request ({size}) exceeds text limit ({settings.max_characters})")
    elif size * languages > settings.max_pending_characters:
        limit = settings.max_pending_characters // languages
        problems.append(f"request ({size}) exceeds text limit ({limit}) for {languages} targets")
    elif size * (copies := languages * (1 + body.alternatives)) > MAX_ANSWER:
        problems.append(f"request ({size}) exceeds text limit ({MAX_ANSWER // copies}) for {copies} translations")
    if count > MAX_TEXTS:
        accepted += f"{' and' if accepted else 'at most'} {MAX_TEXTS} texts"
        problems.append(f"request ({count}) exceeds text limit ({MAX_TEXTS})")
    problems += [f"{name} parameter must be <= {limit}" for name, value, limit in limits if value > limit]
    problems += body.term_problems(body.source)
    if body.stream and body.targets:
        problems.append("stream and targets cannot be used together")
    if problems:
        raise InvalidRequest.listing(*problems, accepted=accepted)


def terms_of_operator(body: TranslationFields, target: str, offered: OfferedGlossary) -> OfferedTerms:
    """Return the operator's terms for each direction into `target`, with those of the request; {} without `operator`.

    Raises:
        NotFound: if the request names the operator's glossary, and the service has none.
        InvalidRequest: if the terms cannot be used.
    """
    if body.glossary_id != OFFERED:
        return {}
    if not offered.path:
        raise NotFound(f"There is no glossary {OFFERED}: the service has no page_glossary")
    terms = offered.terms  # a reload may replace them meanwhile
    into_target = (pair for pair in terms if pair == glossary_direction(pair.source, target))
    return {pair: merged_terms(body, terms[pair]) for pair in into_target}


def merged_terms(body: TranslationFields, stored: Terms) -> Terms:
    """Return stored terms together with those of a request. Raises: InvalidRequest if the terms cannot be used."""
    if not body.glossary and not body.do_not_translate:
        return stored
    kept = set(body.do_not_translate)
    glossary = {term: translation for term, translation in stored.glossary if term not in kept} | body.glossary
    return terms_of(glossary, body.do_not_translate)


async def job_for(body: TranslateRequest, target: str, caller: Caller, services: Services, deadline: float) -> Job:
    """Return the job for one target language of a request. Raises: the errors of `job_without_texts`."""
    job = await job_without_texts(body, target, caller, services)
    job.texts, job.format, job.deadline = body.texts, Format(body.format), deadline
    job.split_sentences, job.beam_size, job.alternatives = body.split_sentences, body.beam_size, body.alternatives
    weights = MAX_WEIGHTS // (len(body.texts) or 1) // len({body.target, *body.targets})
    job.alignment, job.attention = body.alignment, weights if body.attention else 0
    return job


async def job_without_texts(
    body: TranslateRequest | FileRequest, target: str, caller: Caller, services: Services
) -> Job:
    """Return the job of a request for the language `target`, with the options but without texts.

    Terms of the request take precedence over those of the glossary `glossary_id`.

    Raises:
        UnknownModel: the model of the request is not served.
        UnsupportedLanguage: no models translate between the languages.
        NotFound: the caller cannot use the glossary or the memory.
        InvalidRequest: the glossary or the memory does not have the languages, or the terms cannot be used.
    """
    model = body.model or ""
    routes = services.translations.routes_of(model)
    source, target = None if body.source == AUTO else routes.resolve(body.source), routes.resolve(target)
    if source is None:
        routes.check_supported(target)
    else:
        routes.find(source, target)
    stored = NO_TERMS
    if source and body.glossary_id not in (None, OFFERED):
        stored = await services.glossaries.terms(caller.id, [body.glossary_id], source, target)
    if body.memory:
        await services.memories.check(caller.id, body.memory, source, target)
    joined = [stored, *(services.offered.terms.values() if body.glossary_id == OFFERED else ())]
    own = (*body.glossary, *body.glossary.values(), *body.do_not_translate)
    count = len(own) + sum(len(terms.glossary) for terms in joined) if own else 0
    terms, terms_of = await services.translations.threads.run(
        caller.id,
        count * TEXT_COST + sum(map(len, own)),
        lambda: (merged_terms(body, stored), terms_of_operator(body, target, services.offered)),
    )
    return Job(
        texts=(),
        source=source,
        target=target,
        terms=terms,
        terms_of=terms_of,
        memory=body.memory or "",
        memory_score=body.memory_threshold / 100,
        formality=formality_of(body.formality, target),
        model=model,
        caller=caller.id,
    )


def formality_of(choice: str | None, target: str, name: str = "") -> Formality | None:
    """Return the formality that a request asks for; None for the default. `name` is the target as the request names it.

    Raises: InvalidRequest for `less` or `more` if the service does not support formality for the target language.
    """
    try:
        return chosen_formality(choice, target)
    except RequestError as error:
        field = "target_lang" if name else "target"
        raise InvalidRequest(
            f"Target language {shorten(name or target)} does not support formality: "
            f"'formality' is not supported for given '{field}'",
            accepted="default, prefer_less, prefer_more",
        ) from error


async def stream_events(
    body: TranslateRequest,
    request: Request,
    services: Services,
    caller: Caller,
    job: Job,
) -> AsyncGenerator[bytes, None]:
    """Yield the events of a stream. An error after the first event becomes an event, too.

    If the stream fails or is closed before its end, the characters of sentences that were not sent are refunded.
    """
    begun = False
    try:
        async with services.access.charged(caller, characters(body)) as charge:
            async for item in services.translations.stream(job):
                match item:
                    case StreamedSentence():
                        charge.delivered += item.source[1] - item.source[0]
                        yield encode_event("segment", StreamedSegment.of(body, item).model_dump_json(exclude_none=True))
                    case answers:
                        charge.free = free_characters(answers)
                        event = chain(["event: done\ndata: "], TargetResponse.written(body, answers), ["}\n\n"])
                        write = partial(parts_of, event)
                        async with deadline_at(job.deadline):
                            parts = await services.translations.threads.run(caller.id, effort(body), write)
                        async for part in sent_parts(request, parts):
                            yield part
                begun = True
    except ServiceError as error:
        if not begun:
            raise
        yield encode_event("error", problem_body(request.scope, error).model_dump_json(exclude_none=True))
