"""Trees in a circle: a line begins with any of twelve and goes on around it to the last; its only news is where."""

import json
import math
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

from mt.cli import train as script
from mt.config import ModelConfig, Recipe
from mt.data.batching import make_batch
from mt.data.dataset import load_prepared
from mt.data.preparation import prepare
from mt.distributed import World
from mt.errors import RecipeError
from mt.model.transformer import LanguageModel
from mt.scoring.language_model import LanguageModelScorer, perplexity
from mt.training.loss import batch_loss
from mt.training.report import Reporter
from mt.training.speed import batch_operations
from mt.training.trainer import Trainer
from mt.training.tuning import read_recipe
from mt.weights import load_weights
from tests.training.conftest import WORDS

RECIPE = """
name = "trees"

[data]
root = "corpora"
language = "en"
train = ["train.{language}"]
valid = ["valid.{language}"]
test = [{ path = "test.tsv", columns = ["de", "en"] }]

[cleaning]
deduplicate = false

[tokenizer]
vocabulary_size = 340

[model]
encoder_layers = 1
decoder_layers = 1
d_model = 32
d_ff = 64
heads = 2
dropout = 0.0

[training]
precision = "float32"
optimizer = "adam"
batch_tokens = 256
update_tokens = 256
max_updates = 120
learning_rate = 1e-2
warmup_updates = 20
cooldown_updates = 0
label_smoothing = 0.0
validate_every = 60
save_every = 1000
"""

LINES = [" ".join(WORDS[begin:]) for begin in range(len(WORDS))]


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with corpora and the recipe over them."""
    folder = tmp_path_factory.mktemp("trees")
    chance = random.Random(1)
    (folder / "corpora").mkdir()
    for part, lines in (("train", chance.choices(LINES, k=400)), ("valid", LINES)):
        (folder / "corpora" / f"{part}.en").write_text("".join(f"{line}\n" for line in lines))
    (folder / "corpora" / "test.tsv").write_text("".join(f"Bäume\t{line}\n" for line in LINES))
    (folder / "recipe.toml").write_text(RECIPE.replace('"corpora"', f'"{folder / "corpora"}"'))
    return folder


@pytest.fixture
def make_trainer(trees: Path, tmp_path: Path) -> Callable[..., Trainer]:
    def make(name: str, *overrides: str) -> Trainer:
        recipe = read_recipe(trees / "recipe.toml", overrides)
        (tmp_path / name).mkdir(exist_ok=True)
        data = load_prepared(prepare(recipe, trees / "prepared"))
        return Trainer(recipe, data, tmp_path / name, torch.device("cpu"), World())

    return make


def train(trainer: Trainer) -> bool:
    with Reporter(trainer.run, "test", trainer.config, trainer.progress.updates) as report:
        return trainer.train(report)


def test_it_learns_that_only_the_first_word_is_news(
    trees: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No model can give each line more than 1/12 in the mean; what follows the first word costs next to nothing."""
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "run"
    recipe = read_recipe(trees / "recipe.toml")
    assert script.train(recipe, run, run / "prepared", torch.device("cpu"), World(), False, Console(quiet=True))
    assert sorted(path.name for path in (run / "model").iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
        "tokenizer.model",
    ]
    scorer = LanguageModelScorer.load(run / "model", "cpu")
    assert scorer.language == "en"
    scored = scorer.score(LINES)
    nats = [-each.log_probability for each in scored]
    assert math.log(12) - 1e-3 < sum(nats) / 12 < math.log(12) + 0.3
    shuffled = "oak birch willow elm"
    assert scorer.score([shuffled])[0].log_probability < -10

    tokens = sum(each.tokens for each in scored)
    assert perplexity(scored) == pytest.approx(math.exp(sum(nats) / tokens))
    card = (run / "model" / "README.md").read_text()
    for text in ("validation", "test"):  # the same lines; of the table, the column en
        assert f"| {text} | {tokens:,} | {perplexity(scored):.2f} |" in card
    assert "train.{language} (400 lines after cleaning)" in card

    records = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    last = next(record for record in reversed(records) if "valid_loss" in record)
    assert last.keys() == {"update", "valid_loss", "valid_perplexity"}
    assert last["valid_perplexity"] == pytest.approx(math.exp(last["valid_loss"]), rel=1e-5)
    assert (run / "curves.png").exists()


