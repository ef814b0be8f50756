"""Stored documents that a person edits: pages, owners, limits and expiry."""

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest

from mt.text.documents import DocumentOptions
from service.access.database import Database
from service.errors import InvalidRequest, NotFound, StorageFull
from service.translation import editable_documents
from service.translation.document_sentences import DocumentSentence
from service.translation.documents import DocumentFile, DocumentTranslation
from service.translation.editable_documents import (
    DOCUMENT_BYTES,
    MAX_TARGET_LENGTH,
    PAGE_CHARACTERS,
    PAGE_SENTENCES,
    EditableDocumentLimits,
    EditableDocuments,
)

KEY, OTHER, ADDRESS = "key:0a", "key:0b", "192.0.2.1"
FILE = DocumentFile("a.csv", b"a,b", DocumentOptions(columns=("a",), source_language="en", target_language="de"))


@pytest.fixture
def database() -> Iterator[Database]:
    with Database.open(None) as opened:
        yield opened


@pytest.fixture
def documents(database: Database) -> EditableDocuments:
    return EditableDocuments(database, EditableDocumentLimits(), DocumentOptions())


def translated(*targets: str, links: bool = False) -> DocumentTranslation:
    """A document with one sentence in each segment; the source is the number of the sentence."""
    aligned = (((0, 1), (0, 1)),) if links else ()
    sentences = [DocumentSentence(place, str(place), one, " ", "", aligned) for place, one in enumerate(targets)]
    return DocumentTranslation(b"unused", "en", sentences)


async def put(documents: EditableDocuments, *targets: str, owner: str = KEY) -> str:
    id = await documents.put(owner, FILE, translated(*targets), "de")
    assert id
    return id


async def targets_of(documents: EditableDocuments, id: str) -> list[str]:
    return [sentence.target async for page in documents.pages(KEY, id) for sentence in page.sentences]


def rows(database: Database) -> int:
    query = "SELECT (SELECT count(*) FROM editable_documents) + (SELECT count(*) FROM editable_pages)"
    return int(database.run_sync(lambda connection: connection.execute(query).fetchone()[0]))


def test_what_is_stored_comes_back(documents: EditableDocuments) -> None:
    async def use() -> None:
        stored = translated("\ud800 ü", "zwei", links=True)
        id = await documents.put(KEY, FILE, stored, "de")
        assert id
        document, page = await documents.page(KEY, id, 0)
        assert (document.name, document.source, document.target, document.sentences) == ("a.csv", "en", "de", 2)
        assert list(page.sentences) == stored.sentences
        assert await documents.file(KEY, id) == FILE

    asyncio.run(use())


