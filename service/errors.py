"""Errors of the service's answers.

Messages use LibreTranslate's wording if LibreTranslate has the same error. Clients of LibreTranslate compare `error`
literally, so a list of accepted values is only in `message` and `detail`.
"""

import re
import traceback
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

HEAD_BYTES = 65_536  # limit for the URL and headers of a request
MAX_PROBLEMS = 20  # limit for one message
SHUTTING_DOWN = "The service is shutting down"
_SURROGATE = re.compile("[\ud800-\udfff]")


class ServiceError(Exception):
    """Base class of the errors that the service sends to clients."""

    code: ClassVar[str]
    status: ClassVar[int]
    deepl_status: ClassVar[int]
    default_message: ClassVar[str]
    default_retry: ClassVar[int | None]

    def __init_subclass__(
        cls, status: int = 0, deepl_status: int = 0, message: str = "", retry_after: int | None = None
    ) -> None:
        """Define an error. Its code is the name of the class: `not_found` for NotFound.

        `deepl_status` is its status in DeepL's contract, if it differs; `retry_after` is seconds. A class without a
        status has the properties of its base class.
        """
        super().__init_subclass__()
        if status:
            cls.code = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
            cls.status, cls.deepl_status = status, deepl_status or status
            cls.default_message, cls.default_retry = message, retry_after

    def __init__(
        self, message: str = "", retry_after: int | None = None, accepted: str = "", more: Iterable[str] = ()
    ) -> None:
        """`retry_after` is a number of seconds.

        `more` problems and `accepted` are appended to the message, but not in `error`, which clients of LibreTranslate
        compare literally.
        """
        self.error = message or self.default_message
        self.message = "; ".join((self.error, *more, *([f"accepted: {accepted}"] if accepted else ())))
        super().__init__(self.message)
        seconds = self.default_retry if retry_after is None else retry_after
        self.headers: dict[str, str] = {} if seconds is None else {"Retry-After": str(seconds)}


class InvalidRequest(ServiceError, status=400):
    """The request has the wrong form or size."""

    @classmethod
    def listing(cls, *problems: str, accepted: str = "") -> "InvalidRequest":
        """Return an error whose message lists `problems`, up to MAX_PROBLEMS."""
        more = [f"and {len(problems) - MAX_PROBLEMS} more"] if len(problems) > MAX_PROBLEMS else []
        return cls("Invalid request: " + "; ".join([*problems[:MAX_PROBLEMS], *more]), accepted=accepted)


class UnsupportedLanguage(ServiceError, status=400):
    """No model translates the language or the pair of languages."""


class UnknownModel(ServiceError, status=400):
    """The service has no model of this name."""


class CannotTranslate(ServiceError, status=400):
    """The model cannot translate this text. The status is not 5xx, because clients would send the text again."""


class NotFound(ServiceError, status=404):
    """The resource does not exist, or belongs to another caller."""


class NotReady(ServiceError, status=503, message="The document is not ready yet", retry_after=1):
    """The document is still being translated."""


class InvalidDocument(ServiceError, status=400):
    """The file has an unknown format, or its content does not match the ending of its name."""


class BodyTooLarge(ServiceError, status=413):
    """The request body is over the limit."""


class UnsupportedEncoding(ServiceError, status=415):
    """The body of the request is compressed."""

    def __init__(self, coding: str) -> None:
        super().__init__(
            f"Invalid request: the Content-Encoding {shorten(coding)} is not supported", accepted="a body as it is"
        )
        self.headers["Accept-Encoding"] = "identity"  # RFC 9110, 15.5.16


class UnsupportedTransfer(ServiceError, status=501):
    """The body of the request is compressed for its transfer (RFC 9112, 6.1)."""


class ParsingLimitExceeded(ServiceError, status=413):
    """The file or the markup is too large, or parsing it takes too much time or memory."""


class InvalidKey(ServiceError, status=403):
    """The API key is missing, unknown, revoked or expired."""


class MissingKey(ServiceError, status=400, deepl_status=403):
    """The request has no API key, and the service requires one. LibreTranslate's status is 400, DeepL's is 403."""


class SuggestionsDisabled(ServiceError, status=403):
    """The setting `suggestions` is off."""


class QuotaExceeded(ServiceError, status=403, deepl_status=456):
    """The API key has used all characters of its monthly quota. Mastodon expects 403, and DeepL's clients 456."""


class TooManyRequests(ServiceError, status=429):
    """The key or address has sent too many requests in a minute, or has too many in progress."""

    def __init__(self, limit: str, retry_after: int) -> None:
        super().__init__(f"Slowdown: {limit}; try again in {retry_after} s", retry_after)


class SlowRequest(ServiceError, status=408):
    """The body of the request did not arrive in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"Invalid request: the body did not arrive within {seconds:g} s")
        self.headers["Connection"] = "close"


class HeadTooLarge(
    ServiceError, status=431, message=f"Invalid request: URL and headers exceed the limit of {HEAD_BYTES} bytes"
):
    """The URL and headers of the request are over the limit."""


class NotServing(ServiceError, status=503):
    """A translation would fail: the models are not loaded or do not work, or the service is shutting down."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"Not ready: {reason}", retry_after=5)


class Overloaded(ServiceError, status=503):
    """The queue is full."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"The service is busy: try again in {retry_after} s", retry_after)


class DeadlineExceeded(ServiceError, status=504, message="The translation did not finish in time"):
    """The translation did not finish within the time that the request allows."""


class Unavailable(ServiceError, status=503, message="The translation worker has stopped", retry_after=5):
    """No worker is available, or the service is shutting down."""


class StorageUnavailable(ServiceError, status=503, message="The database is locked: try again in 2 s", retry_after=2):
    """The database is locked by another process or cannot be used."""


class StorageFull(
    StorageUnavailable, status=507, message="The disk of the service is full: try again in 60 s", retry_after=60
):
    """The disk of the service is full."""


class InternalError(ServiceError, status=500):
    """The service has a defect. The log names the line of code, with the same request id."""

    def __init__(self, location: str) -> None:
        super().__init__("Internal error")
        self.location = location


class ReloadRefused(ServiceError, status=409):
    """A new model cannot be used. The models that are being served stay in use."""


def error_location(error: BaseException) -> str:
    """Return the type and the traceback of an exception, without the message, which may quote a client's text."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} at " + " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames))


def well_formed(text: str) -> str:
    """Replace each lone surrogate, which JSON can encode but UTF-8 cannot, by U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def accepted_value(schema: Mapping[str, Any], *path: str | int) -> str:
    """Return what the field at `path` of a JSON schema accepts: `a whole number from 0 to 100`; "" for other types."""
    field = schema
    for name in path:
        field = field.get("properties", {}).get(name, {})
        field = schema["$defs"][field["$ref"].rpartition("/")[2]] if "$ref" in field else field
    kind = next(kind for kind in field.get("anyOf", [field]) if kind.get("type") != "null")
    words = {"boolean": "true or false", "integer": "a whole number", "number": "a number"}.get(kind.get("type"), "")
    limits = {"exclusiveMinimum": "above", "minimum": "from", "maximum": "to"}
    return " ".join([words, *(f"{word} {kind[key]}" for key, word in limits.items() if words and key in kind)])


def shorten(text: str) -> str:
    """Shorten a value that a client sent, so that a message can quote it; replace lone surrogates."""
    return well_formed(text if len(text) <= 40 else text[:39] + "…")
