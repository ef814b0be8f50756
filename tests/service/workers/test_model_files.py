"""A folder of models: which they are, and what a reload makes of those that came and went."""

import asyncio
import os
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import cast

import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from mt.bundled import STARTER_MODEL
from mt.errors import ModelError
from mt.languages import Direction
from service.errors import ReloadRefused, UnsupportedLanguage
from service.glossaries.offered import OfferedGlossary
from service.languages import TranslationRoutes
from service.settings import Settings
from service.workers.fleet import Fleet
from service.workers.messages import SourceText, TranslateOptions
from service.workers.model_files import find_models, find_models_at_start, model_name, models_in
from tests.conftest import write_model
from tests.service.controlled import Control
from tests.service.running import until

EN_DE, EN_FR = Direction("en", "de"), Direction("en", "fr")


def make(folder: Path, names: Sequence[str]) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (("b/config.json", "a/config.json"), ("a", "b")),
        (("a/config.json", "lost+found/x", "notes.txt", "run/model/config.json"), ("a",)),
        (("a/config.json", ".a.part/config.json", ".a.old/config.json"), ("a",)),
        (("config.json", "model.safetensors"), (".",)),
    ],
    ids=["two models, by name", "beside what is no model", "what is being written", "itself"],
)
def test_each_folder_in_it_that_holds_a_model(tmp_path: Path, files: Sequence[str], found: Sequence[str]) -> None:
    make(tmp_path, files)
    assert models_in(tmp_path) == tuple(tmp_path / model for model in found)


def test_a_folder_behind_a_link(tmp_path: Path) -> None:
    """As volumes of Kubernetes have them."""
    make(tmp_path, ["..data/a/config.json"])
    (tmp_path / "a").symlink_to(Path("..data") / "a")
    assert models_in(tmp_path) == (tmp_path / "a",)


@pytest.mark.parametrize(
    ("files", "folder", "said"),
    [
        ((), "", f"holds no model that user {os.getuid()} can read; accepted: a folder with model directories"),
        (("run/model/config.json",), "", "holds no model"),
        ((), "nowhere", "nowhere: No such file or directory; accepted: a folder that holds model directories"),
        (("file",), "file", "Not a directory; accepted"),
    ],
)
def test_no_model(tmp_path: Path, files: Sequence[str], folder: str, said: str) -> None:
    make(tmp_path, files)
    with pytest.raises(ModelError, match=said.replace("(", "\\(")):
        models_in(tmp_path / folder)


def test_a_model_that_is_named_comes_before_the_folder(tmp_path: Path) -> None:
    assert find_models(Settings(model=(Path("m"),), models=tmp_path)) == (Path("m"),)


@pytest.mark.parametrize(("files", "empty"), [((), True), (("lost+found/x", ".hidden/x"), True), (("a/x",), False)])
def test_while_the_folder_is_empty_the_starter_model_serves(tmp_path: Path, files: Sequence[str], empty: bool) -> None:
    make(tmp_path, files)
    settings = Settings(models=tmp_path)
    if empty:
        assert find_models_at_start(settings) == (STARTER_MODEL,)
    else:
        with pytest.raises(ModelError, match="holds no model"):
            find_models_at_start(settings)
    with pytest.raises(ModelError, match="holds no model"):  # at a reload, loaded models stay
        find_models(settings)


def directions(fleet: Fleet) -> set[Direction]:
    return {direction for pool in fleet.pools for direction in pool.description.directions}


def fleet_of(models: Path, control: Control | None = None) -> Fleet:
    """A fleet over a folder of models, whose engines wait for permits if there is a control."""
    if control is None:
        control = Control()
        control.open()
    return Fleet(Settings(models=models, device="cpu"), control.start)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    return write_model(tmp_path / "models" / "old", ["en-de"]).parent


async def test_a_reload_takes_up_what_is_new_and_lets_go_what_has_a_successor(models: Path, tmp_path: Path) -> None:
    french = write_model(tmp_path / "french", ["en-fr"])
    async with fleet_of(models) as fleet:
        assert directions(fleet) == {EN_DE}
        shutil.copytree(french, models / "french")
        await fleet.reload()
        assert directions(fleet) == {EN_DE, EN_FR} and fleet.ready
        (models / "old").rename(models / "renamed")
        await fleet.reload()
        assert [pool.model.name for pool in fleet.pools] == ["french", "renamed"]
        shutil.rmtree(models / "renamed")
        with pytest.raises(ReloadRefused, match="renamed was removed, but no other model translates en-de"):
            await fleet.reload()
        assert directions(fleet) == {EN_DE, EN_FR} and fleet.ready
        shutil.copytree(french, models / "copy")
        write_model(models / "new", ["en-de"])
        await fleet.reload()
        assert {pool.model.name for pool in fleet.pools} == {"copy", "french", "new"}
        assert directions(fleet) == {EN_DE, EN_FR}
        assert fleet.stats().reloads == 4  # french, renamed, copy and new


