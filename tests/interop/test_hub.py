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

import pytest
import torch
from safetensors.torch import load_file

from mt.cli.main import main
from mt.errors import ModelError
from mt.interop.hub import fetch_model
from mt.interop.importer import import_model
from mt.interop.origin import ImportOptions
from tests.interop.conftest import loaded
from tests.interop.hub_stub import HubStub, Repository, commit_of, running
from tests.interop.parity import card

huggingface_hub = pytest.importorskip("huggingface_hub", reason="huggingface_hub is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed (extra: interop)")

from tests.interop.families import FAMILIES  # noqa: E402
from tests.interop.test_huggingface import Write, models, write  # noqa: E402, F401 -- fixtures

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
    """An empty folder that the hub publishes."""
    folder = tmp_path / "published"
    folder.mkdir()
    here.repositories[NAME] = Repository({"main": folder})
    return folder


@pytest.fixture
def fetched(tmp_path: Path) -> Callable[..., set[str]]:
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


def test_a_model_of_the_catalogue_is_installed_at_one_revision(
    write: Write,  # noqa: F811
    here: HubStub,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = write()
    (folder / "README.md").write_text("---\nlicense: cc-by-4.0\n---\n", encoding="utf-8")
    (folder / PICKLE).write_bytes(b"not fetched")
    here.repositories[NAME] = Repository({"main": folder})
    assert main(["import", "opus-mt-en-de"]) == 0
    out = tmp_path / "installed" / "Helsinki-NLP--opus-mt-en-de"
    assert loaded(out).description.directions.to_config() == ["en-de"]
    written = card(out)
    digest = hashlib.sha256((folder / SAFE).read_bytes()).hexdigest()
    for line in (
        f"the MarianMT model (Hugging Face) `{NAME}`",
        f"Revision: {commit_of(folder)} on the Hugging Face hub.",
        "Licence: cc-by-4.0.",
        f"SHA-256 of `{SAFE}`: {digest}",
    ):
        assert line in written
    assert here.fetched(PICKLE) == []
    assert f"{NAME}: licence cc-by-4.0; " in capsys.readouterr().err
    main(["models", "en-de"])
    rows = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines()}
    assert "yes" in rows["opus-mt-en-de"] and "no" in rows["m2m100_418M"] and "opus-mt-de-en" not in rows


def test_the_licence_is_reported_before_the_download(here: HubStub, write: Write, tmp_path: Path) -> None:  # noqa: F811
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


def test_a_pickle_is_replaced_by_the_hubs_own_conversion(here: HubStub, write: Write, tmp_path: Path) -> None:  # noqa: F811
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
    published: Path, fetched: Callable[..., set[str]], here: HubStub, tmp_path: Path
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


def test_a_pickle_is_fetched_only_if_it_is_wanted_and_there_is_nothing_else(
    published: Path, fetched: Callable[..., set[str]]
) -> None:
    for name in ("config.json", "source.spm", PICKLE, "training_args.bin", "tf_model.h5"):
        (published / name).write_bytes(b"{}")
    with pytest.raises(ModelError) as caught:
        fetched()
    assert f"{NAME}: its only weights are {PICKLE}, a pickle" in str(caught.value)
    assert f"run `mt-service import {NAME}` with --allow-pickle" in str(caught.value)
    assert "OPUS-MT's .npz file" in str(caught.value)
    assert fetched(ImportOptions(allow_pickle=True)) == {"config.json", "source.spm", PICKLE}


def test_with_safetensors_no_pickle_is_fetched(published: Path, fetched: Callable[..., set[str]]) -> None:
    for name in (SAFE, PICKLE):
        (published / name).write_bytes(b"")
    assert fetched(ImportOptions(allow_pickle=True)) == {SAFE}


def test_the_parts_of_the_weights_are_fetched_with_their_index(
    published: Path, fetched: Callable[..., set[str]]
) -> None:
    parts = {"model.safetensors.index.json", "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"}
    others = {"config.json", "sentencepiece.bpe.model", "vocab.json"}
    for name in {*parts, *others, PICKLE, "rust_model.ot"}:
        (published / name).write_bytes(b"{}")
    assert fetched(ImportOptions(allow_pickle=True)) == parts | others


def test_a_sharded_model_equals_the_same_model_in_one_file(here: HubStub, tmp_path: Path) -> None:
    family = FAMILIES[0]
    whole, parts = family.write(tmp_path / "whole"), family.write(tmp_path / "parts", shard_size="100KB")
    assert len(list(parts.glob("model-*.safetensors"))) > 1
    here.repositories["facebook/m2m100_418M"] = Repository({"main": parts}, licence="mit")
    import_model("m2m100_418M", tmp_path / "out", ("en-de",))
    import_model(str(whole), tmp_path / "expected", ("en-de",))
    assert (tmp_path / "out" / SAFE).read_bytes() == (tmp_path / "expected" / SAFE).read_bytes()


