"""Blocks of consecutive tokens of a text, for language models.

The text is one sequence of predictions. A line of n tokens is n + 1 of them, with BOS and the tokens as inputs, and the
tokens and EOS as labels. A block is a part of this sequence, so its tokens see those of earlier lines.

    input   BOS  T  h  e  BOS  A
    label   T    h  e  EOS  A   ...
"""

from collections.abc import Sequence

import numpy as np
import torch

from mt.config import Recipe
from mt.data.batching import TrainingBatch, UpdateStream
from mt.data.dataset import ParallelDataset, Ragged
from mt.distributed import World
from mt.tokenizer import BOS, EOS, PAD, Tokenizer


class TokenBlocks:
    """Blocks of `size` predictions over lines of ids. Line i is data[offsets[i] : offsets[i + 1]]."""

    def __init__(self, data: np.ndarray, offsets: np.ndarray, size: int) -> None:
        self.size = size
        self._data = data
        self._starts = offsets + np.arange(len(offsets))  # position of the first prediction of each line

    @classmethod
    def over(cls, lines: Ragged, size: int) -> "TokenBlocks":
        """Return the blocks over the lines of a dataset, without a copy of their ids."""
        return cls(lines.data, lines.offsets, size)

    @classmethod
    def of(cls, lines: Sequence[Sequence[int]], size: int) -> "TokenBlocks":
        """Return the blocks over lists of ids."""
        offsets = np.cumsum([0, *map(len, lines)])
        return cls(np.array([id for line in lines for id in line], np.int64), offsets, size)

    def __len__(self) -> int:
        """Return the number of predictions in the text."""
        return int(self._starts[-1])

    @property
    def consecutive(self) -> np.ndarray:
        """Begins of the blocks that cover the text once."""
        return np.arange(0, len(self), self.size)

    def batch(self, begins: np.ndarray) -> TrainingBatch:
        """Return the blocks that begin at these positions, [B]. Labels after the end of the text are PAD.

        `indices` of the batch are the lines in which the blocks begin. Sources are a single EOS.
        """
        places = begins[:, None] + np.arange(self.size)
        inside = np.minimum(places, len(self) - 1)
        line = np.searchsorted(self._starts, inside, "right") - 1
        label = inside - line  # index in `data`, which has no EOS; at the end of a line, that of the next line
        last = max(len(self._data) - 1, 0)
        ids = self._data if len(self._data) else np.zeros(1, np.int64)
        inputs = np.where(inside == self._starts[line], BOS, ids[np.clip(label - 1, 0, last)])
        labels = np.where(inside + 1 == self._starts[line + 1], EOS, ids[np.clip(label, 0, last)])
        labels[places >= len(self)] = PAD
        source = torch.full((len(begins), 1), EOS)
        sides = [torch.from_numpy(side.astype(np.int64)) for side in (inputs, labels)]
        return TrainingBatch(source, source != PAD, sides[0], sides[1], tuple(line[:, 0].tolist()))


class BlockStream(UpdateStream):
    """The updates of a language model that is trained on blocks at random offsets.

    An epoch has as many blocks as cover the text once. Its offsets are drawn anew, so a token may be in several of its
    blocks, or in none. All updates have equally many tokens.
    """

    def __init__(self, dataset: ParallelDataset, tokenizer: Tokenizer, recipe: Recipe, world: World) -> None:
        self.blocks = TokenBlocks.over(dataset.target, recipe.data.block_tokens)
        super().__init__(dataset, tokenizer, recipe, world)
        self.target_lengths = np.broadcast_to(np.int64(self.blocks.size), len(self.blocks))  # by offset, not by line

    @property
    def summary(self) -> str:
        return f"an epoch has {len(self.blocks):,} tokens in blocks of {self.blocks.size:,}"

    def plan(self, epoch: int) -> list[list[np.ndarray]]:
        """Return the updates of an epoch, each a list of batches of offsets; all processes get the same."""
        random = np.random.default_rng((self.recipe.seed, epoch))
        size, training = self.blocks.size, self.recipe.training
        an_update = max(1, round(training.update_tokens / size))
        updates = max(1, len(self.blocks) // (an_update * size))
        offsets = random.integers(0, max(1, len(self.blocks) - size + 1), (updates, an_update))
        batches = -(-an_update // max(1, training.batch_tokens // size))
        return [np.array_split(update, batches) for update in offsets]

    def load(self, indices: np.ndarray, epoch: int) -> TrainingBatch:
        """Return the blocks that begin at these offsets."""
        return self.blocks.batch(indices)

    def _fitting(self) -> np.ndarray:
        """Return all lines: a line may be longer than a block."""
        return np.ones(len(self.dataset), np.bool_)


def update_stream(dataset: ParallelDataset, tokenizer: Tokenizer, recipe: Recipe, world: World) -> UpdateStream:
    """Return the updates of a recipe: of blocks if it has `data.block_tokens`, else of sentences."""
    stream = BlockStream if recipe.data.block_tokens else UpdateStream
    return stream(dataset, tokenizer, recipe, world)
