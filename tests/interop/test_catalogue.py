"""The catalogue: complete entries, names that are found, licences that are marked."""

import re
from pathlib import Path

import pytest

from mt.cli.main import main
from mt.errors import ModelError
from mt.interop import catalogue as hub
from mt.interop.catalogue import catalogue
from mt.languages import Direction


def test_every_entry_is_complete_and_named_once() -> None:
    entries = catalogue()
    assert 35 <= len(entries) <= 60
    assert len({entry.name for entry in entries}) == len(entries)
    for entry in entries:
        assert hub.NAME.fullmatch(entry.repository) and entry.strengths and 10 < entry.parameters < 10_000
        assert not entry.licence or re.fullmatch(r"[a-z0-9.-]+", entry.licence)
        if entry.direction:
            assert entry.name.endswith(entry.direction) and entry.directions.to_config() == [entry.direction]


def test_the_directions_of_multilingual_models() -> None:
    directions = {entry.name: entry.directions for entry in catalogue()}
    ukrainian = Direction.parse("en-uk")
    names = {name for name, known in directions.items() if ukrainian in known}
    assert {"opus-mt-en-uk", "m2m100_418M", "nllb-200-distilled-600M", "mbart-large-50-one-to-many-mmt"} <= names
    assert "mbart-large-50-many-to-one-mmt" not in names and "opus-mt-uk-en" not in names


def test_names_become_those_of_the_hub() -> None:
    expected = "Helsinki-NLP/opus-mt-en-de"
    assert [hub.hub_name(name) for name in ("opus-mt-en-de", "hub:opus-mt-en-de", expected)] == [expected] * 3
    assert hub.hub_name("hub:opus-mt-en-de@refs/pr/3") == f"{expected}@refs/pr/3"
    assert hub.hub_name("somebody/model@v1") == "somebody/model@v1"
    assert hub.find_entry("somebody/model") is None
    for wrong in ("nothing", "a/b/c", "hub:", "../secret", "a/b@../c"):
        with pytest.raises(ModelError, match="no such folder or model"):
            hub.hub_name(wrong)


def test_the_folder_of_installed_models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("MT_MODELS", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert hub.models_folder() == Path("/data/mt-service/models")
    monkeypatch.setenv("XDG_DATA_HOME", "relative")  # the specification: ignored
    assert hub.models_folder() == Path.home() / ".local/share/mt-service/models"
    monkeypatch.setenv("MT_MODELS", str(tmp_path))
    assert hub.models_folder() == tmp_path
    assert hub.installed_folder("a/b@refs/pr/3", tmp_path) == tmp_path / "a--b@refs--pr--3"


def test_models_are_listed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_bytes(b"")
    assert main(["models", "--models", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {entry.name for entry in catalogue()} <= {line.split()[0] for line in lines}
    assert f"installed, not in the catalogue: {folder}" in lines
    assert all(("cc-by-nc-4.0 NC" in line) == line.startswith("nllb-200") for line in lines)
    assert main(["models", "nllb-200-3.3", "--models", str(tmp_path)]) == 0
    listed = capsys.readouterr().out
    assert "13.4 GB, 3.3 GB" in listed and "opus-mt" not in listed and "my-model" not in listed
    for wanted in ("xx-yy", "no-model-has-this-name"):
        assert main(["models", wanted, "--models", str(tmp_path)]) == 2
        said = capsys.readouterr()
        assert said.out == "" and f"no model is called or translates '{wanted}'; accepted: a direction such" in said.err