@pytest.mark.parametrize("length", [1, PAGE_CHARACTERS // 3, PAGE_CHARACTERS + 1])
def test_pages_hold_every_sentence_once(documents: EditableDocuments, length: int) -> None:
    wanted = [str(number).rjust(length) for number in range(PAGE_SENTENCES + 5 if length == 1 else 7)]

    async def use() -> None:
        id = await put(documents, *wanted)
        assert await targets_of(documents, id) == wanted
        listed: list[str] = []
        while len(listed) < len(wanted):
            _, page = await documents.page(KEY, id, len(listed))
            assert page.first == len(listed) and 0 < len(page.sentences) <= PAGE_SENTENCES
            assert len(page.sentences) == 1 or sum(len(one.target) for one in page.sentences) <= PAGE_CHARACTERS
            listed += [one.target for one in page.sentences]
        assert listed == wanted
        _, middle = await documents.page(KEY, id, 1)
        assert middle.sentences[0].target == wanted[1] if middle.sentences else len(wanted) == 1
        assert not (await documents.page(KEY, id, len(wanted)))[1].sentences

    asyncio.run(use())


def test_an_edit_changes_one_sentence(documents: EditableDocuments) -> None:
    async def use() -> None:
        id = await put(documents, *"abc" * PAGE_SENTENCES)
        last = 3 * PAGE_SENTENCES - 1
        edited = await documents.edit(KEY, id, last, "ein\n zwei\x07 drei ")
        assert (edited.target, edited.edited, edited.source) == ("ein zwei drei", True, str(last))
        assert await targets_of(documents, id) == [*("abc" * PAGE_SENTENCES)[:-1], "ein zwei drei"]
        assert (await documents.edit(KEY, id, 0, "")).target == ""
        with pytest.raises(NotFound, match=f"no sentence {last + 1}"):
            await documents.edit(KEY, id, last + 1, "x")
        with pytest.raises(InvalidRequest, match="accepted: at most"):
            await documents.edit(KEY, id, 0, "x" * (MAX_TARGET_LENGTH + 1))

    asyncio.run(use())


def test_a_document_of_a_key_is_for_this_key(documents: EditableDocuments) -> None:
    async def use() -> None:
        own, open = await put(documents, "a"), await put(documents, "a", owner=ADDRESS)
        uses: list[Callable[[str], object]] = [
            lambda id: documents.get(OTHER, id),
            lambda id: documents.page(OTHER, id, 0),
            lambda id: documents.edit(OTHER, id, 0, "b"),
            lambda id: documents.file(OTHER, id),
            lambda id: anext(documents.pages(OTHER, id)),
            lambda id: documents.delete(OTHER, id),
        ]
        for each in uses:
            with pytest.raises(NotFound):
                await each(own)  # type: ignore[misc]
            await each(open)  # type: ignore[misc]

    asyncio.run(use())


def test_a_deleted_document_leaves_nothing(documents: EditableDocuments, database: Database) -> None:
    async def use() -> None:
        id = await put(documents, *"ab")
        await documents.delete(KEY, id)
        with pytest.raises(NotFound):
            await documents.get(KEY, id)

    asyncio.run(use())
    assert rows(database) == 0


def test_documents_expire_after_their_last_change(
    database: Database, documents: EditableDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [time.time()]
    monkeypatch.setattr(time, "time", lambda: now[0])

    async def use() -> None:
        id = await put(documents, "a")
        now[0] += 1000
        await documents.edit(KEY, id, 0, "b")
        now[0] += 1000
        assert await targets_of(documents, id) == ["b"]
        now[0] += 800
        with pytest.raises(NotFound):
            await documents.get(KEY, id)
        async with documents.open():
            for _ in range(100):
                await asyncio.sleep(0.01)
                if not rows(database):
                    break

    asyncio.run(use())
    assert rows(database) == 0


def test_the_limits_delete_the_oldest_documents(database: Database) -> None:
    async def use() -> None:
        sizes = EditableDocumentLimits(bytes_per_caller=3 * DOCUMENT_BYTES, bytes=4 * DOCUMENT_BYTES)
        documents = EditableDocuments(database, sizes, DocumentOptions())
        first, second, third = [await put(documents, "a") for _ in range(3)]  # each is larger than DOCUMENT_BYTES
        with pytest.raises(NotFound):
            await documents.get(KEY, first)
        await put(documents, "a", owner=OTHER)
        await put(documents, "a", owner=ADDRESS)  # the caller with the most bytes makes room
        with pytest.raises(NotFound):
            await documents.get(KEY, second)
        await documents.get(KEY, third)
        assert await documents.put(KEY, FILE, translated("x" * 3 * DOCUMENT_BYTES), "de") is None
        await documents.get(KEY, third)

    asyncio.run(use())


def test_edits_count(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(editable_documents, "MAX_TARGET_LENGTH", 10**6)

    async def use() -> None:
        limits = EditableDocumentLimits(bytes_per_caller=3 * DOCUMENT_BYTES)
        documents = EditableDocuments(database, limits, DocumentOptions())
        id = await put(documents, *"ab")
        await documents.edit(KEY, id, 0, "x" * DOCUMENT_BYTES)
        with pytest.raises(StorageFull):
            await documents.edit(KEY, id, 1, "x" * DOCUMENT_BYTES)
        assert await targets_of(documents, id) == ["x" * DOCUMENT_BYTES, "b"]
        await documents.edit(KEY, id, 0, "x")
        await documents.edit(KEY, id, 1, "x" * DOCUMENT_BYTES)

    asyncio.run(use())
