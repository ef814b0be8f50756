"""Models of the hub: what is fetched is pinned and checked, conversions replace pickles, errors say what to do."""

import errno
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import torch
from safetensors.torch import load_file

from mt import Translator
from mt.checkpoint import load_model
from mt.cli.main import main
from mt.errors import ModelError
from mt.interop.hub import fetch_model
from mt.interop.importer import import_model
from mt.interop.int8 import round_import
from mt.interop.origin import ImportOptions
from tests.conftest import without_settings
from tests.interop.conftest import Write
from tests.interop.hub_stub import HubStub, Repository, commit_of, running
from tests.interop.parity import card, refusal

huggingface_hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed (extra: interop)")

ROOT = Path(__file__).resolve().parents[2]
NAME = "Helsinki-NLP/opus-mt-en-de"
SAFE, PICKLE = "model.safetensors", "pytorch_model.bin"


@pytest.fixture
def hub() -> Iterator[HubStub]:
    with running(HubStub()) as stub:
        yield stub


@pytest.fixture
def here(hub: HubStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HubStub:
    """The stub as the hub of this process, with an empty cache and an empty folder of installed models."""
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", hub.endpoint)
    template = hub.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("MT_MODELS", str(tmp_path / "installed"))
    return hub


@pytest.fixture
def published(here: HubStub, tmp_path: Path) -> Path:
    folder = tmp_path / "published"
    folder.mkdir()
    here.repositories[NAME] = Repository({"main": folder})
    return folder


Fetch = Callable[..., set[str]]


@pytest.fixture
def fetched(tmp_path: Path) -> Fetch:
    def fetch(options: ImportOptions = ImportOptions()) -> set[str]:  # noqa: B008 -- frozen
        folder = tmp_path / "downloads"
        folder.mkdir(exist_ok=True)
        fetch_model(NAME, options, folder)
        return {path.name for path in folder.iterdir()}

    return fetch


def pickled(folder: Path, name: str, keep: bool) -> Path:
    """A copy of a folder with its weights as a pickle, beside the safetensors file if `keep`."""
    copy = shutil.copytree(folder, folder.with_name(name))
    torch.save(load_file(copy / SAFE), copy / PICKLE)
    if not keep:
        (copy / SAFE).unlink()
    return copy


def test_a_model_of_the_catalogue_is_installed(
    write: Write, here: HubStub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write()
    (folder / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n", encoding="utf-8")
    (folder / PICKLE).write_bytes(b"not fetched")
    here.repositories[NAME] = Repository({"main": folder})
    assert main(["import", "opus-mt-en-de"]) == 0
    out = tmp_path / "installed" / "Helsinki-NLP--opus-mt-en-de"
    assert load_model(out).description.directions.to_config() == ["en-de"]
    written = card(out)
    digest = hashlib.sha256((folder / SAFE).read_bytes()).hexdigest()
    assert f"the MarianMT model (Hugging Face) `{NAME}`" in written and "Licence: cc-by-4.0." in written
    assert f"Revision: {commit_of(folder)} on the Hugging Face hub." in written
    assert f"SHA-256 of `{SAFE}`: {digest}" in written
    assert here.fetched(PICKLE) == []
    assert f"{NAME}: licence cc-by-4.0; " in capsys.readouterr().err
    main(["models", "en-de"])
    rows = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines()}
    assert "yes" in rows["opus-mt-en-de"] and "no" in rows["m2m100_418M"] and "opus-mt-de-en" not in rows


def test_the_licence_is_reported_before_the_download(here: HubStub, write: Write, tmp_path: Path) -> None:
    here.repositories[NAME] = Repository({"main": write()})
    cases = {
        "cc-by-nc-4.0": "licence cc-by-nc-4.0, NON-COMMERCIAL USE ONLY",
        "apache-2.0": "licence apache-2.0;",
        None: "the card states no licence",
    }
    for number, (licence, expected) in enumerate(cases.items()):
        here.repositories[NAME].licence = licence
        lines: list[tuple[str, int]] = []
        folder = tmp_path / str(licence)
        fetch_model(NAME, ImportOptions(), folder, lambda line: lines.append((line, len(here.fetched("config.json")))))  # noqa: B023
        assert expected in lines[0][0]
        assert lines[0][1] == number and lines[-1][1] <= number + 1


def test_a_pickle_is_replaced_by_the_hubs_own_conversion(here: HubStub, write: Write, tmp_path: Path) -> None:
    folder = write()
    main_branch, converted = pickled(folder, "main", keep=False), pickled(folder, "converted", keep=True)
    stranger = pickled(folder, "stranger", keep=True)
    branches = {"main": main_branch, "refs/pr/4": converted, "refs/pr/9": stranger}
    here.repositories[NAME] = Repository(branches, requests=[(4, "SFconvertbot"), (9, "somebody")])
    import_model(NAME, tmp_path / "out", options=ImportOptions(allow_pickle=True))
    import_model(str(folder), tmp_path / "expected")
    written = (tmp_path / "out" / SAFE).read_bytes()
    assert written == (tmp_path / "expected" / SAFE).read_bytes()
    assert here.fetched(PICKLE) == []
    assert f"Revision: {commit_of(main_branch)} on" in card(tmp_path / "out")
    assert f"conversion to safetensors, refs/pr/4 ({commit_of(converted)})." in card(tmp_path / "out")


def test_the_conversion_of_another_pickle_is_not_used(
    published: Path, fetched: Fetch, here: HubStub, tmp_path: Path
) -> None:
    old = tmp_path / "old"
    old.mkdir()
    for folder, content in ((published, b"new"), (old, b"old")):
        (folder / PICKLE).write_bytes(content)
    (old / SAFE).write_bytes(b"converted from the old pickle")
    here.repositories[NAME] = Repository({"main": published, "refs/pr/1": old}, requests=[(1, "SFconvertbot")])
    with pytest.raises(ModelError, match="the hub has no conversion to safetensors"):
        fetched()
    (old / PICKLE).write_bytes(b"new")
    assert fetched() == {SAFE}


PARTS = {"model.safetensors.index.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}
OTHERS = {"config.json", "source.spm", "sentencepiece.bpe.model", "vocab.json"}
NEVER = {"training_args.bin", "tf_model.h5", "rust_model.ot"}


@pytest.mark.parametrize("weights", [{PICKLE}, {SAFE}, PARTS], ids=["pickle", "safetensors", "parts with an index"])
def test_a_pickle_is_fetched_only_if_nothing_else_exists(published: Path, fetched: Fetch, weights: set[str]) -> None:
    for name in {PICKLE} | weights | OTHERS | NEVER:
        (published / name).write_bytes(b"{}")
    if weights == {PICKLE}:
        with pytest.raises(ModelError) as caught:
            fetched()
        assert f"{NAME}: its only weights are {PICKLE}, a pickle" in str(caught.value)
        assert f"run `mt-service import {NAME}` with --allow-pickle" in str(caught.value)
        assert "OPUS-MT's .npz file" in str(caught.value)
    assert fetched(ImportOptions(allow_pickle=True)) == weights | OTHERS


def test_an_interrupted_download_is_continued(
    published: Path, fetched: Fetch, here: HubStub, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = os.urandom(300_000)
    (published / SAFE).write_bytes(content)
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # between the attempts of huggingface_hub
    monkeypatch.setattr(huggingface_hub.constants, "DOWNLOAD_CHUNK_SIZE", 50_000)
    here.cuts[SAFE] = [100_000, *[0] * 20]
    with pytest.raises(ModelError, match="the same command continues the download"):
        fetched()
    here.cuts.clear()
    assert fetched() == {SAFE}
    assert here.fetched(SAFE)[0] == "" and here.fetched(SAFE)[-1] == "bytes=100000-"


def test_a_file_with_a_wrong_checksum_is_fetched_again(published: Path, fetched: Fetch, here: HubStub) -> None:
    for name in ("config.json", SAFE):
        (published / name).write_bytes(b"12345")
    for name in ("config.json", SAFE):
        here.corrupt = {name}
        with pytest.raises(ModelError, match=f"{name} is damaged: its checksum is .* It was deleted"):
            fetched()
    here.corrupt = set()
    assert fetched() == {"config.json", SAFE}


def test_refusals_of_the_hub_say_what_to_do(
    published: Path, here: HubStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    (published / "README.md").write_text("nothing", encoding="utf-8")
    assert "has no weights that can be read (README.md)" in refusal(NAME, out)
    assert "no public model of this name" in refusal("Nobody/nothing", out)
    assert "no such folder or model (did you mean opus-mt-en-de?)" in refusal("opus-mt-ende", out)
    assert "has no such revision" in refusal(f"{NAME}@v9", out)
    (published / SAFE).write_bytes(b"weights")
    here.repositories[NAME].gated = True
    message = refusal(NAME, out)
    assert f"conditions at {here.endpoint}/{NAME}" in message and "HF_TOKEN" in message
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE is set" in refusal(NAME, out)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    message = refusal(NAME, out)
    assert f"{NAME}: no such folder exists, and the Hugging Face hub cannot be reached" in message
    assert f"`hf download {NAME} --local-dir FOLDER` on a machine with a network" in message


def test_a_full_disk_is_named(published: Path, fetched: Fetch, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object, **options: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    (published / SAFE).write_bytes(b"")
    monkeypatch.setattr("mt.interop.hub.http_get", full)
    with pytest.raises(ModelError, match="No space left on device") as caught:
        fetched()
    assert "cannot be reached" not in str(caught.value)


@pytest.mark.slow
def test_one_command_serves_a_model_of_the_hub(write: Write, hub: HubStub, tmp_path: Path) -> None:
    """The second time it is installed, and needs no hub."""
    folder = write()
    hub.repositories[NAME] = Repository({"main": folder}, gated=True)
    environment = {key: value for key, value in without_settings().items() if key != "HF_TOKEN"} | {
        "XDG_DATA_HOME": str(tmp_path / "data"), "HF_HOME": str(tmp_path / "home"), "NO_PROXY": "127.0.0.1"
    }  # fmt: skip

    def start(endpoint: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "service", "--model", "hub:opus-mt-en-de", "--port", "0", "--device", "cpu"]
        variables = environment | {"HF_ENDPOINT": endpoint}
        return subprocess.Popen(command, cwd=ROOT, env=variables, stderr=subprocess.PIPE, text=True)

    import_model(str(folder), tmp_path / "expected")
    round_import(tmp_path / "expected")
    text = "The dog sees a cat in the old house."
    expected = Translator.load(tmp_path / "expected", "cpu").translate(text, source="en", target="de").text
    with start(hub.endpoint) as refused:
        _, errors = refused.communicate()
    assert refused.returncode == 2 and f"conditions at {hub.endpoint}/{NAME}" in errors and "Traceback" not in errors
    hub.repositories[NAME].gated = False
    for endpoint in (hub.endpoint, "http://127.0.0.1:9"):  # the second one is none
        with start(endpoint) as service:
            assert service.stderr is not None
            lines = []
            for line in service.stderr:
                lines.append(line)
                if '"listening"' in line:
                    break
            events = [json.loads(line) for line in lines if line.startswith("{")]
            request = {"q": text, "source": "en", "target": "de"}
            answer = httpx.post(f"http://127.0.0.1:{events[-1]['port']}/translate", json=request, timeout=60)
            service.terminate()
            service.stderr.read()
        assert service.returncode == 0 and answer.json()["translatedText"] == expected, lines
        assert ("installing a model" in {event["event"] for event in events}) == (endpoint == hub.endpoint)
