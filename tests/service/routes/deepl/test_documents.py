"""The official SDK: documents."""

import io
from pathlib import Path
from threading import Timer
from typing import Any, cast

import deepl
import docx
import httpx
import pytest

from scripts.attack.payloads import pdf
from service.errors import DeadlineExceeded
from tests.service.application import Application
from tests.service.doubles import WordModels
from tests.text.test_tmx import memory

PDF = pdf(b"BT /F 12 Tf 72 700 Td (the dog.) Tj ET")


def upload(client: deepl.DeepLClient, content: str | bytes = "the dog.", **options: Any) -> deepl.DocumentHandle:
    return client.translate_document_upload(content, **{"filename": "a.txt", "target_lang": "DE", **options})


def test_a_memory_file_gets_the_language_of_the_target(client: deepl.DeepLClient, tmp_path: Path) -> None:
    (tmp_path / "a.tmx").write_text(memory('<tu><tuv xml:lang="en"><seg>the dog.</seg></tuv></tu>'))
    status = client.translate_document_from_filepath(tmp_path / "a.tmx", tmp_path / "b.tmx", target_lang="PT-BR")
    assert '<tuv xml:lang="pt-BR"><seg>THE DOG.</seg></tuv>' in (tmp_path / "b.tmx").read_text()
    assert (status.done, status.billed_characters) == (True, len("the dog."))


def test_a_pdf_file_becomes_a_word_document(client: deepl.DeepLClient, raw: httpx.Client) -> None:
    handle = upload(client, PDF, filename="Ä.pdf", output_format="docx")
    client.translate_document_wait_until_done(handle)
    assert raw.get(f"/download_file/{handle.document_id}").status_code == 404, "it needs its key"
    answer = raw.post(f"/v2/document/{handle.document_id}/result", data={"document_key": handle.document_key})
    name = "attachment; filename=\"_.pdf.docx\"; filename*=utf-8''%C3%84.pdf.docx"
    assert answer.headers["content-disposition"] == name
    assert [paragraph.text for paragraph in docx.Document(io.BytesIO(answer.content)).paragraphs] == ["THE DOG."]


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (b"x", {"filename": "a.exe"}, r"file extension '\.exe'"),
        (b"not a zip", {"filename": "a.docx"}, r"Bad request.*a\.docx"),
        (b"x", {"output_format": "pdf"}, "output_format is pdf; accepted: txt"),
        *(
            (PDF, {"filename": "a.pdf", "output_format": format}, r"output_format is pdf; accepted: docx, the format")
            for format in ("pdf", None)
        ),
        (io.BytesIO(b"the dog."), {"filename": None}, "file extension"),  # the SDK names it "file"
        (b"x", {"extra_body_parameters": {"filename": "a" * 2000 + ".txt"}}, "2004 characters; accepted: at most 1000"),
    ],
)
def test_documents_that_cannot_be_read(
    client: deepl.DeepLClient, content: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(deepl.DeepLException, match=message):
        upload(client, content, **options)


def test_a_filename_among_the_fields_names_a_stream(client: deepl.DeepLClient) -> None:
    named = {"filename": "a.txt"}
    handle = upload(client, cast(Any, io.BytesIO(b"the dog.")), filename=None, extra_body_parameters=named)
    assert client.translate_document_wait_until_done(handle).done


def test_a_document_belongs_to_its_key(running: Application, client: deepl.DeepLClient) -> None:
    handle = upload(client)
    for other, key in ((running.sdk("poor"), handle.document_key), (client, "0" * 64)):
        with pytest.raises(deepl.DeepLException, match="There is no document"):
            other.translate_document_get_status(deepl.DocumentHandle(handle.document_id, key))
    assert client.translate_document_get_status(handle).ok


def test_a_document_that_fails_says_why_and_costs_nothing(running: Application, models: WordModels) -> None:
    poor = running.sdk("poor")
    for error, message in ((DeadlineExceeded(), "The translation did not finish in time"), (None, None)):
        running.do(lambda error=error: models.errors.append(error) if error else None)  # type: ignore[misc]
        handle = upload(poor, source_lang="EN")
        status = poor.translate_document_wait_until_done(handle)
        assert (status.ok, cast(str | None, status.error_message)) == (message is None, message)
        assert running.spent("poor") == (0 if message else 8)


def test_a_question_for_the_status_waits(running: Application, client: deepl.DeepLClient, raw: httpx.Client) -> None:
    """The SDK asks only every 5 s. Before the document is done, it cannot be fetched."""
    running.do(running.models.opened.clear)
    handle = upload(client)
    url, key = f"/v2/document/{handle.document_id}/result", {"document_key": handle.document_key}
    assert raw.post(url, data=key).status_code == 503
    releasing = Timer(0.3, lambda: running.do(running.models.opened.set))
    releasing.start()
    assert client.translate_document_get_status(handle).done
    releasing.join()


def test_a_broken_download_is_repeated(running: Application, client: deepl.DeepLClient, raw: httpx.Client) -> None:
    content = bytes(range(256)) * 50_000  # more than a connection holds by itself
    handle = upload(client)
    client.translate_document_wait_until_done(handle)
    change = "UPDATE documents SET content = ? WHERE id = ?"
    running.database.run_sync(lambda connection: connection.execute(change, (content, handle.document_id)).fetchone())
    url, key = f"/v2/document/{handle.document_id}/result", {"document_key": handle.document_key}
    for _ in range(2):
        with raw.stream("POST", url, data=key) as broken:
            assert broken.headers["content-length"] == str(len(content))
            next(broken.iter_raw(1000))
    query = f"SELECT count(*) FROM documents WHERE id = '{handle.document_id}' AND fetched IS NOT NULL"

    def fetched() -> int:
        count: int = running.database.run_sync(lambda connection: connection.execute(query).fetchone()[0])
        return count

    assert fetched() == 0
    whole = raw.post(url, data=key)
    assert (whole.status_code, whole.content) == (200, content)
    running.until(fetched)  # it is noted after the last byte


def test_a_document_that_cannot_be_stored_costs_nothing(running: Application) -> None:
    running.database.outcomes = "done", "refused"  # the deletion of what has expired, and the document
    fields, files = {"target_lang": "DE"}, {"file": ("a.txt", b"the dog.")}
    answer = running.client.post("/v2/document", data=fields, files=files, headers=running.headers("poor"))
    assert (answer.status_code, running.spent("poor")) == (503, 0)