def test_a_resumed_run_is_the_run_that_was_not_stopped(make_trainer: Callable[..., Trainer]) -> None:
    overrides = (
        *("training.max_updates=20", "training.validate_every=8", "training.save_every=5", "training.ema_decay=0.9"),
        *("tokenizer.dropout=0.1", "model.dropout=0.1", "training.precision=bfloat16"),
    )
    whole, part = make_trainer("whole", *overrides), make_trainer("part", *overrides)
    assert train(whole) is True
    part.config = part.config.model_copy(update={"max_updates": 9})
    assert train(part) is True
    last = make_trainer("part", *overrides)
    assert last.resume() and last.progress.updates == 9
    assert train(last) is True
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(last.model.state_dict()[name], tensor), name
    for name, tensor in whole.state.average.items():
        assert torch.equal(last.state.average[name], tensor), name
    assert last.progress.best_score == whole.progress.best_score > 0


@pytest.mark.parametrize(
    ("losses", "origin"), [([2.0, 3.0], "checkpoint of update 3"), ([3.0, 2.0], "checkpoint of update 12")]
)
def test_the_lowest_perplexity_is_the_best(
    make_trainer: Callable[..., Trainer], monkeypatch: pytest.MonkeyPatch, losses: list[float], origin: str
) -> None:
    trainer = make_trainer(
        "run",
        "training.validate_every=3",
        "training.patience=3",
        "training.keep_checkpoints=1",
        "training.max_updates=100",
    )
    said = iter([9.0, 9.5, 9.0, 9.1, *losses])  # the first is the best, and three later ones are no better
    monkeypatch.setattr(trainer.validation, "losses", lambda model: {"valid_loss": next(said)})
    assert train(trainer) is True
    assert (trainer.progress.updates, trainer.progress.best_update) == (12, 3)
    with Reporter(trainer.run, "test", trainer.config, 12) as report:
        weights, name, figures = trainer.finish(report)
    assert (name, figures["valid_loss"]) == (origin, 2.0)
    chosen = int(origin.split()[-1])
    torch.testing.assert_close(
        weights, load_weights(trainer.run / "checkpoints" / f"{chosen:08d}" / "model.safetensors")
    )


def test_a_model_that_went_astray_is_no_crash(make_trainer: Callable[..., Trainer]) -> None:
    validation = make_trainer("run").validation
    for loss in (1e4, math.nan):
        assert not validation.score({"valid_perplexity": float(torch.tensor(loss).exp())}) > 0


@torch.no_grad()
def test_the_loss_by_hand() -> None:
    """-log p of each token, EOS included; the sources are not looked at, nor is the padding."""
    torch.manual_seed(1)
    model = LanguageModel(ModelConfig(encoder_layers=1, decoder_layers=2, d_model=8, d_ff=16, heads=2), 12).eval()
    targets = [[5, 6, 7], [8]]
    expected = 0.0
    for ids in targets:
        log = model(torch.tensor([[2, *ids]])).log_softmax(-1)[0]
        expected -= sum(float(log[place, id]) for place, id in enumerate([*ids, 3]))
    for sources in ([[3], [3]], [[4, 4, 3], [9, 3]]):
        batch = make_batch(sources, targets, np.arange(2))
        assert batch_loss(model, batch, 0.0).item() == pytest.approx(expected, rel=1e-5)
        with torch.enable_grad():
            assert batch_loss(model, batch, 0.0).item() == pytest.approx(expected, rel=1e-5)
    matrices = sum(p.numel() for p in model.parameters() if p.dim() == 2)
    assert batch_operations(model, batch) == 6 * 6 * matrices  # six targets


