"""What a row of docs/reference/clients.md states, and how it is observed."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import deepl
import httpx
from deepl.api_data import MultilingualGlossaryDictionaryEntries as Entries
from deepl.api_data import MultilingualGlossaryInfo

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


TSV = {"dog": "Pudel"}
UNIT = "The red lamp blinks."


def glossary(world: World, **entries: str) -> deepl.GlossaryInfo:
    return world.deepl.create_glossary("words", "EN", "DE", entries or TSV)


def multilingual(world: World) -> MultilingualGlossaryInfo:
    return world.deepl.create_multilingual_glossary("words", [Entries("EN", "DE", TSV)])


def store_memory(url: str, key: str, name: str) -> str:
    lines = f"{UNIT}\tDie rote Ampel blinkt.\nPress the button.\tTaste drücken.\nThe dog.\tDer Hund.\n"
    form = {"source": "en", "target": "de", "name": name, "api_key": key}
    answer = httpx.put(f"{url}/memories", data=form, files={"file": ("m.tsv", lines)}, trust_env=False, timeout=300)
    return str(answer.raise_for_status().json()["id"])
