"""Every method and option of the clients of LibreTranslate and DeepL, against the service as it is started."""

import inspect
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import deepl
import pytest
from libretranslatepy import LibreTranslateAPI

from mt.bundled import STARTER_MODEL
from service.access.api_keys import make_key
from service.access.database import Database
from tests.service.clients.deepl_rows import DEEPL_ROWS
from tests.service.clients.libretranslate_rows import LIBRETRANSLATE_ROWS
from tests.service.clients.page import PAGE, node_rows, page
from tests.service.clients.rows import Row, World, observed, store_memory

NODE_MODULES = os.environ.get("MT_TEST_NODE_MODULES", "")  # a folder with the package deepl-node


@pytest.fixture(scope="module")
def world(start_service: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("clients")
    with Database.open(folder / "service.db") as store:
        key, _ = store.run_sync(partial(make_key, name="rich"))
    settings = {"MT_DATABASE": str(folder / "service.db"), "MT_REQUIRE_KEY": "true", "MT_SUGGESTIONS": "true"}
    url = start_service(STARTER_MODEL, **settings, MT_ALLOW_ORIGINS="*").url
    return World(url, key, store_memory(url, key, "lamps"), folder)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.mark.system
@pytest.mark.parametrize("row", [*LIBRETRANSLATE_ROWS, *DEEPL_ROWS], ids=lambda row: row.name)
def test_result_is_as_stated(row: Row, world: World) -> None:
    assert observed(row, world) == row.result


def test_every_method_and_option_of_deepl_has_a_row() -> None:
    rows = {(row.method, option) for row in DEEPL_ROWS for option in (row.option.split(", ") or [""])}
    missing = []
    for name, method in inspect.getmembers(deepl.DeepLClient, inspect.isfunction):
        if name.startswith("_"):
            continue
        parameters = inspect.signature(method).parameters.values()
        options = ["", *(option.name for option in parameters if option.default is not option.empty)]
        missing += [f"{name} {option}" for option in options if (name, option) not in rows]
    assert missing == []


def test_every_method_and_option_of_libretranslatepy_has_a_row() -> None:
    rows = {(row.method, option) for row in LIBRETRANSLATE_ROWS for option in row.option.split(", ")}
    for name, method in inspect.getmembers(LibreTranslateAPI, inspect.isfunction):
        if not name.startswith("_"):
            options = [option for option in inspect.signature(method).parameters if option != "self"]
            assert {(f"libretranslatepy {name}", option) for option in options} <= rows


def test_an_option_without_effect_is_documented() -> None:
    described = PAGE.with_name("http.md").read_text(encoding="utf-8")
    for row in [*LIBRETRANSLATE_ROWS, *DEEPL_ROWS]:
        if row.result == "no effect" and row.note != "means 0":
            option = re.split("[ =]", row.option)[0]
            (line, *_) = re.findall(rf"^\| `{option}` \|.*", described, re.MULTILINE)
            assert re.search("Ignored|no effect|select the default model", line), row.name


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.service.clients.page"


@pytest.mark.system
@pytest.mark.skipif(not NODE_MODULES or shutil.which("node") is None, reason="MT_TEST_NODE_MODULES is not set")
def test_deepl_node(world: World) -> None:
    script = Path(__file__).with_name("deepl_node.cjs")
    environment = {**os.environ, "NODE_PATH": NODE_MODULES}
    command = ["node", str(script), world.url, world.key, world.memory, str(world.folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [row[:3] for row in node_rows()]