def prepared(folder: Path, text: str, *overrides: str) -> tuple[Recipe, list[str], list[dict[str, object]]]:
    """The recipe, the targets of what is prepared of `text`, and what was dropped."""
    (folder / "train.en").write_text(text)
    (folder / "valid.en").write_text("One line.\n")
    (folder / "recipe.toml").write_text(RECIPE.replace('"corpora"', f'"{folder}"').replace("test =", "# test ="))
    recipe = read_recipe(folder / "recipe.toml", ["cleaning.deduplicate=true", *overrides])
    data = load_prepared(prepare(recipe, folder / "prepared"))
    assert data.train.texts("source", range(len(data.train))) == [""] * len(data.train)
    dropped = data.meta["dropped"]
    assert isinstance(dropped, dict)
    return recipe, data.train.texts("target", range(len(data.train))), dropped["en"]


def test_text_alone_is_cleaned_by_what_looks_at_one_side(tmp_path: Path) -> None:
    good = ["A dog runs through the tall grass.", "In 1991 there were 2000 of them here."]
    bad = ["", "no no no no no no no no", "Это предложение не по-английски.", good[0]]
    _, kept, dropped = prepared(tmp_path, "".join(f"{line}\n" for line in [*good, *bad]))
    assert kept == good
    assert {row["reason"]: row["count"] for row in dropped} == dict.fromkeys(
        ("empty", "repetition", "wrong script", "duplicate"), 1
    )
    assert next(row for row in dropped if row["reason"] == "duplicate")["examples"] == [
        f"{tmp_path / 'train.en'}:6: {good[0]}"
    ]


def test_a_column_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "more.tsv").write_text("Ein Hund.\tA dog.\nEine Katze.\tA cat.\n")
    corpora = "data.train=['train.{language}', {path='more.tsv', columns=['de', 'en'], weight=2}]"
    assert prepared(tmp_path, "A horse.\n", corpora)[1] == ["A horse.", "A dog.", "A cat."]
    with pytest.raises(RecipeError, match=r"more\.tsv has the columns \['de', 'fr'\]; accepted: columns for en"):
        prepared(tmp_path, "A horse.\n", "data.train=[{path='more.tsv', columns=['de', 'fr']}]")


@pytest.mark.parametrize(
    ("overrides", "problem"),
    [
        (
            ["data.directions=['en-de']"],
            "data: data.directions and data.language: both are given; accepted: exactly one of them",
        ),
        (
            ["data.directions=['en']"],
            "data.directions: ['en'] names no target language; accepted: two languages, such as",
        ),
        (["data.language=english"], "data.language: 'english' is not a language tag; accepted: BCP 47, such as 'de'"),
        (["data.language=EN"], "data.language: 'EN' is not in canonical letter case; accepted: 'en'"),
        (
            ["data.train=[{path='{language}', source_tag='bt'}]"],
            "data.train: source_tag does not apply to a language model (data.language); remove it",
        ),
        (["model.tie_source=false"], "model.tie_source = false does not apply to a language model"),
    ],
)
def test_what_makes_no_sense_is_refused(trees: Path, overrides: list[str], problem: str) -> None:
    with pytest.raises(RecipeError) as caught:
        read_recipe(trees / "recipe.toml", overrides)
    assert problem in str(caught.value)


def test_it_is_no_part_of_tuning(trees: Path, small_model: Path, small_language_model: Path) -> None:
    sections = RECIPE.partition("[tokenizer]")[0]
    problems = {
        small_model: "tuning does not apply to a language",
        small_language_model: "but a translation model is needed",
    }
    for model, problem in problems.items():
        (trees / "tuned.toml").write_text(f'{sections}[tuning]\nmodel = "{model}"\n')
        with pytest.raises(RecipeError, match=problem):
            read_recipe(trees / "tuned.toml")
