"""Translation memories by the official SDK: what tests/service/clients does not call."""

from typing import Any

import deepl
import pytest

from mt.languages import Direction
from service.memories.units import MemoryUnit
from tests.service.application import Application, single


@pytest.fixture
def memory(running: Application) -> str:
    """A memory of the key "rich" with 120 units."""
    units = [MemoryUnit(f"Word {number}", f"Wort {number}") for number in range(120)]

    async def store() -> str:
        caller = await running.services.access.admit(running.keys["rich"], "")
        return (await running.services.memories.put(caller.id, "words", Direction("en", "de"), units)).id

    return running.wait(store())


def test_memories_and_their_segments_are_listed(running: Application, client: deepl.DeepLClient, memory: str) -> None:
    (listed,) = client.list_translation_memories(page=0, page_size=5)
    assert (listed.translation_memory_id, listed.name, listed.segment_count) == (memory, "words", 120)
    assert (listed.source_language, listed.target_languages) == ("en", ["de"])
    assert client.get_translation_memory(listed).updated_time == listed.updated_time
    first = client.list_translation_memory_segments(memory, page_size=100)
    assert (len(first), first.segment_count) == (100, 120)
    rest = client.list_translation_memory_segments(memory, page_size=100, page_cursor=first.next_page_cursor)
    assert (len(rest), rest.next_page_cursor) == (20, None)
    target = rest.segments[0].targets[0]
    assert (rest.segments[0].source_text, target.target_text, target.target_language) == ("Word 100", "Wort 100", "de")
    filtered = client.list_translation_memory_segments(memory, filter_text="wORT 11")
    assert [one.source_text for one in filtered] == ["Word 11", *(f"Word {number}" for number in range(110, 120))]
    with pytest.raises(deepl.DeepLException, match="There is no translation memory"):
        running.sdk("poor").get_translation_memory(memory)
    with pytest.raises(deepl.DeepLException, match="filter_text String should have at most 1000 characters"):
        client.list_translation_memory_segments(memory, filter_text="ß" * 1001)


def test_a_text_with_markup_selects_a_memory(client: deepl.DeepLClient, memory: str) -> None:
    answer = client.translate_text(
        "Word 1", source_lang="EN", target_lang="DE", tag_handling="html", translation_memory=memory
    )
    assert single(answer).text == "Wort 1"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"source_lang": "EN", "target_lang": "PT-PT"}, "is for en-de, not for en-pt"),
        ({"translation_memory": "unknown"}, "There is no translation memory"),
        (
            {"translation_memory": None, "extra_body_parameters": {"translation_memory_threshold": 80}},
            "threshold requires",
        ),
    ],
)
def test_a_memory_that_cannot_be_used(
    client: deepl.DeepLClient, memory: str, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(deepl.DeepLException, match=message):
        client.translate_text("x", **{"target_lang": "DE", "translation_memory": memory, **fields})
