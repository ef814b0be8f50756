"""The official SDK: translation memories."""

from typing import Any

import deepl
import pytest

from mt.languages import Direction
from service.memories.store import MemoryUnit
from tests.service.capitals import Running


@pytest.fixture
def memory(running: Running) -> str:
    """A memory of the key "rich" with 120 units."""
    units = [MemoryUnit(f"Word {number}", f"Wort {number}") for number in range(120)]

    async def store() -> str:
        caller = await running._access.admit(running.keys["rich"], "")
        return (await running.memories.put(caller.id, "words", Direction("en", "de"), units)).id

    return running.wait(store())


def test_memories_are_listed_and_deleted(running: Running, client: deepl.DeepLClient, memory: str) -> None:
    (listed,) = client.list_translation_memories(page=0, page_size=5)
    assert (listed.translation_memory_id, listed.name, listed.segment_count) == (memory, "words", 120)
    assert (listed.source_language, listed.target_languages) == ("en", ["de"])
    assert client.list_translation_memories(page=1, page_size=5) == []
    assert client.get_translation_memory(listed).updated_time == listed.updated_time
    with pytest.raises(deepl.DeepLException, match="There is no translation memory"):
        running.client("poor").get_translation_memory(memory)
    client.delete_translation_memory(listed)
    assert client.list_translation_memories() == []


def test_segments_come_in_pages(client: deepl.DeepLClient, memory: str) -> None:
    first = client.list_translation_memory_segments(memory, page_size=100)
    assert (len(first), first.segment_count) == (100, 120)
    rest = client.list_translation_memory_segments(memory, page_size=100, page_cursor=first.next_page_cursor)
    assert (len(rest), rest.next_page_cursor) == (20, None)
    segment = rest.segments[0]
    target = segment.targets[0]
    assert (segment.source_text, target.target_text, target.target_language) == ("Word 100", "Wort 100", "de")
    found = client.list_translation_memory_segments(memory, filter_text="wORT 11")
    assert [one.source_text for one in found] == ["Word 11", *(f"Word {number}" for number in range(110, 120))]
    assert not list(client.list_translation_memory_segments(memory, filter_text="wORT", filter_case_sensitive=True))


def test_a_filter_is_short(client: deepl.DeepLClient, memory: str) -> None:
    with pytest.raises(deepl.DeepLException, match="filter_text String should have at most 1000 characters"):
        client.list_translation_memory_segments(memory, filter_text="ß" * 1001)


def test_a_request_selects_a_memory(running: Running, client: deepl.DeepLClient, memory: str) -> None:
    def asked(**fields: Any) -> None:
        client.translate_text("Word 1", target_lang="DE", translation_memory=memory, **fields)

    asked()
    asked(translation_memory_threshold=90)
    asked(source_lang="EN", tag_handling="html")
    assert {job.memory for job in running.core.jobs} == {memory}
    assert [job.memory_score for job in running.core.jobs] == [0.7, 0.9, 0.7]
    with pytest.raises(deepl.DeepLException, match="is for en-de, not for en-pt"):
        client.translate_text("x", source_lang="EN", target_lang="PT-PT", translation_memory=memory)
    with pytest.raises(deepl.DeepLException, match="There is no translation memory"):
        client.translate_text("x", target_lang="DE", translation_memory="unknown")
    fields = {"translation_memory_threshold": 80}
    with pytest.raises(deepl.DeepLException, match="threshold requires"):
        client.translate_text("x", target_lang="DE", extra_body_parameters=fields)


def test_a_document_selects_a_memory(running: Running, client: deepl.DeepLClient, memory: str) -> None:
    handle = client.translate_document_upload(
        b"Word 1", filename="a.txt", target_lang="DE", translation_memory=memory, translation_memory_threshold=80
    )
    client.translate_document_wait_until_done(handle)
    (job,) = running.core.jobs
    assert (job.memory, job.memory_score) == (memory, 0.8)