def reloads(logs: Iterable[EventDict]) -> int:
    return sum(line["event"] == "reloading" for line in logs)


async def test_many_reloads_at_once_are_one_in_progress_and_one_after_it(models: Path) -> None:
    async with fleet_of(models) as fleet:
        with capture_logs() as logs:
            first = fleet.start_reload()
            await until(lambda: logs)
            write_model(models / "new", ["en-fr"])
            await asyncio.gather(first, *(fleet.reload() for _ in range(100)))
            assert reloads(logs) == 2
        assert directions(fleet) == {EN_DE, EN_FR}
        with capture_logs() as logs:
            await fleet.reload()
        assert reloads(logs) == 1


async def test_a_reload_reads_the_glossary_before_any_model_is_replaced(models: Path, tmp_path: Path) -> None:
    file = tmp_path / "terms.csv"
    file.write_text("dog,Hund,en,de\n", encoding="utf-8")
    glossary = OfferedGlossary(file, 10)
    async with fleet_of(models) as fleet:

        def use() -> None:
            glossary.use(TranslationRoutes(pool.description.directions for pool in fleet.pools))

        use()
        fleet.reloads_too = glossary.read, use
        write_model(models / "french", ["en-fr"])
        file.write_text("dog,chien\n", encoding="utf-8")
        with pytest.raises(ReloadRefused, match="line 1: 2 columns"):
            await fleet.reload()
        assert set(glossary.terms) == directions(fleet) == {EN_DE}
        file.write_text("dog,chien,en,fr\ndog,cane,en,it\n", encoding="utf-8")
        with capture_logs() as logs:
            await fleet.reload()
    assert EN_FR in glossary.terms
    assert [line["line"] for line in logs if line["log_level"] == "warning"] == [2]  # no model translates into Italian


@pytest.mark.parametrize("file", ["model.safetensors", "tokenizer.model"])
async def test_a_reload_of_a_model_without_one_of_its_files_is_refused(models: Path, file: str) -> None:
    async with fleet_of(models) as fleet:
        write_model(models / "new", ["en-fr"])
        (models / "new" / file).unlink()
        with pytest.raises(ReloadRefused, match=file):
            await fleet.reload()
        assert directions(fleet) == {EN_DE} and fleet.ready and fleet.stats().refused_reloads == 1


async def test_the_starter_model_leaves_for_any_models_which_take_over_its_requests(tmp_path: Path) -> None:
    """It was served while the folder was empty, and translates more directions than most models of users."""
    models = tmp_path / "models"
    models.mkdir()
    control = Control()
    async with fleet_of(models, control) as fleet:
        assert len(directions(fleet)) == 6
        with pytest.raises(ReloadRefused, match="holds no model"):
            await fleet.reload()
        asked = map(TranslateOptions, (EN_DE, EN_FR, Direction("fr", "de")))
        requests = [asyncio.create_task(fleet.translate([SourceText("The dog.")], each)) for each in asked]
        await until(lambda: fleet.stats().running == 3)
        for name, direction in (("german", "en-de"), ("russian", "en-ru"), ("french", "en-fr")):
            write_model(models / name, [direction])
        await fleet.reload()
        assert directions(fleet) == {EN_DE, EN_FR, Direction("en", "ru")} and fleet.ready
        control.failed_devices = 1  # the starter model's worker ends before it has answered
        control.open()
        german, french, other = await asyncio.gather(*requests, return_exceptions=True)
        assert isinstance(german, list) and isinstance(french, list)
        with pytest.raises(UnsupportedLanguage, match="fr-de is not supported"):
            raise cast(Exception, other)
        (models / "german").rename(tmp_path / "german")
        with pytest.raises(ReloadRefused, match="german was removed, but no other model translates en-de"):
            await fleet.reload()


async def test_a_canary_is_translated_by_the_successor_of_a_model_that_was_closed_meanwhile(models: Path) -> None:
    write_model(models / "b", ["en-fr"])
    control = Control()
    async with fleet_of(models, control) as fleet:
        removed = fleet.pools[1]
        canary = asyncio.create_task(fleet.translate_by_each("The dog.", "canary"))
        await until(lambda: control.entered.acquire(blocking=False))
        removed.model.rename(models / "c")
        await fleet.reload()
        await until(lambda: not removed.ready)
        control.open()
        await asyncio.wait([canary])
        assert canary.exception() is None


UNNAMED = ('{"name": ""}', '{"name": "a\\nb"}', '{"name": 7}', "{}", "1", "no JSON", None)


@pytest.mark.parametrize(("config", "name"), [('{"name": "acme"}', "acme"), *((config, "run") for config in UNNAMED)])
def test_a_model_has_the_name_of_its_config_or_of_its_run(tmp_path: Path, config: str | None, name: str) -> None:
    model = tmp_path / "run" / "model"
    model.mkdir(parents=True)
    if config is not None:
        (model / "config.json").write_text(config)
    assert model_name(model) == name
