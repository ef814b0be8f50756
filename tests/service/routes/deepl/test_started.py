"""The official SDK against the service as it is started."""

import io
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import deepl
import pytest

from service.access.api_keys import NewApiKey, make_key
from service.access.database import Database
from tests.service.capitals import several, single

FROZEN = Path(__file__).resolve().parents[3] / "frozen" / "model"

BUTTON = '<p>Press the <b class="x">red</b> button.</p>'


@pytest.fixture(scope="module")
def real(start_service: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, deepl.DeepLClient]:
    """`python -m service` with the frozen model; clients with a key without a quota, one with a small one, no key."""
    database = tmp_path_factory.mktemp("deepl") / "service.db"
    with Database.open(database) as store:
        wanted = {"rich": NewApiKey("rich"), "poor": NewApiKey("poor", quota=20)}
        keys = {name: store.run_sync(partial(make_key, new=key))[0] for name, key in wanted.items()}
    url = start_service(FROZEN, MT_DATABASE=str(database), MT_REQUIRE_KEY="true").url
    clients = {name: deepl.DeepLClient(key, server_url=url) for name, key in {**keys, "wrong": "wrong"}.items()}
    for client in clients.values():
        client._client._session.trust_env = False
    return clients


@pytest.mark.slow
def test_real_texts(real: dict[str, deepl.DeepLClient]) -> None:
    client = real["rich"]
    assert [each.code for each in client.get_source_languages()] == ["EN"]
    assert [each.code for each in client.get_target_languages()] == ["DE"]
    alone = single(client.translate_text("A dog sees a cat.", target_lang="DE"))
    assert (alone.detected_source_lang, alone.billed_characters) == ("EN", 17)
    both = several(client.translate_text(["A dog sees a cat.", "42"], source_lang="EN", target_lang="DE"))
    assert [each.text for each in both] == [alone.text, "42"]
    html = single(client.translate_text(f"<!-- A dog -->{BUTTON}", target_lang="DE", tag_handling="html")).text
    assert re.sub(r"[^<>]+(?=<)", "", html).count("<") == 5
    assert html.startswith("<!-- A dog --><p>")
    xml = "<a><b>A dog sees a cat.</b><keep>A dog</keep></a>"
    kept = single(client.translate_text(xml, target_lang="DE", tag_handling="xml", ignore_tags="keep")).text
    assert kept == f"<a><b>{alone.text}</b><keep>A dog</keep></a>"


def test_real_glossaries(real: dict[str, deepl.DeepLClient]) -> None:
    client = real["rich"]
    made = client.create_glossary("animals", "EN", "DE", {"dog": "Zwergdackel"})
    text = single(client.translate_text_with_glossary("A dog sees a cat.", made)).text
    assert re.search("Zwergd[aä]ckel", text)  # as it may be inflected
    client.delete_glossary(made)
    with pytest.raises(deepl.DeepLException, match="There is no glossary"):
        client.translate_text_with_glossary("A dog sees a cat.", made)


def test_real_documents(real: dict[str, deepl.DeepLClient], tmp_path: Path) -> None:
    client = real["rich"]
    (tmp_path / "in.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nA dog sees a cat.\n")
    status = client.translate_document_from_filepath(tmp_path / "in.srt", tmp_path / "out.srt", target_lang="DE")
    text = single(client.translate_text("A dog sees a cat.", target_lang="DE")).text
    assert (tmp_path / "out.srt").read_text() == f"1\n00:00:01,000 --> 00:00:02,000\n{text}\n"
    assert status.billed_characters == 17


def test_real_keys(real: dict[str, deepl.DeepLClient]) -> None:
    poor = real["poor"]
    poor.translate_text("A dog sees a cat.", target_lang="DE")
    with pytest.raises(deepl.QuotaExceededException):
        poor.translate_text("A dog sees a cat.", target_lang="DE")
    assert (poor.get_usage().character.count, poor.get_usage().character.limit) == (17, 20)
    with pytest.raises(deepl.AuthorizationException):
        real["wrong"].get_usage()
    with pytest.raises(deepl.DeepLException, match="accepted: DE"):
        real["rich"].translate_text("A dog", target_lang="FR")


def test_documents_outlive_the_service(start_service: Callable[..., Any], tmp_path: Path) -> None:
    """One that is done and one that has only just been accepted: kill -9, a new service, both are fetched."""

    def begin() -> tuple[Any, deepl.DeepLClient]:
        service = start_service(FROZEN, MT_DATABASE=str(tmp_path / "service.db"))
        client = deepl.DeepLClient("any", server_url=service.url)
        client._client._session.trust_env = False
        return service, client

    service, client = begin()
    line = "A dog sees a cat.\n"
    done = client.translate_document_upload(line, filename="a.txt", target_lang="DE")
    client.translate_document_wait_until_done(done)
    accepted = client.translate_document_upload(line * 500, filename="b.txt", target_lang="DE")
    service.process.kill()
    service.process.wait()
    _, client = begin()
    found = [io.BytesIO(), io.BytesIO()]
    for handle, file in zip((done, accepted), found, strict=True):
        assert client.translate_document_wait_until_done(handle, timeout_s=60).done
        client.translate_document_download(handle, file)
    assert found[1].getvalue() == found[0].getvalue() * 500
    alone = single(client.translate_text("A dog sees a cat.", target_lang="DE"))
    assert found[0].getvalue().decode().strip() == alone.text
