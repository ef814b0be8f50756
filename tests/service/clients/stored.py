"""Glossaries and a translation memory that rows use."""

import deepl
import httpx
from deepl.api_data import MultilingualGlossaryDictionaryEntries as Entries
from deepl.api_data import MultilingualGlossaryInfo

from tests.service.clients.rows import World

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
