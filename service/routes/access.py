"""Callers of routes: holders of an API key, addresses without a key, and the operator."""

from typing import Annotated

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from service.access.api_keys import same_secret
from service.access.control import Caller, caller_network
from service.errors import InvalidKey, NotFound
from service.http.admission import WorkKind
from service.http.bodies import first_text, read_fields
from service.services import Services, ServicesDependency, services_of

API_KEY = "ApiKey"  # name of the scheme in the OpenAPI document
_SCHEME = "deepl-auth-key"
KEY_SCHEME = {
    "type": "apiKey",
    "description": "The word `DeepL-Auth-Key`, a space, and the key. The field `api_key` may have the key instead, or "
    "`auth_key`, the older name of DeepL's contract.",
    "in": "header",
    "name": "Authorization",
}
"""Description of the scheme in the OpenAPI document."""
_bearer = HTTPBearer(scheme_name="Operator", description="The value of the setting `admin_key`.", auto_error=False)
BearerDependency = Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]


READS = ("/v2/document/{document_id}", "/v2/document/{document_id}/result", "/v2/languages", "/v2/usage", "/detect")
WRITES = (
    "/v2/glossaries",
    "/v3/glossaries",
    "/v3/translation_memories/import",
    "/v3/translation_memories/{memory_id}/export",
    "/suggest",
)
DOCUMENTS = ("/translate_file", "/v2/document")
"""Paths of POST requests that are no translations of texts."""


async def admit(request: Request) -> Caller:
    """Admit a request and return its caller. This is a dependency of routes.

    A key in the header is checked before the body is parsed, and a key in the body afterwards.
    """
    services = await services_of(request)
    key = key_of(request.headers.get("authorization"))
    if not key:
        fields = await read_fields(request)
        key = first_text(fields, "api_key").strip() or first_text(fields, "auth_key").strip()
    caller = await services.access.admit(key or None, _address(request))
    _enter(request, services, caller.id)
    return caller


async def admit_address(request: Request) -> str:
    """Admit a request that has no key, because it names something that cannot be guessed. Return its address."""
    address = caller_network(_address(request))
    _enter(request, await services_of(request), address)
    return address


CallerDependency = Annotated[Caller, Depends(admit)]
AddressAdmission = Depends(admit_address)
AddressDependency = Annotated[str, AddressAdmission]


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def _enter(request: Request, services: Services, caller: str) -> None:
    """Count the request as work of its kind until its answer has been sent. Raises: TooManyRequests, Overloaded."""
    kind = kind_of(request.method, request.scope["route"].path)
    request.scope["state"]["work"].enter_context(services.fleet.gate.admitted(kind, caller))


def kind_of(method: str, path: str) -> WorkKind:
    """Return the kind of work of a request. `path` is the template of its path."""
    if method == "GET" or path in READS:
        return WorkKind.READ
    if path in DOCUMENTS:
        return WorkKind.DOCUMENT
    return WorkKind.TRANSLATION if method == "POST" and path not in WRITES else WorkKind.WRITE


def key_of(authorization: str | None) -> str:
    """Return the API key in `authorization`, the header Authorization; "" if it has none."""
    scheme, _, key = (authorization or "").strip().partition(" ")
    return key.strip() if scheme.lower() == _SCHEME else ""


async def require_admin(services: ServicesDependency, bearer: BearerDependency) -> None:
    """Admit only the operator.

    Raises:
        NotFound: if the setting `admin_key` is not set.
        InvalidKey: if the request does not have this key.
    """
    admin_key = services.settings.admin_key
    if admin_key is None:
        raise NotFound("Not Found")
    if bearer is None or not same_secret(bearer.credentials, admin_key.get_secret_value()):
        raise InvalidKey("Invalid API key: send the header Authorization: Bearer ADMIN_KEY (the setting admin_key)")


async def require_admin_unless_public(services: ServicesDependency, bearer: BearerDependency) -> None:
    """Admit everybody if the setting `public_metrics` is on, otherwise only the operator."""
    if not services.settings.public_metrics:
        await require_admin(services, bearer)
