"""Blocks of consecutive tokens of a text, for language models.

The text is one sequence of predictions, each with an input and a label. A line of n tokens has n + 1 predictions: the
inputs are BOS and the tokens, the labels are the tokens and EOS. A block is a section of this sequence, which may
contain several lines: the tokens of a line attend to the earlier lines of the block. For the lines "The" and "A":

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
    """Blocks of `size` predictions of a text. The token ids of line i are data[offsets[i] : offsets[i + 1]]."""

    def __init__(self, data: np.ndarray, offsets: np.ndarray, size: int) -> None:
        self.size = size
        self._data = data
        self._starts = offsets + np.arange(len(offsets))  # position of the first prediction of each line

    @classmethod
    def over(cls, lines: Ragged, size: int) -> "TokenBlocks":
        """Return the blocks of the text `lines`. The token ids are not copied."""
        return cls(lines.data, lines.offsets, size)

    @classmethod
    def of(cls, lines: Sequence[Sequence[int]], size: int) -> "TokenBlocks":
        """Return the blocks of the text `lines`, in which each line is a sequence of token ids."""
        offsets = np.cumsum([0, *map(len, lines)])
        return cls(np.array([id for line in lines for id in line], np.int64), offsets, size)

    def __len__(self) -> int:
        """Return the number of predictions in the text."""
        return int(self._starts[-1])

    @property
    def consecutive(self) -> np.ndarray:
        """Positions at which consecutive blocks begin. Together, these blocks contain each prediction once."""
        return np.arange(0, len(self), self.size)

    def batch(self, begins: np.ndarray) -> TrainingBatch:
        """Return the batch of the blocks that begin at the positions `begins`.

        If a block extends beyond the end of the text, the remaining labels are PAD. The field `indices` of the batch
        has the index of the line in which each block begins. Each source is a single EOS.
        """
        places = begins[:, None] + np.arange(self.size)
        inside = np.minimum(places, len(self) - 1)
        line = np.searchsorted(self._starts, inside, "right") - 1
        label = inside - line  # index of the label in `data`, which has no EOS; where EOS is the label, it is replaced
        last = max(len(self._data) - 1, 0)
        ids = self._data if len(self._data) else np.zeros(1, np.int64)
        inputs = np.where(inside == self._starts[line], BOS, ids[np.clip(label - 1, 0, last)])
        labels = np.where(inside + 1 == self._starts[line + 1], EOS, ids[np.clip(label, 0, last)])
        labels[places >= len(self)] = PAD
        source = torch.full((len(begins), 1), EOS)
        sides = [torch.from_numpy(side.astype(np.int64)) for side in (inputs, labels)]
        return TrainingBatch.of(source, sides[0], sides[1], tuple(line[:, 0].tolist()))


class BlockStream(UpdateStream):
    """The updates for a language model that is trained on blocks at random positions of a text.

    An epoch has about as many tokens as the text. The positions are drawn anew in each epoch, so that a token may be in
    several blocks of an epoch or in none. All updates have the same number of tokens.
    """

    def __init__(self, dataset: ParallelDataset, tokenizer: Tokenizer, recipe: Recipe, world: World) -> None:
        self.blocks = TokenBlocks.over(dataset.target, recipe.data.block_tokens)
        super().__init__(dataset, tokenizer, recipe, world)
        self.target_lengths = np.broadcast_to(np.int64(self.blocks.size), len(self.blocks))  # index: offset

    @property
    def summary(self) -> str:
        return f"an epoch has {len(self.blocks):,} tokens in blocks of {self.blocks.size:,}"

    def plan(self, epoch: int) -> list[list[np.ndarray]]:
        """Return the updates of an epoch: for each update a list of batches, for each batch its block positions.

        The result is the same in all processes.
        """
        random = np.random.default_rng((self.recipe.seed, epoch))
        size, training = self.blocks.size, self.recipe.training
        an_update = max(1, round(training.update_tokens / size))
        updates = max(1, len(self.blocks) // (an_update * size))
        offsets = random.integers(0, max(1, len(self.blocks) - size + 1), (updates, an_update))
        batches = -(-an_update // max(1, training.batch_tokens // size))
        return [np.array_split(update, batches) for update in offsets]

    def load(self, indices: np.ndarray, epoch: int) -> TrainingBatch:
        """Return the batch of the blocks that begin at the positions `indices`."""
        return self.blocks.batch(indices)

    def _fitting(self) -> np.ndarray:
        """Return an array of True: all lines can be used, because a long line is divided among blocks."""
        return np.ones(len(self.dataset), np.bool_)


def update_stream(dataset: ParallelDataset, tokenizer: Tokenizer, recipe: Recipe, world: World) -> UpdateStream:
    """Return the updates of a recipe. They consist of blocks if `data.block_tokens` is set, otherwise of pairs."""
    stream = BlockStream if recipe.data.block_tokens else UpdateStream
    return stream(dataset, tokenizer, recipe, world)
