"""Settings of the service, from environment variables (`MT_PORT=9000`) or options of `python -m service`.

The reference page of settings is generated from the descriptions.
"""

import os
import re
from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from mt.errors import MTError, did_you_mean, problems
from service.errors import accepted_value

VARIABLE_PREFIX = "MT_"
OTHER_VARIABLES = frozenset({"MT_DATA", "MT_PYTHON"})  # of other programs of the project
UNUSABLE = "the settings cannot be used"
SECRETS = frozenset({"admin_key"})  # settings whose values never appear in a message
MIN_SECRET_LENGTH = 16  # characters
BROAD_NETWORK = 65_536  # addresses; a larger network of trusted proxies is probably a mistake


def _split(value: Any) -> Any:
    return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value


def _origin(value: str) -> str:
    if value != "*" and not re.fullmatch(r"https?://[^/?#\s]+", value):
        raise ValueError(f"{value!r} is not an origin; accepted: an origin such as https://example.org, or * for all")
    return value


def _host_or_network(value: str) -> str:
    if value != "*":
        try:
            ip_network(value)
        except ValueError as error:
            raise ValueError(f"{error}; accepted: an address or a network such as 10.0.0.0/8, or * for all") from None
    return value


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _host_name(value: str) -> str:
    if value != "*" and not re.fullmatch(r"[\w-]+(\.[\w-]+)*", value, re.ASCII):
        raise ValueError(f"{value!r} is not a name; accepted: a name such as mt.example.org without a port, or *")
    return value.lower()


def _root_path(value: str) -> str:
    if value and not re.fullmatch(r"(/[\w.~-]+)+", value, re.ASCII):
        raise ValueError("accepted: a path such as /translator, without a slash at its end")
    return value


def _long(value: SecretStr) -> SecretStr:
    if len(value.get_secret_value()) < MIN_SECRET_LENGTH:
        raise ValueError(f"accepted: {MIN_SECRET_LENGTH} characters or more")
    return value


Directories = Annotated[tuple[Path, ...], NoDecode, BeforeValidator(_split)]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
Origins = Annotated[tuple[Annotated[str, AfterValidator(_origin)], ...] | None, NoDecode, BeforeValidator(_split)]
HostNames = Annotated[tuple[Annotated[str, AfterValidator(_host_name)], ...], NoDecode, BeforeValidator(_split)]
Networks = Annotated[tuple[Annotated[str, AfterValidator(_host_or_network)], ...], NoDecode, BeforeValidator(_split)]


class SettingsError(MTError):
    """Raised if settings cannot be used. The message lists every problem."""


