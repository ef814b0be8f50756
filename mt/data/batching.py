"""Batches by token budget, in an order that a seed decides; the position in the data travels with each update.

An update is what one optimiser step sees: batches from one length bucket each, about `update_tokens` target tokens
together. It is the same whatever the number of processes, which share its batches out among them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

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
    """The next update to train on: number `update` of epoch `epoch`, both counted from 0."""

    epoch: int = 0
    update: int = 0


@dataclass(frozen=True)
class Batch:
    """B pairs, padded. `target` begins with BOS, `labels` is the same shifted and ends with EOS."""

    source: Tensor  # [B, S]
    source_mask: Tensor  # [B, S], True on tokens
    target: Tensor  # [B, T]
    labels: Tensor  # [B, T], PAD where there is nothing to predict
    indices: tuple[int, ...]  # of the pairs in the data set

    def to(self, device: torch.device) -> "Batch":
        return Batch(
            source=self.source.to(device, non_blocking=True),
            source_mask=self.source_mask.to(device, non_blocking=True),
            target=self.target.to(device, non_blocking=True),
            labels=self.labels.to(device, non_blocking=True),
            indices=self.indices,
        )

    def twice(self) -> "Batch":
        """Each pair again, after all the others."""
        source, mask, target, labels = (
            torch.cat((each, each)) for each in (self.source, self.source_mask, self.target, self.labels)
        )
        return Batch(source, mask, target, labels, self.indices)


@dataclass(frozen=True)
class Update:
    """This process's batches of one update, and the position after it; if the model is sharded, as many for each."""

    batches: list[Batch]
    next_position: Position


def pad(sequences: Sequence[Sequence[int]]) -> Tensor:
    """[B, longest], filled with PAD."""
    padded = np.full((len(sequences), max(map(len, sequences))), PAD, np.int64)
    for row, sequence in zip(padded, sequences, strict=True):
        row[: len(sequence)] = sequence
    return torch.from_numpy(padded)


def make_batch(sources: Sequence[list[int]], targets: Sequence[list[int]], indices: np.ndarray) -> Batch:
    """Sources that end with EOS, and bare targets, as tensors."""
    source = pad(sources)
    return Batch(
        source,
        source != PAD,
        pad([[BOS, *target] for target in targets]),
        pad([[*target, EOS] for target in targets]),
        tuple(indices.tolist()),
    )


def plan_batches(
    source_lengths: np.ndarray, target_lengths: np.ndarray, batch_tokens: int, order: np.ndarray
) -> list[np.ndarray]:
    """Cut the pairs `order` into batches of like lengths with at most `batch_tokens` padded tokens on either side.

    Lengths count EOS. Pairs are sorted by their longer side, then by how much longer it is than the other, up and down
    in turn, so that a batch across two lengths still holds like pairs: half the padding of sorting by target and source
    (Multi30k). Pairs of equal lengths keep their order, so that a shuffled `order` mixes them; a pair longer than the
    budget is a batch alone.
    """
    longer = np.maximum(source_lengths, target_lengths)
    difference = np.where(longer % 2, source_lengths - target_lengths, target_lengths - source_lengths)
    by_length = order[np.lexsort((difference[order], longer[order]))]
    batches = []
    begin, longest = 0, 0
    for end, index in enumerate(by_length):
        widest = max(longest, int(source_lengths[index]), int(target_lengths[index]))
        if end > begin and widest * (end + 1 - begin) > batch_tokens:
            batches.append(by_length[begin:end])
            begin, widest = end, max(int(source_lengths[index]), int(target_lengths[index]))
        longest = widest
    if begin < len(by_length):
        batches.append(by_length[begin:])
    return batches


