"""Admission of DeepL's requests: `Authorization: DeepL-Auth-Key KEY`, or the older field `auth_key`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import APIKeyHeader

from service.access.control import AccessControl, Caller
from service.access.glossaries import GlossaryStore
from service.access.memories import MemoryStore
from service.dependencies import (
    AccessDependency,
    GlossariesDependency,
    MemoriesDependency,
    TranslationsDependency,
    client_address,
)
from service.errors import (
    DeepLQuotaExceeded,
    InvalidKey,
    MissingKey,
    QuotaExceeded,
)
from service.routes.deepl.body import Fields, first_text, read_deepl_fields
from service.translation.service import TranslationService

_SCHEME = "deepl-auth-key"


@dataclass(frozen=True)
class AdmittedRequest:
    """An admitted request: its caller, its fields, and the objects of the application that serve it."""

    caller: Caller
    fields: Fields
    access: AccessControl
    translations: TranslationService
    glossaries: GlossaryStore
    memories: MemoryStore

    @asynccontextmanager
    async def charged(self, characters: int) -> AsyncIterator[None]:
        """Charge characters as `AccessControl.charged` does, but raise DeepLQuotaExceeded instead of QuotaExceeded."""
        try:
            async with self.access.charged(self.caller, characters):
                yield
        except QuotaExceeded as error:
            raise DeepLQuotaExceeded(error.message) from error


_header = APIKeyHeader(
    name="Authorization",
    scheme_name="DeepL",
    description="The word `DeepL-Auth-Key`, a space, and the key.",
    auto_error=False,
)


async def _admit(
    request: Request,
    authorization: Annotated[str | None, Security(_header)],
    access: AccessDependency,
    translations: TranslationsDependency,
    glossaries: GlossariesDependency,
    memories: MemoriesDependency,
) -> AdmittedRequest:
    """Admit the caller. A key in the header is checked before the body is parsed, and a key in the body afterwards."""
    remote = client_address(request)
    key = key_of(authorization)
    caller = await access.admit(key, remote) if key else None
    fields = await read_deepl_fields(request)
    if caller is None:
        try:
            caller = await access.admit(first_text(fields, "auth_key") or None, remote)
        except MissingKey as error:
            raise InvalidKey(error.message) from error
    return AdmittedRequest(caller, fields, access, translations, glossaries, memories)


HeaderKey = Annotated[str | None, Security(_header)]
AdmittedDependency = Annotated[AdmittedRequest, Depends(_admit)]


def key_of(authorization: str | None) -> str:
    """Return the API key in `authorization`, the header Authorization; "" if it has none."""
    scheme, _, key = (authorization or "").strip().partition(" ")
    return key.strip() if scheme.lower() == _SCHEME else ""
