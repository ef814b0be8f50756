"""Who asks: `Authorization: DeepL-Auth-Key KEY`, or the older `auth_key` among the fields."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyHeader

from service.access.glossaries import Glossaries
from service.access.limits import Access, Caller
from service.dependencies import AccessDependency, GlossariesDependency, TranslationsDependency, address
from service.errors import (
    BodyTooLarge,
    CannotTranslate,
    DeadlineExceeded,
    DeepLQuotaExceeded,
    InternalError,
    InvalidKey,
    InvalidRequest,
    NotFound,
    Overloaded,
    QuotaExceeded,
    TooManyRequests,
    Unavailable,
    UnsupportedLanguage,
    documented,
)
from service.routes.deepl.body import Fields, first, read
from service.translation.core import Translations

MAX_BODY_BYTES = 128 * 1024  # of what is to be translated; DeepL's limit
_SCHEME = "deepl-auth-key"

ALWAYS = (InvalidRequest, InvalidKey, BodyTooLarge, TooManyRequests, InternalError, Unavailable)
ASKING = documented(*ALWAYS)
FINDING = (*ALWAYS, UnsupportedLanguage, NotFound)
TRANSLATING = (*FINDING, CannotTranslate, DeepLQuotaExceeded, Overloaded, DeadlineExceeded)


@dataclass(frozen=True)
class Call:
    """A request that has been admitted, and what it is served with."""

    caller: Caller
    fields: Fields
    access: Access
    translations: Translations
    glossaries: Glossaries

    @asynccontextmanager
    async def charged(self, characters: int) -> AsyncIterator[None]:
        """For what is done within, unless it fails. Raises DeepLQuotaExceeded."""
        try:
            async with self.access.charged(self.caller, characters):
                yield
        except QuotaExceeded as error:
            raise DeepLQuotaExceeded(error.message) from error


_header = APIKeyHeader(
    name="Authorization", scheme_name="DeepL", description="`DeepL-Auth-Key`, a space, and the key.", auto_error=False
)


async def _call(
    request: Request,
    authorization: Annotated[str | None, Security(_header)],
    access: AccessDependency,
    translations: TranslationsDependency,
    glossaries: GlossariesDependency,
) -> Call:
    """Whoever gives a key in the header is turned away before the body is looked at."""
    where = address(request)
    key = _key(authorization)
    caller = await access.admit(key, where) if key else None
    fields = await read(request)
    if caller is None:
        caller = await access.admit(first(fields, "auth_key") or None, where)
    return Call(caller, fields, access, translations, glossaries)


async def _small_body(request: Request) -> None:
    if len(await request.body()) > MAX_BODY_BYTES:
        raise BodyTooLarge(f"The request exceeds the limit of {MAX_BODY_BYTES // 1024} KiB")


CallDependency = Annotated[Call, Depends(_call)]
SmallBody = Depends(_small_body)


def _key(authorization: str | None) -> str:
    scheme, _, key = (authorization or "").strip().partition(" ")
    return key.strip() if scheme.lower() == _SCHEME else ""
