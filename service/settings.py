"""What an operator can set: by environment variables (`MT_PORT=9000`), or by `python -m service`'s options."""

import re
from collections.abc import Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from mt.errors import MTError, problems

PREFIX = "MT_"
SECRETS = frozenset({"admin_key"})  # whose values no message shows
SHORTEST_SECRET = 16  # characters
NO_MODEL = "no_model"  # the type of a problem that names its options itself


def _split(value: Any) -> Any:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _origin(value: str) -> str:
    if value != "*" and not re.fullmatch(r"https?://[^/?#\s]+", value):
        raise ValueError(f"{value!r} is no origin; accepted: such as https://example.org, or * for all")
    return value


def _host_or_network(value: str) -> str:
    if value != "*":
        try:
            ip_network(value)
        except ValueError as error:
            raise ValueError(f"{error}; accepted: such as 10.0.0.1 or 10.0.0.0/8, or * for all") from None
    return value


def _root_path(value: str) -> str:
    if value and not re.fullmatch(r"(/[\w.~-]+)+", value, re.ASCII):
        raise ValueError("accepted: a path such as /translator, without a slash at its end")
    return value


def _long(value: SecretStr) -> SecretStr:
    if len(value.get_secret_value()) < SHORTEST_SECRET:
        raise ValueError(f"accepted: {SHORTEST_SECRET} characters or more")
    return value


Directories = Annotated[tuple[Path, ...], NoDecode, BeforeValidator(_split)]
Origins = Annotated[tuple[Annotated[str, AfterValidator(_origin)], ...], NoDecode, BeforeValidator(_split)]
Networks = Annotated[tuple[Annotated[str, AfterValidator(_host_or_network)], ...], NoDecode, BeforeValidator(_split)]


class SettingsError(MTError):
    """Settings that cannot be used; lists every problem at once."""