class Settings(BaseSettings):
    """All settings. With the default limits, no requests of clients can exhaust the memory of the service."""

    model_config = SettingsConfigDict(env_prefix=VARIABLE_PREFIX, env_ignore_empty=True, frozen=True)

    model: Directories = Field(
        (),
        description="Model directory, or `hub:NAME`, which installs a model of the Hugging Face hub if necessary (see "
        "`mt-service models`), or `starter`, the bundled model. Several are separated by commas. Without `model` and "
        "`models`, the bundled model is served.",
    )
    models: Path | None = Field(
        None,
        description="Folder of model directories, searched again at each reload; `model` overrides it. Models of the "
        "hub are installed in it.",
    )
    preferred_models: Names = Field(
        (),
        description="Names of models, the most preferred first, separated by commas. If several models translate a "
        "direction, the most preferred is its default. Models that are not named come last, in the order of `model`, "
        "or by the names of their folders.",
    )
    model_memory_mb: int | None = Field(
        None,
        ge=1,
        description="Memory in megabytes for all loaded models. The models with the fewest recent requests are "
        "unloaded; a request loads its model again. If left out, all models stay loaded.",
    )
    host: str = Field("127.0.0.1", description="Address to listen on; 0.0.0.0 listens on every network.")
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 takes a free port, which is logged.")
    device: str = Field(
        "auto", description="Devices that translate: auto (all GPUs, or else the CPU), cpu, cuda, cuda:1."
    )
    workers_per_gpu: int | None = Field(
        None,
        ge=1,
        le=8,
        description="Workers of each model on each GPU. While the processor prepares the texts of one worker, the GPU "
        "runs those of another. If left out, 2 if the first one leaves at least 32 GB of the GPU free, else 1.",
    )
    dtype: Literal["auto", "float32", "bfloat16", "int8"] = Field(
        "auto",
        description="Type of the weights; auto is bfloat16 on a GPU, and int8 on a CPU if the model is calibrated.",
    )
    backend: Literal["auto", "cpu", "cuda", "torch"] = Field(
        "auto",
        description="Backend that decodes: auto (the fastest), cpu, cuda, or torch, which is slow, for machines on "
        "which no other backend works.",
    )
    threads: int | None = Field(
        None, ge=1, description="CPU cores that translate; if left out, all cores, or 2 for each GPU."
    )
    max_body_bytes: int = Field(
        1_000_000, ge=1, description="Size of a request body; larger ones are refused with 413."
    )
    max_file_bytes: int = Field(
        10_000_000, ge=1, description="Size of an uploaded file; a larger one is refused with 413."
    )
    max_buffered_bytes: int = Field(
        200_000_000,
        ge=1,
        description="Size of all request bodies in memory; a body over 64 KiB that does not fit is refused with 503. "
        "The limit holds for unread answers, too: beyond it, the connections with the largest are closed.",
    )
    max_characters: int = Field(
        100_000, ge=1, description="Characters of a request; more are refused with 400, and under /v2 with 413."
    )
    max_document_characters: int = Field(1_000_000, ge=1, description="Characters of a file; more are refused.")
    max_unpacked_bytes: int = Field(
        30_000_000, ge=1, description="Size of the content of a compressed file; a larger one is refused with 400."
    )
    cache_characters: int = Field(
        2_000_000, ge=0, description="Characters of texts and translations in the cache; 0 switches the cache off."
    )
    file_retention_seconds: int = Field(1800, ge=1, description="Time after which a translated file is deleted.")
    max_stored_file_bytes: int = Field(
        200_000_000,
        ge=1,
        description="Size of all documents and translated files that are stored; beyond it, the caller with the most "
        "loses the oldest that are finished.",
    )
    max_glossaries: int = Field(1000, ge=0, description="Glossaries that a caller may store.")
    max_memories: int = Field(100, ge=0, description="Translation memories that a caller may store.")
    max_memory_units: int = Field(200_000, ge=1, description="Units of one stored translation memory.")
    suggestions: bool = Field(
        False, description="Whether POST /suggest and the page accept better translations from users."
    )
    page_glossary: Path | None = Field(
        None,
        description="CSV file with terms that the page uses for every user: term, translation, and the codes of their "
        "languages.",
    )
    page_memories: Names = Field(
        (),
        description="Names of the operator's translation memories, separated by commas: the page uses the first that "
        "fits the languages for every user who chooses no other.",
    )
    max_pending_requests: int = Field(
        512, ge=1, description="Accepted requests that are not yet answered; the next one is refused with 503."
    )
    max_pending_characters: int = Field(1_000_000, ge=1, description="Characters of all accepted requests.")
    max_pending_texts: int = Field(20_000, ge=1, description="Texts of all accepted requests.")
    request_timeout_seconds: float = Field(
        300, gt=0, description="Time of a request; one that takes longer is answered with 504."
    )
    load_timeout_seconds: float = Field(
        300, gt=0, description="Time in which a worker must load its model; it is restarted if it takes longer."
    )
    step_timeout_seconds: float = Field(
        60,
        gt=0,
        description="Time in which a busy worker must take a decoder step; it is restarted if it takes longer.",
    )
    grace_seconds: int = Field(25, ge=1, description="Time after SIGTERM in which accepted requests are answered.")
    database: Path | None = Field(
        None,
        description="File of API keys, their usage, glossaries, translation memories and documents; if left out, a "
        "temporary file that is deleted at the end.",
    )
    require_key: bool = Field(False, description="Whether every request needs an API key (see mt-service keys).")
    anonymous_rate: int | None = Field(
        None, ge=1, description="Requests per minute from an address without an API key; no limit if left out."
    )
    admin_key: Annotated[SecretStr, AfterValidator(_long)] | None = Field(
        None, description="Key of POST /admin/reload, best set as MT_ADMIN_KEY; the route is off if left out."
    )
    public_metrics: bool = Field(True, description="Whether GET /metrics can be read without the admin key.")
    read_timeout_seconds: float = Field(
        10,
        gt=0,
        description="Time in which the head and the body of a request must arrive; a client that reads nothing of its "
        "answer for this time is disconnected.",
    )
    max_connections: int = Field(
        2000,
        ge=1,
        description="Open connections; fewer if the limit of open files is lower. Beyond it, the connection is closed "
        "that has waited longest for the head of a request, or for its body if more connections wait for that.",
    )
    allow_origins: Origins = Field(
        None,
        description="Web sites whose pages may use the service (CORS), separated by commas; * allows all. If left out: "
        "all, as in LibreTranslate, or none if `host` is a loopback address.",
    )
    root_path: Annotated[str, AfterValidator(_root_path)] = Field(
        "",
        description="Path prefix, such as /translator. A proxy serves this service under the prefix, and removes the "
        "prefix from requests.",
    )
    trusted_proxies: Networks = Field(
        (),
        description="Addresses or networks of proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted, "
        "separated by commas.",
    )
    allowed_hosts: HostNames = Field(
        (),
        description="Names by which clients may address the service (Host), separated by commas; * allows all. If left "
        "out: all, or only localhost if `host` is a loopback address. IP addresses are always allowed.",
    )
    log_json: bool | None = Field(
        None, description="Whether logs are JSON lines; if left out, only if stderr is not a terminal."
    )

    @property
    def accepted_hosts(self) -> tuple[str, ...]:
        """Names that a Host header may contain; * stands for all names. IP addresses are always accepted."""
        return self.allowed_hosts or (("localhost",) if _is_loopback(self.host) else ("*",))

    @property
    def accepted_origins(self) -> tuple[str, ...]:
        """Web sites whose pages may use the service; * stands for all."""
        if self.allow_origins is not None:
            return self.allow_origins
        return () if _is_loopback(self.host) else ("*",)

    @property
    def is_open(self) -> bool:
        """True if everybody who reaches the address from another machine may translate."""
        return not self.require_key and not _is_loopback(self.host)

    @property
    def broad_proxies(self) -> tuple[str, ...]:
        """Entries of trusted_proxies that are * or large networks: clients in them could forge their addresses."""
        return tuple(
            entry for entry in self.trusted_proxies if entry == "*" or ip_network(entry).num_addresses > BROAD_NETWORK
        )

    @model_validator(mode="after")
    def _request_fits_queue(self) -> Self:
        if self.max_characters > self.max_pending_characters:
            raise ValueError(
                f"max_characters is {self.max_characters} and max_pending_characters is {self.max_pending_characters}; "
                "accepted: a max_characters of at most max_pending_characters"
            )
        return self

    @model_validator(mode="after")
    def _keys_are_stored(self) -> Self:
        if self.require_key and self.database is None:
            raise ValueError("require_key is set, but database is not; accepted: a database that mt-service keys wrote")
        if not self.public_metrics and self.admin_key is None:
            raise ValueError("public_metrics is off, but admin_key is not set. Set admin_key, which reads the metrics")
        return self


