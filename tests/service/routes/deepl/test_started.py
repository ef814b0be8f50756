"""Documents of the official SDK against the service as it is started."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deepl

from tests.service.application import sdk, single
from tests.service.running import FROZEN


def test_documents_outlive_the_service(start_service: Callable[..., Any], tmp_path: Path) -> None:
    """One that is done and one that has only just been accepted: kill -9, a new service, both are fetched."""

    def begin() -> tuple[Any, deepl.DeepLClient]:
        service = start_service(FROZEN, MT_DATABASE=str(tmp_path / "service.db"))
        return service, sdk(service.url, "any")

    service, client = begin()
    line = "A dog sees a cat.\n"
    done = client.translate_document_upload(line, filename="a.txt", target_lang="DE")
    client.translate_document_wait_until_done(done)
    accepted = client.translate_document_upload(line * 60, filename="b.txt", target_lang="DE")
    service.process.kill()
    service.process.wait()
    _, client = begin()
    found = [io.BytesIO(), io.BytesIO()]
    for handle, file in zip((done, accepted), found, strict=True):
        assert client.translate_document_wait_until_done(handle, timeout_s=60).done
        client.translate_document_download(handle, file)
    assert found[1].getvalue() == found[0].getvalue() * 60
    alone = single(client.translate_text("A dog sees a cat.", target_lang="DE"))
    assert found[0].getvalue().decode().strip() == alone.text