class Settings(BaseSettings):
    """Limits are chosen so that memory is bounded whatever clients send."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True)

    model: Directories = Field(
        (), description="the model directory, as scripts/train.py writes it; or several, separated by commas"
    )
    models: Path | None = Field(
        None,
        description="if no model is named: a folder whose folders are the models; looked through anew at each reload",
    )
    host: str = Field("127.0.0.1", description="the address to listen on; 0.0.0.0 for every network of this machine")
    port: int = Field(8000, ge=0, le=65535, description="the port to listen on; 0 takes any free one and logs it")
    device: str = Field(
        "auto", description="auto (all GPUs, or else the CPU), cpu, cuda (all of them), cuda:1 ...; a worker for each"
    )
    dtype: Literal["auto", "float32", "bfloat16", "int8"] = Field(
        "auto", description="of the weights; auto is bfloat16 on a GPU, and int8 on a CPU if that costs no quality"
    )
    threads: int | None = Field(None, ge=1, description="CPU cores that translate; all of them if left out")
    shortlist: bool = Field(
        False, description="whether only what scripts/shortlist.py lists may come out of a sentence: faster on a CPU"
    )
    max_body_bytes: int = Field(1_000_000, ge=1, description="a larger request is answered with 413")
    max_file_bytes: int = Field(10_000_000, ge=1, description="so is an upload with a larger file")
    max_held_bytes: int = Field(
        200_000_000, ge=1, description="of bodies held at a time; a request for which there is no room gets 503"
    )
    max_characters: int = Field(100_000, ge=1, description="a longer text is answered with 400, with 413 under /v2")
    max_alternatives: int = Field(10, ge=0, description="a request for more of them is answered with 400")
    max_beam_size: int = Field(10, ge=1, description="a request for a wider search is answered with 400")
    max_texts: int = Field(5000, ge=1, description="a request with more texts is answered with 400")
    max_targets: int = Field(20, ge=1, description="a request for more target languages is answered with 400")
    max_terms: int = Field(1000, ge=0, description="a request with a longer glossary is answered with 400")
    max_document_characters: int = Field(1_000_000, ge=1, description="so is a longer file")
    max_unpacked_bytes: int = Field(
        30_000_000, ge=1, description="a compressed file with more in it is answered with 400"
    )
    cache_characters: int = Field(
        2_000_000, ge=0, description="how much text and translations are kept to answer from; 0 keeps none"
    )
    file_seconds: int = Field(1800, ge=1, description="how long a translated file can be fetched")
    max_kept_file_bytes: int = Field(
        200_000_000, ge=1, description="of translated files that wait to be fetched; beyond, the oldest goes"
    )
    max_glossaries: int = Field(1000, ge=0, description="that a caller may keep")
    max_glossary_entries: int = Field(10_000, ge=1, description="of one glossary that is kept")
    max_pending_requests: int = Field(
        512, ge=1, description="requests accepted and not yet answered; the next is answered with 503"
    )
    max_pending_characters: int = Field(1_000_000, ge=1, description="the same limit, counted in characters of text")
    max_pending_texts: int = Field(20_000, ge=1, description="the same limit, counted in texts")
    max_seconds: float = Field(300, gt=0, description="a request that takes longer is answered with 504")
    load_seconds: float = Field(300, gt=0, description="a worker that takes longer to load its model is started again")
    hang_seconds: float = Field(60, gt=0, description="so is one that takes no decoder step for so long")
    grace_seconds: int = Field(25, ge=1, description="how long SIGTERM waits for accepted requests to be answered")
    database: Path | None = Field(
        None,
        description="the file of API keys, their usage, glossaries, and of documents until they are fetched, an hour "
        "at most; if left out, in memory and lost at the end",
    )
    require_key: bool = Field(False, description="whether every request needs an API key of scripts/keys.py")
    anonymous_rate: int | None = Field(
        None, ge=1, description="requests a minute from an address without an API key; no limit if left out"
    )
    admin_key: Annotated[SecretStr, AfterValidator(_long)] | None = Field(
        None, description="the key to POST /admin/reload; there is no such route if left out; best set by MT_ADMIN_KEY"
    )
    public_metrics: bool = Field(True, description="whether GET /metrics answers those without the admin key too")
    body_seconds: float = Field(10, gt=0, description="a request whose head or body takes longer to come is ended")
    max_connections: int = Field(
        900, ge=1, description="open connections; with one more, the one that has kept us waiting longest is closed"
    )
    allow_origins: Origins = Field(
        (), description="web sites whose pages may use the service (CORS), separated by commas; * for all"
    )
    root_path: Annotated[str, AfterValidator(_root_path)] = Field(
        "", description="the path under which a proxy shows the service, and which it takes away, such as /translator"
    )
    trusted_proxies: Networks = Field(
        (), description="addresses or networks of proxies whose X-Forwarded-For is believed, separated by commas"
    )
    log_json: bool | None = Field(None, description="logs as JSON lines; if left out, unless stderr is a terminal")

    @field_validator("models")
    @classmethod
    def _there_is_a_model(cls, value: Path | None, info: ValidationInfo) -> Path | None:
        if value is None and info.data.get("model") == ():
            raise PydanticCustomError(
                NO_MODEL,
                "--model (or MT_MODEL) is missing; accepted: a model directory, as scripts/train.py writes it, or by "
                "--models (MT_MODELS) a folder of them",
            )
        return value

    @model_validator(mode="after")
    def _a_request_fits_the_queue(self) -> Self:
        if self.max_characters > self.max_pending_characters:
            raise ValueError(
                f"max_characters is {self.max_characters} and max_pending_characters {self.max_pending_characters}; "
                "accepted: a queue that holds the longest request"
            )
        return self

    @model_validator(mode="after")
    def _keys_can_be_known(self) -> Self:
        if self.require_key and self.database is None:
            raise ValueError("require_key is set and database is not; accepted: the file that scripts/keys.py wrote")
        if not self.public_metrics and self.admin_key is None:
            raise ValueError("public_metrics is off and there is no admin_key; accepted: a key that opens them")
        return self


def load_settings(given: Mapping[str, Any]) -> Settings:
    """The environment's settings, but for those given. Raises SettingsError."""
    try:
        return Settings(**given)
    except ValidationError as error:
        found = (_explain(problem, given) for problem in error.errors())
        raise SettingsError(problems("the settings cannot be used", found)) from error


def option(name: str) -> str:
    """`--max-characters` for `max_characters`."""
    return "--" + name.replace("_", "-")


def variable(name: str) -> str:
    """`MT_MAX_CHARACTERS` for `max_characters`."""
    return PREFIX + name.upper()


def _explain(problem: Any, given: Mapping[str, Any]) -> str:
    """One problem of pydantic's, named as the operator would set it."""
    message = problem["msg"].removeprefix("Value error, ").replace("Input should be", "accepted:", 1)
    if not problem["loc"] or problem["type"] == NO_MODEL:
        return str(message)
    name = str(problem["loc"][0])
    shown = "refused" if name in SECRETS else f"is {problem['input']!r}"
    return f"{option(name) if name in given else variable(name)} {shown}; {message}"