def load_settings(options: Mapping[str, Any]) -> Settings:
    """Return the settings from `options` and the environment; an option takes precedence.

    A variable with the prefix of settings that is no setting is refused: a misspelt one could be meant to protect.

    Raises: SettingsError if settings cannot be used; the message lists all of them.
    """
    messages = _unknown_variables()
    try:
        settings = Settings(**options)
    except ValidationError as error:
        messages += [_explain(problem, options) for problem in error.errors()]
        raise SettingsError(problems(UNUSABLE, messages)) from error
    if messages:
        raise SettingsError(problems(UNUSABLE, messages))
    return settings


def option(name: str) -> str:
    """Return the command-line option of a setting: `--max-characters` for `max_characters`."""
    return "--" + name.replace("_", "-")


def variable(name: str) -> str:
    """Return the environment variable of a setting: `MT_MAX_CHARACTERS` for `max_characters`."""
    return VARIABLE_PREFIX + name.upper()


def _unknown_variables() -> list[str]:
    """Return a message for each environment variable that has the prefix of settings, but is neither one nor empty."""
    known = set(map(variable, Settings.model_fields))
    names = (name for name, value in sorted(os.environ.items()) if value and name.upper().startswith(VARIABLE_PREFIX))
    return [
        f"the environment variable {name} is not a setting{did_you_mean(name.upper(), known)}"
        for name in names
        if name.upper() not in known | OTHER_VARIABLES
    ]


def _explain(problem: Any, options: Mapping[str, Any]) -> str:
    """Return the message for a pydantic error, with the name of the option or environment variable."""
    message = problem["msg"].removeprefix("Value error, ").replace("Input should be", "accepted:", 1)
    if not problem["loc"]:
        return str(message)
    name = str(problem["loc"][0])
    if accepted := accepted_value(Settings.model_json_schema(), name):
        message = f"accepted: {accepted}"
    value = "refused" if name in SECRETS else f"is {problem['input']!r}"
    return f"{option(name) if name in options else variable(name)} {value}; {message}"
