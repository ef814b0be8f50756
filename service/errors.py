"""Errors of the service's answers.

Messages use LibreTranslate's wording if LibreTranslate has the same error. Clients of LibreTranslate compare `error`
literally, so a list of accepted values is only in `message` and `detail`.
"""

import re
import traceback
from collections.abc import Iterable
from http import HTTPStatus
from typing import ClassVar

MAX_PROBLEMS = 20  # limit for one message
_SURROGATE = re.compile("[\ud800-\udfff]")


class ServiceError(Exception):
    """Base class of the errors that the service sends to clients."""

    status: ClassVar[int]
    deepl_status: ClassVar[int | None] = None  # status in DeepL's contract, if it differs
    code: ClassVar[str]
    default_message: ClassVar[str] = ""
    default_retry: ClassVar[int | None] = None

    def __init__(self, message: str = "", retry_after: int | None = None, accepted: str = "") -> None:
        """`retry_after` is a number of seconds.

        `accepted` is appended to the message, but not in `error`, which clients of LibreTranslate compare literally.
        """
        self.error = message or self.default_message
        self.message = f"{self.error}; accepted: {accepted}" if accepted else self.error
        super().__init__(self.message)
        seconds = self.default_retry if retry_after is None else retry_after
        self.headers: dict[str, str] = {} if seconds is None else {"Retry-After": str(seconds)}


class InvalidRequest(ServiceError):
    """The request has the wrong form or size."""

    status = HTTPStatus.BAD_REQUEST
    code = "invalid_request"

    @classmethod
    def listing(cls, problems: Iterable[str]) -> "InvalidRequest":
        """Return an error whose message lists all `problems`."""
        return cls("Invalid request: " + "; ".join(problems))


class UnsupportedLanguage(ServiceError):
    """No model translates the language or the pair of languages."""

    status = HTTPStatus.BAD_REQUEST
    code = "unsupported_language"


class UnknownModel(ServiceError):
    """The service has no model of this name."""

    status = HTTPStatus.BAD_REQUEST
    code = "unknown_model"


class CannotTranslate(ServiceError):
    """The model cannot translate this text. The status is not 5xx, because clients would send the text again."""

    status = HTTPStatus.BAD_REQUEST
    code = "cannot_translate"


class NotFound(ServiceError):
    """The resource does not exist, or belongs to another caller."""

    status = HTTPStatus.NOT_FOUND
    code = "not_found"


class NotReady(ServiceError):
    """The document is still being translated."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    code = "not_ready"
    default_message = "The document is not ready yet"
    default_retry = 1


class InvalidDocument(ServiceError):
    """The file has an unknown format, or its content does not match the ending of its name."""

    status = HTTPStatus.BAD_REQUEST
    code = "invalid_document"


class BodyTooLarge(ServiceError):
    """The request body is over the limit."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    code = "body_too_large"


class UnsupportedEncoding(ServiceError):
    """The body of the request is compressed."""

    status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    code = "unsupported_encoding"

    def __init__(self, coding: str) -> None:
        super().__init__(
            f"Invalid request: the Content-Encoding {shorten(coding)} is not supported", accepted="a body as it is"
        )
        self.headers["Accept-Encoding"] = "identity"  # RFC 9110, 15.5.16


class UnsupportedTransfer(ServiceError):
    """The body of the request is compressed for its transfer (RFC 9112, 6.1)."""

    status = HTTPStatus.NOT_IMPLEMENTED
    code = "unsupported_transfer"


class ParsingLimitExceeded(ServiceError):
    """The file or the markup is too large, or parsing it takes too much time or memory."""

    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    code = "parsing_limit_exceeded"


class InvalidKey(ServiceError):
    """The API key is missing, unknown, revoked or expired."""

    status = HTTPStatus.FORBIDDEN
    code = "invalid_key"


class MissingKey(ServiceError):
    """The request has no API key, and the service requires one. LibreTranslate's status is 400, DeepL's is 403."""

    status = HTTPStatus.BAD_REQUEST
    deepl_status = HTTPStatus.FORBIDDEN
    code = "missing_key"


class SuggestionsDisabled(ServiceError):
    """The setting `suggestions` is off."""

    status = HTTPStatus.FORBIDDEN
    code = "suggestions_disabled"


class QuotaExceeded(ServiceError):
    """The API key has used all characters of its monthly quota. Mastodon expects 403, and DeepL's clients 456."""

    status = HTTPStatus.FORBIDDEN
    deepl_status = 456
    code = "quota_exceeded"


class TooManyRequests(ServiceError):
    """The key or address has sent too many requests in a minute, or has too many in progress."""

    status = HTTPStatus.TOO_MANY_REQUESTS
    code = "too_many_requests"

    def __init__(self, limit: str, retry_after: int) -> None:
        super().__init__(f"Slowdown: {limit}; try again in {retry_after} s", retry_after)


class SlowRequest(ServiceError):
    """The body of the request did not arrive in time."""

    status = HTTPStatus.REQUEST_TIMEOUT
    code = "slow_request"

    def __init__(self, seconds: float) -> None:
        super().__init__(f"Invalid request: the body did not arrive within {seconds:g} s")
        self.headers["Connection"] = "close"


class HeadTooLarge(ServiceError):
    """The URL and headers of the request are over the limit."""

    status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    code = "head_too_large"


class NotServing(ServiceError):
    """A translation would fail: the models are not loaded or do not work, or the service is shutting down."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    code = "not_serving"

    def __init__(self, reason: str) -> None:
        super().__init__(f"Not ready: {reason}", retry_after=5)


class Overloaded(ServiceError):
    """The queue is full."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    code = "overloaded"

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"The service is busy: try again in {retry_after} s", retry_after)


class DeadlineExceeded(ServiceError):
    """The translation did not finish within the time that the request allows."""

    status = HTTPStatus.GATEWAY_TIMEOUT
    code = "deadline_exceeded"
    default_message = "The translation did not finish in time"


class Unavailable(ServiceError):
    """No worker is available, or the service is shutting down."""

    status = HTTPStatus.SERVICE_UNAVAILABLE
    code = "unavailable"
    default_message = "The translation worker has stopped"
    default_retry = 5


class StorageUnavailable(ServiceError):
    """The database is locked by another process or cannot be used."""

    status: ClassVar[int] = HTTPStatus.SERVICE_UNAVAILABLE
    code = "storage_unavailable"
    default_message = "The database is locked: try again in 2 s"
    default_retry = 2


class StorageFull(StorageUnavailable):
    """The disk of the service is full."""

    status = HTTPStatus.INSUFFICIENT_STORAGE
    code = "storage_full"
    default_message = "The disk of the service is full: try again in 60 s"
    default_retry = 60


class InternalError(ServiceError):
    """The service has a defect. The log names the line of code, with the same request id."""

    status = HTTPStatus.INTERNAL_SERVER_ERROR
    code = "internal_error"

    def __init__(self, location: str) -> None:
        super().__init__("Internal error")
        self.location = location


class ReloadRefused(ServiceError):
    """A new model cannot be used. The models that are being served stay in use."""

    status = HTTPStatus.CONFLICT
    code = "reload_refused"


def error_location(error: BaseException) -> str:
    """Return the type and the traceback of an exception, without the message, which may quote a client's text."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} at " + " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames))


def well_formed(text: str) -> str:
    """Replace each lone surrogate, which JSON can encode but UTF-8 cannot, by U+FFFD."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def shorten(text: str) -> str:
    """Shorten a value that a client sent, so that a message can quote it."""
    return text if len(text) <= 40 else text[:39] + "…"