def test_an_interrupted_download_is_continued(
    published: Path, fetched: Callable[..., set[str]], here: HubStub, monkeypatch: pytest.MonkeyPatch
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


def test_a_file_with_a_wrong_checksum_is_refused_and_fetched_again(
    published: Path, fetched: Callable[..., set[str]], here: HubStub
) -> None:
    for name in ("config.json", SAFE):
        (published / name).write_bytes(b"12345")
    for name in ("config.json", SAFE):
        here.corrupt = {name}
        with pytest.raises(ModelError, match=f"{name} is damaged: its checksum is .* It was deleted"):
            fetched()
    here.corrupt = set()
    assert fetched() == {"config.json", SAFE}


def refusal(name: str, tmp_path: Path) -> str:
    with pytest.raises(ModelError) as caught:
        import_model(name, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    return str(caught.value)


def test_each_refusal_of_the_hub_says_what_to_do(
    published: Path, here: HubStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (published / SAFE).write_bytes(b"weights")
    assert "no public model of this name" in refusal("Nobody/nothing", tmp_path)
    assert "no such model (did you mean opus-mt-en-de?)" in refusal("opus-mt-ende", tmp_path)
    assert "has no such revision" in refusal(f"{NAME}@v9", tmp_path)
    here.repositories[NAME].gated = True
    message = refusal(NAME, tmp_path)
    assert f"conditions at {here.endpoint}/{NAME}" in message and "HF_TOKEN" in message
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    assert "HF_HUB_OFFLINE is set" in refusal(NAME, tmp_path)


def test_a_repository_without_weights_is_named(published: Path, fetched: Callable[..., set[str]]) -> None:
    (published / "README.md").write_text("nothing", encoding="utf-8")
    with pytest.raises(ModelError, match=r"has no weights that can be read \(README.md\)"):
        fetched()


def test_a_full_disk_is_not_called_a_hub_out_of_reach(
    published: Path, fetched: Callable[..., set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object, **options: object) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    (published / SAFE).write_bytes(b"")
    monkeypatch.setattr("mt.interop.hub.http_get", full)
    with pytest.raises(ModelError, match="No space left on device") as caught:
        fetched()
    assert "cannot be reached" not in str(caught.value)


def test_without_the_hub_the_message_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "http://127.0.0.1:9")
    message = refusal(NAME, tmp_path)
    assert f"{NAME}: no such folder exists, and the Hugging Face hub cannot be reached" in message
    assert f"`hf download {NAME} --local-dir FOLDER` creates" in message


@pytest.mark.slow
def test_one_command_serves_a_model_of_the_hub(write: Write, hub: HubStub, tmp_path: Path) -> None:  # noqa: F811
    hub.repositories[NAME] = Repository({"main": write()})
    data = {"XDG_DATA_HOME": str(tmp_path / "data"), "HF_HOME": str(tmp_path / "home"), "NO_PROXY": "127.0.0.1"}
    environment = {**os.environ, **data, "HF_ENDPOINT": hub.endpoint}
    command = [sys.executable, "-m", "service", "--model", "hub:opus-mt-en-de", "--port", "0", "--device", "cpu"]
    for endpoint in (hub.endpoint, "http://127.0.0.1:9"):  # the second time it is installed
        with subprocess.Popen(
            command, cwd=ROOT, env=environment | {"HF_ENDPOINT": endpoint}, stderr=subprocess.PIPE, text=True
        ) as service:
            assert service.stderr is not None
            lines = []
            for line in service.stderr:
                lines.append(line)
                if '"listening"' in line:
                    break
            service.terminate()
            service.stderr.read()
        assert service.returncode == 0, lines
        events = [json.loads(line) for line in lines if line.startswith("{")]
        assert events[-1]["event"] == "listening"
        assert ("installing a model" in {event["event"] for event in events}) == (endpoint == hub.endpoint)
    assert (tmp_path / "data" / "mt-service" / "models" / "Helsinki-NLP--opus-mt-en-de" / "config.json").is_file()
    environment["HF_ENDPOINT"] = "http://127.0.0.1:9"
    command[command.index("hub:opus-mt-en-de")] = "hub:opus-mt-de-en"
    failed = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert failed.returncode == 2
    assert "the Hugging Face hub cannot be reached" in failed.stderr
    assert "error: the model hub:Helsinki-NLP/opus-mt-de-en could not be installed" in failed.stderr
