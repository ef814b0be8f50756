"""What a row of docs/reference/clients.md states, and how it is observed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import deepl
import httpx

from tests.service.application import sdk

EFFECT = "effect"
NONE = "no effect"


@dataclass(frozen=True)
class World:
    """A running service with the starter model, a key and a memory en-de of the key."""

    url: str
    key: str
    memory: str
    folder: Path

    @property
    def deepl(self) -> deepl.DeepLClient:
        return sdk(self.url, self.key)

    def post(self, path: str, **fields: object) -> httpx.Response:
        """POST fields as JSON, with the key. Raises HTTPStatusError."""
        answer = httpx.post(self.url + path, json={"api_key": self.key, **fields}, trust_env=False, timeout=120)
        return answer.raise_for_status()


@dataclass(frozen=True)
class Row:
    """An option of a method, and its result: EFFECT, NONE or the status with which the service refuses it.

    `call` returns whether the effect was seen, or raises what the client raises.
    """

    method: str
    option: str
    call: Callable[[World], bool]
    result: str = EFFECT
    note: str = ""

    @property
    def name(self) -> str:
        return f"{self.method} {self.option}".strip()


def rows(method: str, *options: tuple[Any, ...]) -> list[Row]:
    return [Row(method, *option) for option in options]


def observed(row: Row, world: World) -> str:
    try:
        return EFFECT if row.call(world) else NONE
    except deepl.DocumentTranslationException as error:
        cause = error.__cause__
        return f"refused: {getattr(cause, 'http_status_code', None) or 'error'}"
    except deepl.DeepLException as error:
        return f"refused: {error.http_status_code or 'error'}"
    except httpx.HTTPStatusError as error:
        return f"refused: {error.response.status_code}"
