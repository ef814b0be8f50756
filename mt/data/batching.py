"""Training batches of a limited number of tokens, grouped into updates. The order of the pairs depends on a seed.

An update is the input of one optimizer step: batches of pairs of similar lengths, with about `update_tokens` target
tokens in total. The updates do not depend on the number of processes, which divide the batches of each update among
them. Shapes: B pairs, S source length, T target length.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from mt.config import Recipe
from mt.data.dataset import ParallelDataset
from mt.data.mixing import epoch_counts, pair_weights
from mt.distributed import World
from mt.errors import DataError
from mt.tokenizer import BOS, EOS, PAD, Tokenizer


@dataclass(frozen=True)
class Position:
    """Position in the data of the next update: index of the epoch, and index of the update in this epoch, from 0."""

    epoch: int = 0
    update: int = 0


@dataclass(frozen=True)
class TrainingBatch:
    """Padded sentence pairs. Each row of `target` is BOS and the target, each row of `labels` the target and EOS."""

    source: Tensor  # [B, S]
    source_mask: Tensor  # [B, S], True on tokens
    target: Tensor  # [B, T]
    labels: Tensor  # [B, T], PAD at positions without a label
    label_indices: Tensor  # int64 [N], indices of the labels in [B * T]; a GPU would wait to find them
    indices: tuple[int, ...]  # indices of the pairs in the dataset

    @classmethod
    def of(cls, source: Tensor, target: Tensor, labels: Tensor, indices: tuple[int, ...]) -> "TrainingBatch":
        """Return a batch of `source` [B, S], `target` [B, T] and `labels` [B, T], and compute the other fields."""
        label_indices = (labels != PAD).flatten().nonzero()[:, 0]
        return cls(source, source != PAD, target, labels, label_indices, indices)

    def to(self, device: torch.device) -> "TrainingBatch":
        return self.with_tensors(lambda tensor: tensor.to(device, non_blocking=True))

    def with_tensors(self, function: Callable[[Tensor], Tensor]) -> "TrainingBatch":
        """Return a copy of this batch in which each tensor is replaced by `function(tensor)`."""
        source, source_mask, target = function(self.source), function(self.source_mask), function(self.target)
        labels, label_indices = function(self.labels), function(self.label_indices)
        return TrainingBatch(source, source_mask, target, labels, label_indices, self.indices)


@dataclass(frozen=True)
class Update:
    """The batches of one update that one process trains on, and the position of the next update."""

    batches: list[TrainingBatch]
    next_position: Position


Rows = tuple[np.ndarray, np.ndarray]
"""The tokens of several rows, one row after another, and the number of tokens in each row."""


def rows_of(sequences: Sequence[Sequence[int]]) -> Rows:
    lengths = np.fromiter(map(len, sequences), np.int64, len(sequences))
    return np.fromiter(chain.from_iterable(sequences), np.int64, int(lengths.sum())), lengths


def pad(*parts: Rows) -> Tensor:
    """Return one row for each row of `parts`: the tokens of the first part, then those of the second, and so on.

    All parts have the same number of rows. Shorter rows are padded at the end with PAD.
    """
    widths = np.sum([lengths for _, lengths in parts], axis=0)
    padded = np.full((len(widths), widths.max()), PAD, np.int64)
    begins = np.arange(len(widths)) * padded.shape[1]  # in `padded`, of the present part
    for tokens, lengths in parts:
        shift = begins - np.cumsum(lengths) + lengths
        padded.ravel()[np.repeat(shift, lengths) + np.arange(len(tokens))] = tokens
        begins += lengths
    return torch.from_numpy(padded)


def make_batch(sources: Sequence[list[int]], targets: Sequence[list[int]], indices: np.ndarray) -> TrainingBatch:
    """Return a batch of token ids. Each of `sources` must end with EOS; `targets` must have neither BOS nor EOS.

    `indices` are the indices of the pairs in the dataset.
    """
    return _batch(pad(rows_of(sources)), rows_of(targets), indices)


def _batch(source: Tensor, target: Rows, indices: np.ndarray) -> TrainingBatch:
    """Return the batch of `source` [B, S] and of targets without BOS and EOS."""
    ones = np.ones_like(target[1])
    labels = pad(target, (ones * EOS, ones))
    return TrainingBatch.of(source, pad((ones * BOS, ones), target), labels, tuple(indices.tolist()))


def plan_batches(
    source_lengths: np.ndarray, target_lengths: np.ndarray, batch_tokens: int, order: np.ndarray
) -> list[np.ndarray]:
    """Divide pairs into batches of similar lengths. Each batch is an array of pair indices.

    `order` has the indices of the pairs. The sources of a batch have at most `batch_tokens` tokens, including padding
    and EOS, and so do the targets. A pair with more tokens is a batch by itself.

    The pairs are sorted by the length of their longer text, then by the difference of source and target length. The
    difference ascends if the length is even and descends if it is odd, so that neighbours of different lengths are
    similar. On Multi30k, there is half as much padding as after sorting by target and source length. Pairs of equal
    lengths keep their order in `order`.
    """
    longer = np.maximum(source_lengths, target_lengths)
    difference = np.where(longer % 2, source_lengths - target_lengths, target_lengths - source_lengths)
    by_length = order[np.lexsort((difference[order], longer[order]))]
    batches = []
    begin, longest = 0, 0
    for end, length in enumerate(longer[by_length].tolist()):
        widest = max(longest, length)
        if end > begin and widest * (end + 1 - begin) > batch_tokens:
            batches.append(by_length[begin:end])
            begin, widest = end, length
        longest = widest
    if begin < len(by_length):
        batches.append(by_length[begin:])
    return batches


def group_into_updates(
    batches: Sequence[np.ndarray], target_lengths: np.ndarray, update_tokens: int
) -> list[list[np.ndarray]]:
    """Group consecutive batches into updates of about `update_tokens` target tokens; the last update may have fewer.

    A batch is added to the current update if at least half of its tokens fit, otherwise it begins the next update.
    """
    updates: list[list[np.ndarray]] = []
    tokens = update_tokens
    for batch in batches:
        size = int(target_lengths[batch].sum())
        if tokens + size / 2 > update_tokens:
            updates.append([])
            tokens = 0
        updates[-1].append(batch)
        tokens += size
    return updates


def split_among_ranks(
    batches: Sequence[np.ndarray], target_lengths: np.ndarray, processes: int
) -> list[list[np.ndarray]]:
    """Divide the batches of an update among processes. Return the list of batches of each process.

    All processes get about the same number of target tokens. If there are fewer batches than processes, each batch is
    first split into as many parts as there are processes.
    """
    if processes == 1:
        return [list(batches)]
    parts = list(batches)
    if len(batches) < processes:
        parts = [part for batch in batches for part in np.array_split(batch, min(processes, len(batch)))]
    parts.sort(key=lambda part: -int(target_lengths[part].sum()))
    divided: list[list[np.ndarray]] = [[] for _ in range(processes)]
    loads = [0] * processes
    for part in parts:  # the largest remaining part goes to the process with the fewest tokens
        lightest = loads.index(min(loads))
        divided[lightest].append(part)
        loads[lightest] += int(target_lengths[part].sum())
    return divided


class UpdateStream:
    """The endless sequence of updates that one process of a run trains on."""

    def __init__(self, dataset: ParallelDataset, tokenizer: Tokenizer, recipe: Recipe, world: World) -> None:
        """Select the pairs that are short enough for the model, and compute how often each occurs in an epoch.

        Raises: DataError if all pairs are too long, TokenizerError if the tokenizer lacks a source tag of the recipe.
        """
        self.dataset = dataset
        self.tokenizer = tokenizer
        self.recipe = recipe
        self.world = world
        self.tags = direction_prefixes(tokenizer, recipe)
        self.source_tags = [
            [tokenizer.source_tag_id(corpus.source_tag)] if corpus.source_tag else [] for corpus in recipe.data.train
        ]
        tag_lengths = np.array([len(tag) for tag in self.source_tags])[dataset.corpus]
        self.source_lengths = dataset.source.lengths + 1 + max(map(len, self.tags)) + tag_lengths
        self.target_lengths = dataset.target.lengths + 1
        self.usable = np.flatnonzero(self._fitting())
        weights = np.array([corpus.weight for corpus in recipe.data.train])[dataset.corpus[self.usable]]
        self.weights = pair_weights(weights, dataset.direction[self.usable], recipe.data.temperature)
        [random] = np.random.default_rng(recipe.seed).spawn(1)  # independent of the generators that `plan` makes
        self.phases = random.random(len(self.usable))

    @property
    def summary(self) -> str:
        """Text with the number of pairs that are short enough and, if it differs, the number of pairs in an epoch."""
        usable, epoch = len(self.usable), round(float(self.weights.sum()))
        text = f"{usable:,} of {len(self.dataset):,} pairs are short enough"
        return text + (f", an epoch has about {epoch:,}" if epoch != usable else "")

    def _fitting(self) -> np.ndarray:
        """Return a boolean array, True for each pair of the dataset that is short enough for the model.

        Raises: DataError if all pairs are too long.
        """
        limit = min(self.recipe.data.max_tokens, self.recipe.model.max_length)
        fits: np.ndarray = (self.source_lengths <= limit) & (self.target_lengths <= limit)
        if not fits.any():
            raise DataError(
                f"each of the {len(self.dataset)} training pairs has a source or target of more than {limit} tokens; "
                f"accepted: at most {limit}, the smaller of data.max_tokens and model.max_length"
            )
        return fits

    def plan(self, epoch: int) -> list[list[np.ndarray]]:
        """Return the updates of an epoch: for each update a list of batches, for each batch the indices of its pairs.

        The result is the same in all processes.
        """
        random = np.random.default_rng((self.recipe.seed, epoch))
        training = self.recipe.training
        budget = min(training.batch_tokens, training.update_tokens)
        pairs = np.repeat(self.usable, epoch_counts(self.weights, self.phases, epoch))
        batches = plan_batches(self.source_lengths, self.target_lengths, budget, random.permutation(pairs))
        shuffled = [batches[index] for index in random.permutation(len(batches))]
        return group_into_updates(shuffled, self.target_lengths, training.update_tokens)

    def updates(self, position: Position) -> Iterator[Update]:
        """Yield the updates from `position` on, epoch after epoch, without end."""
        epoch, first = position.epoch, position.update
        while True:
            planned = self.plan(epoch)
            for number in range(first, len(planned)):
                divided = split_among_ranks(planned[number], self.target_lengths, self.world.size)
                batches = [self.load(indices, epoch) for indices in divided[self.world.rank]]
                last = number + 1 == len(planned)
                yield Update(batches, Position(epoch + 1, 0) if last else Position(epoch, number + 1))
            epoch, first = epoch + 1, 0

    def load(self, indices: np.ndarray, epoch: int) -> TrainingBatch:
        """Return the batch of the pairs with these indices.

        With BPE-dropout, the texts are encoded again. The seed depends on the seed of the recipe, `epoch` and the first
        index.
        """
        dropout = self.recipe.tokenizer.dropout
        if not dropout:
            return load_batch(self.dataset, self.tags, indices, self.source_tags)
        sides = []
        for number, (side, tokenizer) in enumerate((("source", self.tokenizer), ("target", self.tokenizer.target))):
            seed = int(np.random.SeedSequence((self.recipe.seed, epoch, int(indices[0]), number)).generate_state(1)[0])
            sides.append(tokenizer.encode_with_dropout(self.dataset.texts(side, indices), dropout, seed))
        limit = self.recipe.model.max_length - 2 - bool(self.recipe.data.source_tags)  # tag, EOS, source tag
        prefixes = source_prefixes(self.dataset, self.tags, indices, self.source_tags)
        sources = [[*prefix, *ids[:limit], EOS] for prefix, ids in zip(prefixes, sides[0], strict=True)]
        return make_batch(sources, [ids[:limit] for ids in sides[1]], indices)


def load_batch(
    dataset: ParallelDataset, tags: Sequence[list[int]], indices: np.ndarray, source_tags: Sequence[list[int]] = ()
) -> TrainingBatch:
    """Return the batch of the pairs with these indices. The parameters are those of `source_prefixes`."""
    prefixes, ones = rows_of(source_prefixes(dataset, tags, indices, source_tags)), np.ones(len(indices), np.int64)
    source = pad(prefixes, dataset.source.take(indices), (ones * EOS, ones))
    return _batch(source, dataset.target.take(indices), indices)


def source_prefixes(
    dataset: ParallelDataset, tags: Sequence[list[int]], indices: np.ndarray, source_tags: Sequence[list[int]]
) -> list[list[int]]:
    """Return the ids that precede the source of each of the pairs `indices`.

    `tags` has the ids for each direction. `source_tags` has further ids for each corpus, and may be empty.
    """
    prefixes = [tags[direction] for direction in dataset.direction[indices]]
    if not source_tags:
        return prefixes
    return [[*tag, *source_tags[corpus]] for tag, corpus in zip(prefixes, dataset.corpus[indices], strict=True)]


def direction_prefixes(tokenizer: Tokenizer, recipe: Recipe) -> list[list[int]]:
    """Return the ids that precede each source of a direction, for each direction of the recipe.

    A source is preceded by the tag of the target language, if the tokenizer has such tags, otherwise by nothing.
    """
    directions = recipe.data.directions
    return [tokenizer.source_prefix(pair.source, pair.target, recipe.directions) for pair in directions]
