"""Translation and serving on a CPU do not import torch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mt import Translator
from mt.decoding.options import SearchOptions
from mt.engine.devices import has_driver
from mt.kernels.library import load_library

pytestmark = pytest.mark.skipif(
    load_library() is None or has_driver(), reason="without kernels, or with a GPU, torch decodes"
)

FROZEN = Path(__file__).parent / "frozen" / "model"
WITHOUT = "import sys; sys.modules['torch'] = None\n"  # every import of torch fails
TEXTS = ["My husband sees 12 cats at https://x.org/a.", "MY HUSBAND IS FAST.", "", "A theater. The {name} is old."]
TRANSLATE = """
import json
from dataclasses import replace
from mt import Translator
translator = Translator.load(sys.argv[1])
options = replace(translator.options, beam_size=3, n_best=2)
found = translator.translate(json.loads(sys.argv[2]), options=options, alignment=True)
links = [[sentence.links for sentence in each.sentences] for each in found]
print(json.dumps([[each.text, [one.text for one in each.alternatives], links] for each, links in zip(found, links)]))
"""
SAMPLE = """
from mt import Translator
from mt.decoding.options import SearchOptions
try:
    Translator.load(sys.argv[1]).translate("The dog.", options=SearchOptions(sample=True))
except Exception as error:
    print(error)
"""
WORKER = """
from pathlib import Path
from service.workers.messages import Close, ModelSetup, SourceText, Translate, TranslateOptions, TextDone
from service.workers.worker_loop import load, work
from mt.languages import Direction
new = [Translate(1, SourceText("My husband is very fast."), TranslateOptions(Direction("en", "de")))]
sent = []
def receive(wait):
    if new:
        return [new.pop()]
    return [Close()] if any(isinstance(message, TextDone) for message in sent) else []
work(ModelSetup(Path(sys.argv[1])), load, receive, sent.extend)
print(*(message.translation.text for message in sent if isinstance(message, TextDone)))
"""


def run(code: str, *arguments: str) -> str:
    command = [sys.executable, "-c", WITHOUT + code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_translations_are_those_with_torch() -> None:
    translator = Translator.load(FROZEN, "cpu")
    options = SearchOptions(**{**vars(translator.options), "beam_size": 3, "n_best": 2})
    expected = translator.translate(TEXTS, options=options, alignment=True)
    found = json.loads(run(TRANSLATE, str(FROZEN), json.dumps(TEXTS)))
    assert [text for text, _, _ in found] == [each.text for each in expected]
    assert [others for _, others, _ in found] == [[one.text for one in each.alternatives] for each in expected]
    links = [[sentence.links for sentence in each.sentences] for each in expected]
    assert [each for _, _, each in found] == json.loads(json.dumps(links))


def test_a_worker() -> None:
    assert run(WORKER, str(FROZEN)).strip() == "Mein Mann ist sehr schnell."


def test_a_search_that_needs_torch_says_so() -> None:
    assert "need torch, which is not installed; accepted: beam search" in run(SAMPLE, str(FROZEN))


def test_no_module_of_the_path_imports_torch() -> None:
    code = "import mt.pipeline.translator, mt.cli.translate, service.workers.worker_loop, service.workers.process"
    assert subprocess.run([sys.executable, "-c", WITHOUT + code], check=True).returncode == 0
