"""Blocks of consecutive tokens: by hand, and drawn at random offsets."""

from pathlib import Path

import numpy as np
import pytest

from mt.config import Recipe
from mt.data.batching import Position
from mt.data.blocks import BlockStream, TokenBlocks, update_stream
from mt.data.dataset import load_prepared
from mt.data.preparation import prepare
from mt.distributed import World
from mt.errors import RecipeError
from mt.recipe import load_recipe, save_recipe
from mt.tokenizer import BOS, EOS, PAD

LINES = [[5, 6, 7], [], [8]]
INPUTS = [BOS, 5, 6, 7, BOS, BOS, 8]
LABELS = [5, 6, 7, EOS, EOS, 8, EOS]

RECIPE = """
name = "letters"
[data]
language = "en"
train = "TEXT"
split_validation = 20
block_tokens = 8
[cleaning]
deduplicate = false
[tokenizer]
kind = "byte"
[model]
size = "tiny"
max_length = 16
[training]
batch_tokens = 32
update_tokens = 64
"""


def test_blocks_by_hand() -> None:
    for size in (1, 3, 7, 10):
        blocks = TokenBlocks.of(LINES, size)
        assert len(blocks) == 7
        batch = blocks.batch(blocks.consecutive)
        labels = batch.labels.flatten().tolist()
        assert (batch.target.flatten().tolist()[:7], labels[:7]) == (INPUTS, LABELS)
        assert set(labels[7:]) <= {PAD} and batch.labels.shape[1] == size
    assert batch.indices == (0,)
    batch = TokenBlocks.of(LINES, 2).batch(np.array([1, 3, 5]))
    assert batch.target.tolist() == [[5, 6], [7, BOS], [BOS, 8]]
    assert batch.labels.tolist() == [[6, 7], [EOS, EOS], [8, EOS]]
    assert batch.indices == (0, 0, 2)
    assert TokenBlocks.of([[], []], 2).batch(np.array([0])).labels.tolist() == [[EOS, EOS]]


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    text = tmp_path / "book.txt"
    text.write_text("".join(f"line {number}\twith a tab, and more\n" for number in range(200)), encoding="utf-8")
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE.replace("TEXT", str(text)))
    return load_recipe(path)


def test_updates_of_blocks_at_random_offsets(recipe: Recipe, tmp_path: Path) -> None:
    data = load_prepared(prepare(recipe, tmp_path / "prepared"))
    assert len(data.tokenizer) == 4 + 256 and len(data.train) == 180
    assert all("\twith a tab" in text for text in data.train.texts("target", range(180)))
    stream = update_stream(data.train, data.tokenizer, recipe, World())
    assert isinstance(stream, BlockStream)
    planned = stream.plan(0)
    assert len(planned) == len(stream.blocks) // 64
    assert {len(update) for update in planned} == {2} and {len(batch) for batch in planned[0]} == {4}
    offsets = np.concatenate([batch for update in planned for batch in update])
    assert offsets.min() >= 0 and offsets.max() <= len(stream.blocks) - 8
    assert len(np.unique(offsets % 8)) == 8  # offsets are no multiples of the size
    again = update_stream(data.train, data.tokenizer, recipe, World()).plan(0)
    assert np.array_equal(np.concatenate(again[0]), np.concatenate(planned[0]))
    assert not np.array_equal(np.concatenate(stream.plan(1)[0]), np.concatenate(planned[0]))
    update = next(stream.updates(Position()))
    assert [tuple(batch.target.shape) for batch in update.batches] == [(4, 8), (4, 8)]
    text = data.train.texts("target", [update.batches[0].indices[0]])[0]
    label = update.batches[0].labels[0]
    written = data.tokenizer.decode(
        [int(id) for id in label[: int((label == EOS).cummax(0).values.logical_not().sum())]]
    )
    assert written in text
    halves = [
        next(update_stream(data.train, data.tokenizer, recipe, World(rank, 2)).updates(Position())) for rank in (0, 1)
    ]
    assert sorted(i for half in halves for b in half.batches for i in b.indices) == sorted(
        i for b in update.batches for i in b.indices
    )


def test_a_saved_recipe_is_the_same(recipe: Recipe, tmp_path: Path) -> None:
    save_recipe(recipe, tmp_path / "saved.toml")
    assert load_recipe(tmp_path / "saved.toml") == recipe
    assert recipe.data.train[0].columns == ("en",)


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("data.block_tokens=17", "data.block_tokens is 17; accepted: at most 16, the smaller of model.max"),
        (
            "data.train=[{path='a.txt', weight=2}]",
            "data.block_tokens is 8 and a corpus has a weight other than 1; accepted: weight 1",
        ),
        (
            "tokenizer.dropout=0.1",
            "tokenizer.dropout is 0.1 and tokenizer.kind is 'byte'; accepted: dropout 0, or kind 'bpe'",
        ),
        ("tokenizer.dropout=0.1", "data.block_tokens is 8 and tokenizer.dropout is 0.1; accepted: one of them above 0"),
        ("tokenizer.kind=word", "tokenizer.kind"),
    ],
)
def test_blocks_that_cannot_be_made(recipe: Recipe, tmp_path: Path, override: str, problem: str) -> None:
    with pytest.raises(RecipeError) as caught:
        load_recipe(tmp_path / "recipe.toml", [override])
    assert problem in str(caught.value)


def test_blocks_are_for_a_language_model(tmp_path: Path) -> None:
    text = RECIPE.replace('language = "en"', 'directions = ["en-de"]').replace("TEXT", "corpus.{language}")
    (tmp_path / "recipe.toml").write_text(text)
    with pytest.raises(RecipeError, match=r"data\.block_tokens is 8, but data\.language is missing; accepted: 0, or"):
        load_recipe(tmp_path / "recipe.toml")
    (tmp_path / "recipe.toml").write_text(text.replace("corpus.{language}", "corpus.txt"))
    with pytest.raises(RecipeError, match=r"path is 'corpus\.txt' and columns"):
        load_recipe(tmp_path / "recipe.toml")
