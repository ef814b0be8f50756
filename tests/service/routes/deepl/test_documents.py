"""The official SDK: documents."""

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import deepl
import docx
import httpx
import pytest

from service.errors import CannotTranslate, Overloaded
from service.translation import document_jobs
from service.translation.jobs import Job
from tests.attacks.payloads import pdf
from tests.service.capitals import Capitals, Running
from tests.text.test_tmx import memory


def test_a_document_is_uploaded_translated_and_fetched(client: deepl.DeepLClient, tmp_path: Path) -> None:
    (tmp_path / "Übersicht.md").write_text("# Dogs\n\nA `dog` *sleeps*.\n")
    status = client.translate_document_from_filepath(
        tmp_path / "Übersicht.md", tmp_path / "out.md", source_lang="EN", target_lang="DE"
    )
    assert (tmp_path / "out.md").read_text() == "# DOGS\n\nA `dog` *SLEEPS*.\n"
    assert (status.status, status.billed_characters) == (deepl.DocumentStatus.Status.DONE, len("DogsA dog sleeps."))


def test_a_document_is_translated_with_a_glossary(client: deepl.DeepLClient) -> None:
    glossary = client.create_glossary("x", "EN", "DE", {"dog": "Hund"})
    handle = client.translate_document_upload(
        "A dog.", filename="a.txt", source_lang="EN", target_lang="DE", glossary=glossary
    )
    client.translate_document_wait_until_done(handle)
    found = io.BytesIO()
    client.translate_document_download(handle, found)
    assert found.getvalue() == b"A HUND."