def group_into_updates(
    batches: Sequence[np.ndarray], target_lengths: np.ndarray, update_tokens: int
) -> list[list[np.ndarray]]:
    """Join batches, in order, into groups of about `update_tokens` target tokens; the last may hold fewer.

    A batch joins while at least half of it fits, so that groups come as near to the target as they can.
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


def shares(batches: Sequence[np.ndarray], target_lengths: np.ndarray, processes: int) -> list[list[np.ndarray]]:
    """The batches of an update for each process, about equally much for all.

    Fewer batches than processes are cut until each has its part of every one; for one process they stay as they are.
    """
    if processes == 1:
        return [list(batches)]
    parts = list(batches)
    if len(batches) < processes:
        parts = [part for batch in batches for part in np.array_split(batch, min(processes, len(batch)))]
    parts.sort(key=lambda part: -int(target_lengths[part].sum()))
    dealt: list[list[np.ndarray]] = [[] for _ in range(processes)]
    loads = [0] * processes
    for part in parts:  # the largest that is left, to whom has least
        least = loads.index(min(loads))
        dealt[least].append(part)
        loads[least] += int(target_lengths[part].sum())
    return dealt


class TrainingBatches:
    """The endless stream of a run's updates, from a position on, for one process."""

    def __init__(self, dataset: ParallelDataset, tokenizer: Tokenizer, recipe: Recipe, world: World) -> None:
        """Raises DataError if no pair is short enough, TokenizerError if a corpus has a mark that it lacks."""
        self.dataset = dataset
        self.tokenizer = tokenizer
        self.recipe = recipe
        self.world = world
        self.tags = direction_tags(tokenizer, recipe.data.directions, recipe.directions)
        self.marks = [[tokenizer.mark(corpus.mark)] if corpus.mark else [] for corpus in recipe.data.train]
        marked = np.array([len(mark) for mark in self.marks])[dataset.corpus]
        self.source_lengths = dataset.source.lengths + 1 + max(map(len, self.tags)) + marked
        self.target_lengths = dataset.target.lengths + 1
        limit = min(recipe.data.max_tokens, recipe.model.max_length)
        fits = (self.source_lengths <= limit) & (self.target_lengths <= limit)
        self.usable = np.flatnonzero(fits)
        if not len(self.usable):
            raise DataError(
                f"each of the {len(dataset)} training pairs has over {limit} tokens on a side; "
                "accepted: pairs within data.max_tokens and model.max_length"
            )
        own = np.array([corpus.weight for corpus in recipe.data.train])[dataset.corpus[self.usable]]
        self.weights = pair_weights(own, dataset.direction[self.usable], recipe.data.temperature)
        [random] = np.random.default_rng(recipe.seed).spawn(1)  # another one than those of epochs
        self.turns = random.random(len(self.usable))

    def plan(self, epoch: int) -> list[list[np.ndarray]]:
        """The updates of an epoch as groups of batches of indices, the same in every process."""
        random = np.random.default_rng((self.recipe.seed, epoch))
        training = self.recipe.training
        budget = min(training.batch_tokens, training.update_tokens)
        pairs = np.repeat(self.usable, epoch_counts(self.weights, self.turns, epoch))
        batches = plan_batches(self.source_lengths, self.target_lengths, budget, random.permutation(pairs))
        shuffled = [batches[index] for index in random.permutation(len(batches))]
        return group_into_updates(shuffled, self.target_lengths, training.update_tokens)

    def updates(self, position: Position) -> Iterator[Update]:
        """Updates from `position` on, for ever."""
        epoch, first = position.epoch, position.update
        while True:
            planned = self.plan(epoch)
            for number in range(first, len(planned)):
                dealt = shares(planned[number], self.target_lengths, self.world.size)
                batches = [self.load(indices, epoch) for indices in dealt[self.world.rank]]
                if self.recipe.training.shard:
                    batches += [self.idle()] * (max(map(len, dealt)) - len(batches))
                last = number + 1 == len(planned)
                yield Update(batches, Position(epoch + 1, 0) if last else Position(epoch, number + 1))
            epoch, first = epoch + 1, 0

    def idle(self) -> Batch:
        """A batch of nothing to learn, for who has fewer than others: a sharded model runs in all processes or none."""
        batch = load_batch(self.dataset, self.tags, self.usable[:1])
        return replace(batch, labels=torch.full_like(batch.labels, PAD))

    def load(self, indices: np.ndarray, epoch: int) -> Batch:
        """The pairs `indices`; with BPE-dropout encoded anew, from a seed of the run, the epoch and the first index."""
        dropout = self.recipe.tokenizer.dropout
        if not dropout:
            return load_batch(self.dataset, self.tags, indices, self.marks)
        sides = []
        for number, (side, tokenizer) in enumerate((("source", self.tokenizer), ("target", self.tokenizer.target))):
            seed = int(np.random.SeedSequence((self.recipe.seed, epoch, int(indices[0]), number)).generate_state(1)[0])
            sides.append(tokenizer.encode_with_dropout(self.dataset.texts(side, indices), dropout, seed))
        limit = self.recipe.model.max_length - 2 - bool(self.recipe.data.marks)  # a tag, EOS, and a mark
        openings = source_openings(self.dataset, self.tags, indices, self.marks)
        sources = [[*opening, *ids[:limit], EOS] for opening, ids in zip(openings, sides[0], strict=True)]
        return make_batch(sources, [ids[:limit] for ids in sides[1]], indices)


def load_batch(
    dataset: ParallelDataset, tags: Sequence[list[int]], indices: np.ndarray, marks: Sequence[list[int]] = ()
) -> Batch:
    """The pairs `indices` as they were encoded, with tags by direction and, where there are any, marks by corpus."""
    openings = source_openings(dataset, tags, indices, marks)
    texts = (dataset.source[index].tolist() for index in indices)
    sources = [[*opening, *ids, EOS] for opening, ids in zip(openings, texts, strict=True)]
    return make_batch(sources, [dataset.target[index].tolist() for index in indices], indices)


def source_openings(
    dataset: ParallelDataset, tags: Sequence[list[int]], indices: np.ndarray, marks: Sequence[list[int]]
) -> list[list[int]]:
    """What stands before each source: the tag of its direction, then the mark of its corpus."""
    before = [tags[direction] for direction in dataset.direction[indices]]
    if not marks:
        return before
    return [[*tag, *marks[corpus]] for tag, corpus in zip(before, dataset.corpus[indices], strict=True)]


def direction_tags(tokenizer: Tokenizer, directions: Sequence[str], known: Sequence[str] = ()) -> list[list[int]]:
    """What stands before a source, for each direction: its target's tag, or nothing if the model has one direction.

    `known` are all directions of the model, if it has others. That of a language model is its language.
    """
    return [tokenizer.opening(direction.split("-")[-1], known or directions) for direction in directions]
