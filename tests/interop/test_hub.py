"""Names on the hub: what is fetched is pinned and its checksums kept; without the hub the message says what to do."""

import errno
import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from mt.errors import ModelError
from mt.interop.hub import fetch_model
from mt.interop.importer import import_model
from mt.interop.origin import ImportOptions
from tests.interop.conftest import loaded
from tests.interop.parity import card

huggingface_hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed (extra: interop)")
transformers = pytest.importorskip("transformers", reason="transformers is not installed (extra: interop)")

from tests.interop.test_huggingface import Write, models, write  # noqa: E402, F401 -- fixtures

ROOT = Path(__file__).resolve().parents[2]
NAME, REVISION = "Helsinki-NLP/opus-mt-en-de", "0123456789abcdef0123456789abcdef01234567"


@contextmanager
def hub(folder: Path) -> Iterator[str]:
    """A server that knows one model, as the hub's two calls for a revision and for a file have it."""

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, body: bool) -> None:
            path, content, etag = self.path.partition("?")[0], None, ""
            if path.startswith(f"/api/models/{NAME}/tree/"):
                files = [{"type": "file", "path": file.name, "size": 1, "oid": "0"} for file in folder.iterdir()]
                content = json.dumps(files).encode()
            elif path.startswith(f"/api/models/{NAME}"):
                siblings = [{"rfilename": file.name} for file in folder.iterdir()]
                content = json.dumps({"id": NAME, "modelId": NAME, "sha": REVISION, "siblings": siblings}).encode()
            elif path.startswith(f"/{NAME}/resolve/{REVISION}/") and (folder / path.rpartition("/")[2]).is_file():
                content = (folder / path.rpartition("/")[2]).read_bytes()
                etag = hashlib.sha256(content).hexdigest()
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.send_header("X-Repo-Commit", REVISION)
            if content is None:
                self.send_header("X-Error-Code", "RepoNotFound")
            if etag:
                self.send_header("ETag", f'"{etag}"')
            self.end_headers()
            if body and content is not None:
                self.wfile.write(content)

        def log_message(self, format: str, *arguments: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def run(endpoint: str, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HF_ENDPOINT": endpoint, "HF_HOME": str(home), "NO_PROXY": "127.0.0.1"}
    command = [sys.executable, "scripts/import.py", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.slow
def test_a_name_is_fetched_at_one_revision(write: Write, tmp_path: Path) -> None:  # noqa: F811
    folder = write()
    (folder / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n", encoding="utf-8")
    (folder / "pytorch_model.bin").write_bytes(b"not fetched")
    with hub(folder) as endpoint:
        done = run(endpoint, tmp_path / "home", NAME, str(tmp_path / "out"))
        assert done.returncode == 0, done.stderr
        allowed = run(endpoint, tmp_path / "home", NAME, str(tmp_path / "allowed"), "--allow-pickle")
        assert allowed.returncode == 0, allowed.stderr
        missing = run(endpoint, tmp_path / "home", "Nobody/nothing", str(tmp_path / "other"))
    assert loaded(tmp_path / "out").description.directions.to_config() == ["en-de"]
    written = card(tmp_path / "out")
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    for line in (
        f"the MarianMT model (Hugging Face) `{NAME}`",
        f"Revision: {REVISION} on the Hugging Face hub.",
        "Licence: cc-by-4.0.",
        f"SHA-256 of `model.safetensors`: {digest}",
    ):
        assert line in written
    assert not list((tmp_path / "home").rglob("pytorch_model.bin"))
    assert missing.returncode == 2 and "the hub has no public model of this name" in missing.stderr


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder that the hub publishes, and an empty cache."""
    folder = tmp_path / "published"
    folder.mkdir()
    with hub(folder) as endpoint:
        monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", endpoint)
        template = endpoint + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        yield folder


def fetched(options: ImportOptions) -> set[str]:
    return {path.name for path in fetch_model(NAME, options).folder.iterdir()}


def test_a_pickle_is_fetched_only_if_it_is_wanted_and_there_is_nothing_else(published: Path) -> None:
    for name in ("config.json", "source.spm", "pytorch_model.bin", "training_args.bin", "tf_model.h5"):
        (published / name).write_bytes(b"{}")
    with pytest.raises(ModelError) as caught:
        fetch_model(NAME, ImportOptions())
    assert f"{NAME}: its only weights are pytorch_model.bin, a pickle. Either give --allow-pickle" in str(caught.value)
    assert "OPUS-MT's .npz file" in str(caught.value)
    assert fetched(ImportOptions(allow_pickle=True)) == {"config.json", "source.spm", "pytorch_model.bin"}


def test_with_safetensors_no_pickle_is_fetched(published: Path) -> None:
    for name in ("model.safetensors", "pytorch_model.bin"):
        (published / name).write_bytes(b"")
    assert fetched(ImportOptions(allow_pickle=True)) == {"model.safetensors"}


def test_the_parts_of_the_weights_are_fetched_with_their_index(published: Path) -> None:
    parts = {"model.safetensors.index.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}
    others = {"config.json", "sentencepiece.bpe.model", "vocab.json"}
    for name in {*parts, *others, "pytorch_model.bin", "rust_model.ot"}:
        (published / name).write_bytes(b"{}")
    assert fetched(ImportOptions(allow_pickle=True)) == parts | others


def test_a_full_disk_is_not_called_a_hub_out_of_reach(published: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", full)
    with pytest.raises(ModelError, match="No space left on device") as caught:
        fetch_model(NAME, ImportOptions())
    assert "cannot be reached" not in str(caught.value)


def test_without_the_hub_the_message_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ModelError) as caught:
        import_model(NAME, tmp_path / "out")
    assert f"{NAME}: no such folder exists, and the Hugging Face hub cannot be reached" in str(caught.value)
    assert f"`hf download {NAME} --local-dir FOLDER` creates" in str(caught.value)