def test_a_document_is_deleted_a_while_after_its_download(
    client: deepl.DeepLClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client whose connection broke off can download it again."""
    handle = client.translate_document_upload("A dog.", filename="a.txt", target_lang="DE")
    client.translate_document_wait_until_done(handle)
    monkeypatch.setattr(document_jobs, "FETCHED_SECONDS", 3.0)
    for _ in range(2):
        client.translate_document_download(handle, io.BytesIO())
    time.sleep(3.1)
    with pytest.raises(deepl.DeepLException, match="Not found"):
        client.translate_document_download(handle, io.BytesIO())


class Long(Capitals):
    """Translates every document into more than a connection holds by itself."""

    async def translate_document(self, name: str, content: bytes, job: Job) -> bytes:
        return bytes(range(256)) * 80_000


def test_a_document_whose_download_breaks_off_stays(start: Callable[..., Running]) -> None:
    running = start(translations=Long())
    handle = running.client().translate_document_upload("A dog.", filename="a.txt", target_lang="DE")
    running.client().translate_document_wait_until_done(handle)
    headers = {"Authorization": f"DeepL-Auth-Key {running.keys['rich']}"}
    with httpx.Client(base_url=running.url, headers=headers, trust_env=False, timeout=30) as raw:
        address, key = f"/v2/document/{handle.document_id}/result", {"document_key": handle.document_key}
        for _ in range(3):
            with raw.stream("POST", address, data=key) as broken:
                assert broken.headers["content-length"] == str(256 * 80_000)
                next(broken.iter_raw(1000))
        whole = raw.post(address, data=key)
        assert (whole.status_code, whole.content) == (200, bytes(range(256)) * 80_000)


def test_a_document_belongs_to_its_key(running: Running, client: deepl.DeepLClient) -> None:
    handle = client.translate_document_upload("A dog.", filename="a.txt", target_lang="DE")
    for other, key in ((running.client("poor"), handle.document_key), (client, "0" * 64)):
        with pytest.raises(deepl.DeepLException, match="There is no document"):
            other.translate_document_get_status(deepl.DocumentHandle(handle.document_id, key))
    assert client.translate_document_get_status(handle).ok


def test_a_document_that_cannot_be_read_is_refused_at_once(client: deepl.DeepLClient) -> None:
    with pytest.raises(deepl.DeepLException, match=r"file extension '\.exe'"):
        client.translate_document_upload(b"x", filename="a.exe", target_lang="DE")
    with pytest.raises(deepl.DeepLException, match=r"Bad request.*a\.docx"):
        client.translate_document_upload(b"not a zip", filename="a.docx", target_lang="DE")
    with pytest.raises(deepl.DeepLException, match="output_format is pdf; accepted: txt"):
        client.translate_document_upload(b"x", filename="a.txt", target_lang="DE", output_format="pdf")


def test_a_pdf_file_becomes_a_word_document(client: deepl.DeepLClient, tmp_path: Path) -> None:
    """The SDK names the output format if the names of the files have different suffixes."""
    source, target = tmp_path / "a.pdf", tmp_path / "b.docx"
    source.write_bytes(pdf(b"BT /F 12 Tf 72 700 Td (A dog.) Tj ET"))
    client.translate_document_from_filepath(source, target, source_lang="EN", target_lang="DE")
    assert [paragraph.text for paragraph in docx.Document(str(target)).paragraphs] == ["A DOG."]
    for output_format in ("pdf", None):
        with pytest.raises(
            deepl.DeepLException, match=r"output_format is pdf; accepted: docx, the format of translated \.pdf files"
        ):
            client.translate_document_upload(
                source.read_bytes(), filename="a.pdf", target_lang="DE", output_format=output_format
            )


def test_the_name_of_a_converted_document_has_its_suffix(running: Running) -> None:
    client = running.client()
    content = pdf(b"BT /F 12 Tf 72 700 Td (A dog.) Tj ET")
    handle = client.translate_document_upload(content, filename="Ä.pdf", target_lang="DE", output_format="docx")
    client.translate_document_wait_until_done(handle)
    headers = {"Authorization": f"DeepL-Auth-Key {running.keys['rich']}"}
    with httpx.Client(base_url=running.url, headers=headers, trust_env=False, timeout=30) as raw:
        answer = raw.post(f"/v2/document/{handle.document_id}/result", data={"document_key": handle.document_key})
    assert (
        answer.headers["content-disposition"] == "attachment; filename=\"_.pdf.docx\"; filename*=utf-8''%C3%84.pdf.docx"
    )


def test_a_memory_gets_the_target_language(client: deepl.DeepLClient, tmp_path: Path) -> None:
    source, target = tmp_path / "a.tmx", tmp_path / "b.tmx"
    source.write_text(memory('<tu><tuv xml:lang="en"><seg>A dog.</seg></tuv></tu>'))
    client.translate_document_from_filepath(source, target, target_lang="PT-BR")
    assert '<tuv xml:lang="pt-BR"><seg>A DOG.</seg></tuv>' in target.read_text()


def test_a_document_that_fails_says_why(running: Running, client: deepl.DeepLClient) -> None:
    running.core.failing = [CannotTranslate("the model fails on it")]
    handle = client.translate_document_upload("A dog.", filename="a.txt", target_lang="DE")
    status = client.translate_document_wait_until_done(handle)
    message = cast(str | None, status.error_message)  # the SDK annotates it as an int
    assert (status.ok, message) == (False, "the model fails on it")


def test_a_document_that_fails_costs_nothing(running: Running) -> None:
    poor = running.client("poor")
    running.core.failing = [CannotTranslate("never")]
    handle = poor.translate_document_upload("A dog.", filename="a.txt", target_lang="DE")
    poor.translate_document_wait_until_done(handle)
    assert poor.get_usage().character.count == 0
    running.core.failing = []
    handle = poor.translate_document_upload("A dog.", filename="a.txt", target_lang="DE")
    poor.translate_document_wait_until_done(handle)
    assert poor.get_usage().character.count == 6


def test_a_document_waits_while_the_service_is_busy(running: Running, client: deepl.DeepLClient) -> None:
    running.core.failing = [Overloaded(1)]
    handle = client.translate_document_upload("A dog.", filename="a.txt", target_lang="DE")
    assert client.translate_document_wait_until_done(handle).done
    assert len(running.core.jobs) == 2


def test_a_document_that_is_not_done_cannot_be_fetched(
    running: Running, client: deepl.DeepLClient, quick_retries: None
) -> None:
    running.hold()
    handle = client.translate_document_upload("A dog.", filename="a.txt", target_lang="DE")
    with pytest.raises(deepl.DocumentNotReadyException):
        client.translate_document_download(handle, io.BytesIO())


def test_documents_are_bounded_and_forgotten(start: Callable[..., Running], quick_retries: None) -> None:
    running = start()
    client = running.client()
    handles = [client.translate_document_upload("x", filename="a.txt", target_lang="DE") for _ in range(3)]
    with pytest.raises(deepl.DeepLException, match="Slowdown: 3 documents at a time"):
        client.translate_document_upload("x", filename="a.txt", target_lang="DE")
    running.client("poor").translate_document_upload("x", filename="a.txt", target_lang="DE")
    running.store.run_sync(lambda connection: connection.execute("UPDATE documents SET expires = 0"))
    with pytest.raises(deepl.DeepLException, match="fetched or expired"):
        client.translate_document_get_status(handles[0])


def test_a_name_is_short(raw: httpx.Client) -> None:
    """The field `filename`, unlike the name in the head of a part, may have a megabyte."""
    fields = {"target_lang": "DE", "filename": "a" * 2000 + ".txt"}
    response = raw.post("/v2/document", data=fields, files={"file": ("a.txt", b"A dog.")})
    assert response.status_code == 400
    assert "the name of the file has 2004 characters; accepted: at most 1000" in response.json()["message"]
