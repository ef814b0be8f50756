"""POST /v2/translate."""

import re
from collections.abc import Sequence
from dataclasses import replace

from fastapi import APIRouter, Request

from mt.text.linking import is_wide
from mt.text.markup import MarkupOptions
from mt.text.terms import Terms
from service.bodies import parsed
from service.dependencies import LingeringDependency, SettingsDependency, while_connected
from service.errors import BodyTooLarge, InvalidRequest, documented
from service.routes.deepl.access import TRANSLATING, Call, CallDependency, SmallBody
from service.routes.deepl.body import Fields, form_or_json
from service.routes.deepl.codes import our_source, our_target, source_code
from service.routes.deepl.schemas import NOT_OFFERED, Options, TranslateBody, Translated, TranslatedText
from service.translation.jobs import Answer, Format, Job

router = APIRouter()

_LINE_BREAK = re.compile(r"(?<=\S)[ \t]*(?:\r\n|\r|\n)[ \t]*(?=\S)")


@router.post(
    "/v2/translate",
    responses=documented(*TRANSLATING),
    response_model_exclude_none=True,
    dependencies=[SmallBody],
    openapi_extra=form_or_json(TranslateBody),
)
async def translate(
    request: Request, call: CallDependency, lingering: LingeringDependency, settings: SettingsDependency
) -> Translated:
    """Translate texts."""
    asked = parsed(TranslateBody, call.fields)
    check(asked, call.fields)
    size = sum(map(len, asked.text))
    if size > settings.max_characters:
        raise BodyTooLarge(f"The request has {size} characters; the limit is {settings.max_characters}")
    if len(asked.text) > settings.max_texts:
        raise InvalidRequest.listing([f"there are {len(asked.text)} texts; accepted: at most {settings.max_texts}"])
    job = await job_of(asked, call)
    async with call.charged(size):
        with lingering.working(call.translations.translate(job)) as working:
            answers = await while_connected(request, working)
    return Translated(translations=respond(asked, answers))


def check(asked: Options, fields: Fields) -> None:
    """What the fields say together. Raises InvalidRequest."""
    found = [f"{name} is not supported" for name in NOT_OFFERED if fields.get(name)]
    if asked.formality in ("less", "more"):
        found.append("'formality' is not supported for given 'target_lang'; accepted: default, or prefer_...")
    if (asked.glossary_id or asked.glossary_ids) and not asked.source_lang:
        found.append("source_lang is required for a glossary")
    if asked.glossary_id and asked.glossary_ids:
        found.append("glossary_id and glossary_ids cannot be used together")
    if found:
        raise InvalidRequest.listing(found)


async def directed(asked: Options, call: Call) -> Job:
    """A job without texts. Raises UnsupportedLanguage, and NotFound for a glossary."""
    pairs = call.translations.pairs
    target = our_target(asked.target_lang, pairs)
    source = our_source(asked.source_lang, pairs) if asked.source_lang else None
    ids = [asked.glossary_id] if asked.glossary_id else asked.glossary_ids
    terms = Terms()
    if ids:
        assert source is not None
        terms = await call.glossaries.terms(call.caller.id, ids, source, target)
    return Job(texts=(), source=source, target=target, terms=terms, caller=call.caller.id)


async def job_of(asked: TranslateBody, call: Call) -> Job:
    """What the dialect-free core is given."""
    texts = asked.text
    if asked.split_sentences == "nonewlines" and not asked.tag_handling:
        texts = [_LINE_BREAK.sub(_joint, text) for text in texts]
    return replace(
        await directed(asked, call),
        texts=tuple(texts),
        format=Format(asked.tag_handling) if asked.tag_handling else Format.TEXT,
        markup=markup(asked),
        sentences=asked.split_sentences == "0",
    )


def _joint(found: re.Match[str]) -> str:
    """What stands for a line break within a paragraph: a space, where the script has spaces."""
    before, after = found.string[found.start() - 1], found.string[found.end()]
    return "" if is_wide(before) and is_wide(after) else " "


def markup(asked: TranslateBody) -> MarkupOptions:
    """Names of HTML are in lower case."""

    def names(given: Sequence[str]) -> frozenset[str]:
        return frozenset(given if asked.tag_handling == "xml" else map(str.lower, given))

    return MarkupOptions(
        ignore_tags=names(asked.ignore_tags),
        non_splitting_tags=names(asked.non_splitting_tags),
        splitting_tags=names(asked.splitting_tags),
        outline_detection=asked.outline_detection,
    )


def respond(asked: TranslateBody, answers: Sequence[Answer]) -> list[TranslatedText]:
    """In the order of the texts."""
    used = asked.model_type and asked.model_type.removeprefix("prefer_")
    return [
        TranslatedText(
            detected_source_language=source_code(answer.source),
            text=answer.text,
            billed_characters=len(text) if asked.show_billed_characters else None,
            model_type_used=used,
        )
        for text, answer in zip(asked.text, answers, strict=True)
    ]
