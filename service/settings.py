"""What an operator can set: by environment variables (`MT_PORT=9000`), or by `python -m service`'s options."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from mt.errors import MTError, problems

PREFIX = "MT_"


class SettingsError(MTError):
    """Settings that cannot be used; lists every problem at once."""


class Settings(BaseSettings):
    """Limits are chosen so that memory is bounded whatever clients send."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True)

    model: Path = Field(description="the model directory, as scripts/train.py writes it")
    host: str = Field("127.0.0.1", description="the address to listen on; 0.0.0.0 for every network of this machine")
    port: int = Field(8000, ge=0, le=65535, description="the port to listen on; 0 takes any free one and logs it")
    device: str = Field("auto", description="auto (a GPU if there is one), cpu, cuda, cuda:1 ...")
    dtype: Literal["auto", "float32", "bfloat16", "int8"] = Field(
        "auto", description="of the weights; auto is bfloat16 on a GPU, and int8 on a CPU if that costs no quality"
    )
    threads: int | None = Field(None, ge=1, description="CPU cores that translate; all of them if left out")
    shortlist: bool = Field(
        False, description="whether only what scripts/shortlist.py lists may come out of a sentence: faster on a CPU"
    )
    max_body_bytes: int = Field(1_000_000, ge=1, description="a larger request is answered with 413")
    max_characters: int = Field(100_000, ge=1, description="a request with a longer text is answered with 400")
    max_alternatives: int = Field(10, ge=0, description="a request for more of them is answered with 400")
    max_pending_requests: int = Field(
        512, ge=1, description="requests accepted and not yet answered; the next is answered with 503"
    )
    max_pending_characters: int = Field(1_000_000, ge=1, description="the same limit, counted in characters of text")
    grace_seconds: int = Field(25, ge=1, description="how long SIGTERM waits for accepted requests to be answered")
    log_json: bool | None = Field(None, description="logs as JSON lines; if left out, unless stderr is a terminal")

    @model_validator(mode="after")
    def _a_request_fits_the_queue(self) -> Self:
        if self.max_characters > self.max_pending_characters:
            raise ValueError(
                f"max_characters is {self.max_characters} and max_pending_characters {self.max_pending_characters}; "
                "accepted: a queue that holds the longest request"
            )
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
    if not problem["loc"]:
        return str(message)
    name = str(problem["loc"][0])
    if problem["type"] == "missing":
        return f"{option(name)} (or {variable(name)}) is missing: {Settings.model_fields[name].description}"
    return f"{option(name) if name in given else variable(name)} is {problem['input']!r}; {message}"
