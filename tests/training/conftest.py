"""A tiny language whose translation is the same words in reverse, and the scripts as a shell runs them."""

import io
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import chdir, redirect_stderr
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

from mt.config import Recipe
from mt.data.dataset import PreparedData, load_prepared
from mt.data.preparation import prepare
from mt.distributed import World
from mt.recipe import load_recipe
from mt.training.report import Reporter
from mt.training.trainer import Trainer

ROOT = Path(__file__).resolve().parents[2]

WORDS = ("alder", "birch", "cedar", "elm", "fir", "hazel", "larch", "maple", "oak", "pine", "rowan", "willow")

RECIPE = """
name = "reverse"

[data]
root = "corpora"
directions = ["en-de"]
train = ["train.{language}"]
valid = ["valid.{language}"]
test = ["test.{language}"]

[tokenizer]
vocabulary_size = 340

[model]
encoder_layers = 1
decoder_layers = 1
d_model = 32
d_ff = 64
heads = 2
dropout = 0.1

[training]
precision = "float32"
optimizer = "adam"
batch_tokens = 128
update_tokens = 256
max_updates = 30
learning_rate = 3e-3
warmup_updates = 20
cooldown_updates = 0
validate_every = 1000
validate_sentences = 8
save_every = 1000

[decoding]
beam_size = 2
max_length_factor = 1.5
max_length_offset = 3
"""


def write_corpora(folder: Path, pairs: int, seed: int) -> None:
    """`folder`/{train,valid,test}.{en,de}; no sentence is in two of them."""
    chance = random.Random(seed)
    sentences: set[tuple[str, ...]] = set()
    while len(sentences) < pairs + 80:
        sentences.add(tuple(chance.choices(WORDS, k=chance.randint(2, 6))))
    shuffled = sorted(sentences)
    chance.shuffle(shuffled)
    folder.mkdir(parents=True, exist_ok=True)
    for part, chosen in (("valid", shuffled[:40]), ("test", shuffled[40:80]), ("train", shuffled[80:])):
        (folder / f"{part}.en").write_text("".join(f"{' '.join(words)}\n" for words in chosen))
        (folder / f"{part}.de").write_text("".join(f"{' '.join(reversed(words))}\n" for words in chosen))


def train(trainer: Trainer) -> bool:
    with Reporter(trainer.run, "test", trainer.config, trainer.progress.updates) as report:
        return trainer.train(report)


def finish(trainer: Trainer) -> tuple[dict[str, Tensor], str, dict[str, float]]:
    with Reporter(trainer.run, "test", trainer.config, trainer.progress.updates) as report:
        return trainer.finish(report)


def weights_of(trainer: Trainer) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}


def equal(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def metrics(run: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def newest(run: Path) -> int:
    """The update of the newest checkpoint, or 0."""
    return max((int(path.name) for path in run.glob("checkpoints/[0-9]*")), default=0)


def torchrun(command: list[str], *options: str) -> list[str]:
    """`command` in two processes of one machine; without `--`, torchrun takes `--run` for one of its options."""
    two = ("--standalone", "--nproc-per-node", "2", *options)
    return [sys.executable, "-m", "torch.distributed.run", *two, "--", *command[1:]]


@dataclass(frozen=True)
class Place:
    folder: Path

    def write_corpora(self, pairs: int, seed: int) -> None:
        write_corpora(self.folder / "corpora", pairs, seed)

    def command(self, script: str, *arguments: str) -> list[str]:
        return [sys.executable, str(ROOT / "scripts" / script), "recipe.toml", *arguments]

    def start(self, command: list[str]) -> subprocess.Popen[str]:
        search_path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        env = {**os.environ, "PYTHONPATH": search_path, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
        pipe = subprocess.PIPE
        return subprocess.Popen(command, cwd=self.folder, env=env, stdout=pipe, stderr=pipe, text=True)

    def here(self, main: Callable[[Sequence[str]], int], *arguments: str, status: int = 0) -> str:
        """What the `main` of a script says on stderr, run in this process; fails the test if its status is another.

        For what needs no process of its own: to import torch takes longer than most of these runs.
        """
        with chdir(self.folder), redirect_stderr(io.StringIO()) as said:
            found = main(["recipe.toml", *arguments])
        assert found == status, said.getvalue()
        return said.getvalue()

    def run(self, command: list[str], status: int = 0) -> str:
        process = self.start(command)
        _, said = process.communicate()
        assert process.returncode == status, said
        return said


@pytest.fixture
def place(tmp_path: Path) -> Place:
    (tmp_path / "recipe.toml").write_text(RECIPE)
    place = Place(tmp_path)
    place.write_corpora(400, seed=1)
    return place


@pytest.fixture(scope="session")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reverse")
    write_corpora(folder / "corpora", 400, seed=1)
    (folder / "recipe.toml").write_text(RECIPE.replace('"corpora"', f'"{folder / "corpora"}"'))
    return folder


@pytest.fixture
def read_recipe(corpora: Path) -> Callable[..., Recipe]:
    return lambda *overrides: load_recipe(corpora / "recipe.toml", overrides)


@pytest.fixture
def prepared(corpora: Path) -> Callable[[Recipe], PreparedData]:
    return lambda recipe: load_prepared(prepare(recipe, corpora / "prepared"))


@pytest.fixture
def make_trainer(
    tmp_path: Path, read_recipe: Callable[..., Recipe], prepared: Callable[[Recipe], PreparedData]
) -> Callable[..., Trainer]:
    """A trainer in the folder `tmp_path/name`, with overrides of the recipe."""

    def make(name: str, *overrides: str) -> Trainer:
        recipe = read_recipe(*overrides)
        (tmp_path / name).mkdir(exist_ok=True)
        return Trainer(recipe, prepared(recipe), tmp_path / name, torch.device("cpu"), World())

    return make
