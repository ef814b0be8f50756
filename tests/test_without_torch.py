import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from mt import Translator
from mt.decoding.options import SearchOptions
from mt.engine.devices import has_driver
from mt.kernels.library import load_library
from tests.conftest import FROZEN
from tests.service.running import started

TORCH_DECODES = load_library() is None or has_driver()
pytestmark = pytest.mark.skipif(TORCH_DECODES, reason="without kernels, or with a GPU, torch decodes")

RECIPE = str(Path(__file__).parents[1] / "scripts/recipes/phrasebook.toml")
WITHOUT = "import sys; sys.modules['torch'] = None\n"  # every import of torch fails
TEXTS = ["My husband sees 12 cats at https://x.org/a.", "MY HUSBAND IS FAST.", "", "A theater. The {name} is old."]
TRANSLATE = """
import json
from dataclasses import replace
from mt import Translator
translator = Translator.load(sys.argv[1])
options = replace(translator.options, beam_size=3, n_best=2)
found = translator.translate_many(json.loads(sys.argv[2]), options=options, alignment=True)
links = [[sentence.links for sentence in each.sentences] for each in found]
print(json.dumps([[each.text, [one.text for one in each.alternatives], links] for each, links in zip(found, links)]))
"""
ENSEMBLE = """
from mt import Translator
from mt.errors import ModelError
try:
    Translator.load(sys.argv[1], "cpu", others=[sys.argv[1]])
except ModelError as error:
    print(error)
"""


def run(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", WITHOUT + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_translations_are_those_with_torch() -> None:
    translator = Translator.load(FROZEN, "cpu")
    options = SearchOptions(**{**vars(translator.options), "beam_size": 3, "n_best": 2})
    expected = translator.translate_many(TEXTS, options=options, alignment=True)
    result = json.loads(run(TRANSLATE, str(FROZEN), json.dumps(TEXTS)))
    assert [text for text, _, _ in result] == [item.text for item in expected]
    assert [others for _, others, _ in result] == [[one.text for one in item.alternatives] for item in expected]
    links = [[sentence.links for sentence in item.sentences] for item in expected]
    assert [item for _, _, item in result] == json.loads(json.dumps(links))


def test_an_ensemble_says_that_it_needs_torch() -> None:
    assert run(ENSEMBLE, str(FROZEN)) == "an ensemble needs torch, which is not installed; accepted: one model\n"


@pytest.mark.parametrize("verb", ["train", "import", "explain"])
def test_a_verb_that_needs_torch_says_so(verb: str) -> None:
    assert refused(verb, RECIPE) == "error: torch is not installed. Run pip install 'mt-service[training]'\n"


def test_a_recipe_is_checked_before_torch_is_imported() -> None:
    problem = "training.max_update is unknown (did you mean max_updates?)"
    assert problem in refused("train", RECIPE, "training.max_update=5")


def refused(*arguments: str) -> str:
    code = f"from mt.cli.main import main\nsys.exit(main({list(arguments)}))"
    done = subprocess.run([sys.executable, "-c", WITHOUT + code], capture_output=True, text=True)
    assert done.returncode == 2
    return done.stderr


def test_the_service(tmp_path: Path) -> None:
    """No process of the service can import torch, and every kind of request is answered."""
    (tmp_path / "sitecustomize.py").write_text(WITHOUT)
    paths = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    with started(FROZEN, PYTHONPATH=paths) as service:
        with httpx.Client(base_url=service.url, trust_env=False, timeout=60) as client:
            options = {"alternatives": 2, "alignment": True, "confidence": True}
            body = {"q": TEXTS, "source": "en", "target": "de", **options}
            answer = client.post("/translate", json=body)
            assert answer.status_code == 200, answer.text
            assert "https://x.org/a" in answer.json()["translatedText"][0]
            assert any(answer.json()["alternatives"])
            glossary = {**body, "q": "My husband sees the cat.", "glossary": {"cat": "Hauskatze"}}
            assert "Hauskatze" in client.post("/translate", json=glossary).json()["translatedText"]
            repeated = client.post("/translate", json={**body, "q": "the cat " * 40})  # is decoded again
            assert repeated.status_code == 200
            marked_up = client.post("/translate", json={**body, "q": "My <b>husband</b>.", "format": "html"})
            assert marked_up.json()["translatedText"].count("<b>") == 1
        assert service.stop() == 0


def test_no_module_of_the_path_imports_torch_or_plots() -> None:
    modules = "service.program, service.workers.worker_process, mt.cli.translate, mt.cli.evaluate"
    assert run(f"import {modules}\nprint({{'matplotlib', 'tensorboard'}} & sys.modules.keys())") == "set()\n"
