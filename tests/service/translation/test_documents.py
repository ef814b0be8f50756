"""Translation of documents in parts."""

import asyncio
import itertools
from collections.abc import Sequence

import pytest

from mt.pipeline.results import SentenceTranslation
from mt.scoring.confidence import DOUBTFUL
from mt.text.documents import DocumentOptions
from service.routes.page import WEB
from service.translation.coroutines import WorkThreads
from service.translation.documents import MAX_PARTS, PART_TEXTS, DocumentTranslator, count_doubtful
from service.translation.jobs import Answer, Job
from service.workers.messages import SourceText
from tests.service.doubles import DirectParsers

PARTS = 20


async def test_other_requests_run_between_parts_that_are_translated_without_waiting() -> None:
    """Every translation comes from the cache. Another task counts the parts that each of its turns finds done."""
    lines = [f"line {number}" for number in range(PARTS * PART_TEXTS)]
    translated = 0
    seen: list[int] = []

    async def translate(texts: Sequence[SourceText]) -> list[Answer]:
        nonlocal translated
        translated += 1
        return [Answer(text.text.upper(), "en") for text in texts]

    async def other() -> None:
        while translated < PARTS:
            seen.append(translated)
            await asyncio.sleep(0)

    documents = DocumentTranslator(DocumentOptions(), DirectParsers(), WorkThreads())
    opened = await documents.open(Job((), "en", "de", caller="caller"), "a.txt", "\n".join(lines).encode())
    task = asyncio.create_task(other())
    document = await documents.translated("caller", opened, "en", translate)
    await task
    assert document.content.decode() == "\n".join(lines).upper()
    assert max(after - before for before, after in itertools.pairwise(seen)) <= MAX_PARTS
    assert seen[-1] >= PARTS - MAX_PARTS


@pytest.mark.parametrize(
    ("confidences", "count"),
    [
        ([0.9, 0.549, 0.5496, 0.55, None, 0.1], 2),  # 54.9, and 55.0 twice, as /translate answers
        ([0.9, "untranslated"], 1),
        ([None, "untranslated"], 1),
        ([None, None], None),  # the model estimates nothing
        ([], 0),
    ],
)
def test_doubtful_sentences_are_counted(confidences: list[float | str | None], count: int | None) -> None:
    sentences = []
    for each in confidences:
        confidence = None if isinstance(each, str) else each
        sentences.append(SentenceTranslation("a", (), (0, 1), (0, 1), confidence, untranslated=isinstance(each, str)))
    assert count_doubtful(sentences) == count


def test_the_page_marks_what_the_service_counts() -> None:
    assert f"const DOUBTFUL = {DOUBTFUL};" in (WEB / "modules" / "confidence.js").read_text()
