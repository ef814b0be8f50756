"""Small models with random weights, for tests that need one to run and not to translate well."""

import os
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

import pytest
import torch
from hypothesis import settings

from mt import Translator
from mt.checkpoint import LoadedModel, save_model
from mt.config import DecodingConfig, ModelConfig
from mt.decoding.options import SearchOptions
from mt.description import Description
from mt.engine.backends.cpu import CompiledDecoder
from mt.engine.backends.cuda import GraphDecoder
from mt.engine.backends.protocol import Batch
from mt.engine.backends.torch import SearchDecoder
from mt.engine.requests import Request
from mt.languages import Direction, DirectionSet
from mt.model.transformer import Transformer
from mt.pipeline.results import Translation
from mt.text.terms import Terms
from mt.tokenizer import Tokenizer, train_tokenizer

ROOT = Path(__file__).resolve().parents[1]
FROZEN = ROOT / "tests" / "frozen" / "model"
DEVICE = os.environ.get("MT_DEVICE", "cpu")
"""The device on which the tests of the service translate: MT_DEVICE=cuda runs them on a GPU."""

NOUNS = ["dog", "cat", "man", "woman", "child", "horse", "house", "river", "train", "street", "market", "bridge"]
VERBS = ["sees", "finds", "likes", "follows", "draws", "hears", "paints", "forgets"]


def without_settings() -> dict[str, str]:
    """Return the environment without the settings of the service, which refuses those that it does not know."""
    return {name: value for name, value in os.environ.items() if not name.startswith("MT_")}


def free_port() -> int:
    """Return a free port below 32,768: the system gives higher ones to connections of other processes."""
    for port in SystemRandom().sample(range(20_000, 32_000), 100):
        with socket.socket() as candidate, suppress(OSError):
            candidate.bind(("127.0.0.1", port))
            return port
    raise OSError("no free port")


def pytest_configure(config: pytest.Config) -> None:
    """Use one torch thread in each test process, and examples of hypothesis that are the same in each run.

    On busy cores, a second thread waits in a loop and takes five times the processor time. A failing check should be
    the fault of the change that it checks, so only `scripts/test.sh --all` tries new examples.
    """
    torch.set_num_threads(1)
    settings.register_profile("same_examples", deadline=None, derandomize=True)
    settings.register_profile("new_examples", deadline=None)
    settings.load_profile(config.getoption("hypothesis_profile", None) or "same_examples")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, for they train: with one of them last, all other processes would wait."""
    items.sort(key=lambda item: (item.path.name != "test_readme.py", item.path.parent.name != "training"))


def search_results(
    translator: Translator,
    texts: Sequence[str],
    options: SearchOptions | None = None,
    sentences: bool = False,
    terms: Terms | None = None,
) -> list[Translation]:
    """Translate without protection and repairs."""
    planner = translator.planner(options=options, sentences=sentences, terms=terms)
    return translator.run(replace(planner, protect=False), texts)


def sentences(count: int, seed: int = 0) -> list[str]:
    random = Random(seed)
    result: dict[str, None] = {}
    while len(result) < count:
        more = [f"and the {random.choice(NOUNS)}" for _ in range(random.randrange(3))]
        words = ["The", random.choice(NOUNS), random.choice(VERBS), "the", random.choice(NOUNS), *more]
        result[" ".join(words) + random.choice(".!?")] = None
    return list(result)


def write_model(
    folder: Path, directions: Sequence[str], beam_size: int = 3, seed: int = 1, max_length: int = 256, layers: int = 1
) -> Path:
    """A model directory whose weights are random, but so large that no two scores are nearly the same."""
    torch.manual_seed(seed)
    languages = sorted({code for pair in map(Direction.parse, directions) for code in (pair.source, pair.target)})
    tokenizer = Tokenizer(train_tokenizer(sentences(500), vocabulary_size=400, languages=languages))
    sizes = {"encoder_layers": layers, "decoder_layers": layers, "d_model": 32, "d_ff": 64, "heads": 2}
    config = ModelConfig.model_validate({**sizes, "max_length": max_length})
    model = Transformer(config, len(tokenizer))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.mul_(4 if "norm" in name or "cross" in name else 1.5)
    description = Description(
        name="small",
        directions=DirectionSet.parse(directions),
        vocabulary_size=len(tokenizer),
        model=config,
        decoding=DecodingConfig(beam_size=beam_size, max_length_factor=1.5, max_length_offset=5),
    )
    save_model(folder, LoadedModel(model, tokenizer, description), "# small\n")
    return folder


@pytest.fixture(scope="session")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "small", ["en-de"])


@pytest.fixture(scope="session")
def several_directions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "several", ["en-de", "en-fr", "fr-de"])


@pytest.fixture
def poison(small_model: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A sentence on which every engine with the small model fails."""
    request = Translator.load(small_model, "cpu").request("poison")

    def failing(begin: Callable[[Any, Sequence[Request]], Batch]) -> Callable[[Any, Sequence[Request]], Batch]:
        def begin_or_fail(decoder: Any, requests: Sequence[Request]) -> Batch:
            if request is not None and request.source in [item.source for item in requests]:
                raise ValueError("not this one")
            return begin(decoder, requests)

        return begin_or_fail

    for kind in (CompiledDecoder, GraphDecoder, SearchDecoder):
        monkeypatch.setattr(kind, "begin", failing(kind.begin))
    return "poison"
