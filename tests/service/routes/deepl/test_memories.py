"""Translation memories by the official SDK: what tests/service/clients does not call."""

from typing import Any

import deepl
import pytest

from mt.languages import Direction
from service.memories.units import MemoryUnit
from tests.service.application import Application


@pytest.fixture
def memory(running: Application) -> str:
    """A memory of the key "rich" with 12 units."""
    units = [MemoryUnit(f"Word {number}", f"Wort {number}") for number in range(12)]

    async def store() -> str:
        caller = await running.services.access.admit(running.keys["rich"], "")
        return (await running.services.memories.put(caller.id, "words", Direction("en", "de"), units)).id

    return running.wait(store())


def test_a_memory_belongs_to_its_key(running: Application, client: deepl.DeepLClient, memory: str) -> None:
    (listed,) = client.list_translation_memories()
    assert client.get_translation_memory(listed).updated_time == listed.updated_time
    page = client.list_translation_memory_segments(memory, filter_text="wORT 1")
    assert [one.source_text for one in page] == ["Word 1", "Word 10", "Word 11"]
    assert (page.segment_count, page.next_page_cursor) == (12, None)
    target = page.segments[0].targets[0]
    assert (target.target_text, target.target_language) == ("Wort 1", "de")
    with pytest.raises(deepl.DeepLException, match="There is no translation memory"):
        running.sdk("poor").get_translation_memory(memory)
    with pytest.raises(deepl.DeepLException, match="filter_text String should have at most 1000 characters"):
        client.list_translation_memory_segments(memory, filter_text="ß" * 1001)
    with pytest.raises(deepl.DeepLException, match="page_cursor String should match pattern"):
        client.list_translation_memory_segments(memory, page_cursor="\U0001e4f0")  # a digit that Python does not know


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"source_lang": "EN", "target_lang": "PT-PT"}, "is for en-de, not for en-pt"),
        ({"translation_memory": "unknown"}, "There is no translation memory"),
        ({"translation_memory": None, "extra_body_parameters": {"translation_memory_threshold": 80}}, "threshold req"),
    ],
)
def test_unusable_memories(client: deepl.DeepLClient, memory: str, fields: dict[str, Any], message: str) -> None:
    with pytest.raises(deepl.DeepLException, match=message):
        client.translate_text("x", **{"target_lang": "DE", "translation_memory": memory, **fields})
