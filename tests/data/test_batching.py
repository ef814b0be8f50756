from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from mt.config import Recipe
from mt.data import batching
from mt.data.batching import Position, TrainingBatch, Update, UpdateStream, plan_batches
from mt.data.dataset import PreparedData, load_prepared
from mt.data.preparation import prepare
from mt.distributed import World
from mt.errors import DataError

Build = Callable[..., Recipe]
Stream = Callable[..., UpdateStream]

ALONE = World()

TABLE = {"path": "table.tsv.xz", "columns": ("de", "en")}
PLAIN: dict[str, object] = {}
MIXED: dict[str, object] = {
    "train": (
        {"path": "plain.{language}", "weight": 0.5, "source_tag": "bt"},
        {"path": "packed.{language}.gz", "weight": 2},
        TABLE | {"weight": 3.7, "source_tag": "noised"},
    ),
    "temperature": 2.0,
}
MIXTURES = pytest.mark.parametrize("data", [PLAIN, MIXED], ids=["plain", "mixed"])

lengths = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=60)


@pytest.fixture
def stream(tmp_path: Path, tiny_recipe: Build) -> Stream:
    def build(directions: tuple[str, ...] = ("en-de",), world: World = ALONE, **sections: Any) -> UpdateStream:
        recipe = tiny_recipe(directions, **sections)
        data = load_prepared(prepare(recipe, tmp_path / "prepared"))
        return UpdateStream(data.train, data.tokenizer, recipe, world)

    return build


def same(one: TrainingBatch, other: TrainingBatch) -> bool:
    tensors = ((one.source, other.source), (one.target, other.target), (one.labels, other.labels))
    return one.indices == other.indices and all(torch.equal(a, b) for a, b in tensors)


def indices_of(updates: list[Update]) -> list[list[tuple[int, ...]]]:
    return [[batch.indices for batch in update.batches] for update in updates]


@pytest.mark.parametrize(
    ("source", "target", "tokens", "expected"),
    [
        # Sorted by the longer side: pair 3 (1, 1), 0 (2, 2), 2 (2, 3), 1 (6, 3), 4 (9, 9). Nine tokens a side:
        # 3 x 3 = 9 fit; a fourth would make 4 x 6 = 24; then 6 and 9 together make 18.
        ([2, 6, 2, 1, 9], [2, 3, 3, 1, 9], 9, [[3, 0, 2], [1], [4]]),
        # The longer side is 3: the source is longer by -1, 0, 2; then it is 4, and the source longer by 3, 0, -3.
        ([3, 3, 2, 4, 4, 1], [1, 3, 3, 1, 4, 4], 1000, [[2, 1, 0, 3, 4, 5]]),
    ],
)
def test_batches_by_hand(source: list[int], target: list[int], tokens: int, expected: list[list[int]]) -> None:
    planned = plan_batches(np.array(source), np.array(target), tokens, np.arange(len(source)))
    assert [batch.tolist() for batch in planned] == expected


@pytest.mark.parametrize(
    ("sizes", "processes", "expected"),
    [
        ([4, 2], 1, [[0, 1, 2, 3, 4, 5]]),
        ([4], 2, [[0, 1], [2, 3]]),  # cut
        ([1], 2, [[0], []]),  # cannot be
        ([4, 2], 3, [[0, 1], [2, 4], [3, 5]]),  # two for three: each has its part, and small parts come last
        ([2, 4, 1], 2, [[2, 3, 4, 5], [0, 1, 6]]),  # enough: the largest first, to whom has least
    ],
)
def test_shares_by_hand(sizes: list[int], processes: int, expected: list[list[int]]) -> None:
    batches = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    dealt = batching.split_among_ranks(batches, np.ones(sum(sizes), dtype=int), processes)
    assert [[int(index) for part in mine for index in part] for mine in dealt] == expected


@settings(max_examples=150)
@given(pairs=lengths, tokens=st.integers(1, 100))
def test_updates_come_near_their_target(pairs: list[tuple[int, int]], tokens: int) -> None:
    source, target = np.array(pairs).T
    batches = plan_batches(source, target, tokens, np.arange(len(pairs)))
    grouped = batching.group_into_updates(batches, target, tokens)
    assert [batch.tolist() for update in grouped for batch in update] == [batch.tolist() for batch in batches]
    for number, update in enumerate(grouped):
        sizes = [int(target[batch].sum()) for batch in update]
        assert sum(sizes[:-1]) + sizes[-1] / 2 <= tokens or len(sizes) == 1
        if number + 1 < len(grouped):
            assert sum(sizes) + int(target[grouped[number + 1][0]].sum()) / 2 > tokens


def test_an_epoch_has_every_usable_pair_once(stream: Stream) -> None:
    batches = stream(data={"max_tokens": 60})
    source, target = batches.dataset.source, batches.dataset.target
    usable = [index for index in range(50) if max(len(source[index]), len(target[index])) < 60]
    assert 0 < len(usable) < 50
    planned = batches.plan(0)
    assert sorted(index for update in planned for batch in update for index in batch.tolist()) == usable
    seen = indices_of(list(islice(batches.updates(Position()), len(planned))))
    assert sorted(index for update in seen for batch in update for index in batch) == usable


def times(batches: UpdateStream, epoch: int) -> Counter[int]:
    return Counter(int(index) for update in batches.plan(epoch) for batch in update for index in batch)


def test_epochs_have_pairs_by_weight_and_temperature(stream: Stream, tiny_corpus: Path) -> None:
    batches = stream(data={**MIXED, "temperature": 1})
    epochs = [times(batches, epoch) for epoch in range(10)]
    assert {epoch[index] for epoch in epochs for index in range(30)} == {0, 1}  # 0.5
    assert {epoch[index] for epoch in epochs for index in range(30, 45)} == {2}
    assert {epoch[index] for epoch in epochs for index in range(45, 50)} == {3, 4}  # 3.7
    together = sum(epochs, Counter[int]())
    assert [together[index] for index in range(50)] == [5] * 30 + [20] * 15 + [37] * 5
    assert 0 < sum(epochs[0][index] for index in range(30)) < 30, "not the whole corpus in every other epoch"
    assert epochs == [times(stream(data={**MIXED, "temperature": 1}), epoch) for epoch in range(10)]
    (tiny_corpus / "many.tsv").write_text("".join(f"{'one ' * n}\t{'eins ' * n}\n" for n in range(1, 17)))
    (tiny_corpus / "few.tsv").write_text("un deux\teins zwei\n")
    corpora = [{"path": f"{name}.tsv", "columns": (source, "de")} for name, source in (("many", "en"), ("few", "fr"))]
    for temperature, count, many, few in ((2, 20, 17, 68), (4, 24, 17, 136)):  # 4 to 1 and 2 to 1 in each epoch
        batches = stream(("en-de", "fr-de"), data={"train": corpora, "valid": corpora, "temperature": temperature})
        together = sum((times(batches, epoch) for epoch in range(count)), Counter[int]())
        assert [together[index] for index in range(17)] == [many] * 16 + [few]


def test_an_epoch_without_a_pair_is_passed_over(stream: Stream) -> None:
    batches = stream(data={"train": ({**TABLE, "weight": 0.001},)})
    planned = [epoch for epoch in range(1000) for _ in batches.plan(epoch)]
    assert len(planned) == 5, "in 1,000 epochs each pair comes once"
    updates = list(islice(batches.updates(Position()), 5))
    assert sorted(index for update in indices_of(updates) for batch in update for index in batch) == list(range(5))
    assert [update.next_position for update in updates] == [Position(epoch + 1) for epoch in planned]


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_a_tag_and_a_mark_stand_before_a_source(stream: Stream, dropout: float) -> None:
    batches = stream(("en-de", "de-en"), data=MIXED, tokenizer={"vocabulary_size": 330, "dropout": dropout})
    tokenizer, dataset, seen = batches.tokenizer, batches.dataset, set[tuple[int, int]]()
    marks = [[tokenizer.source_tag_id("bt")], [], [tokenizer.source_tag_id("noised")]]
    updates = islice(batches.updates(Position()), 2 * len(batches.plan(0)))
    for batch in (batch for update in updates for batch in update.batches):
        for row, index in enumerate(batch.indices):
            direction, corpus = int(dataset.direction[index]), int(dataset.corpus[index])
            prefix = [tokenizer.tag_id(("de", "en")[direction]), *marks[corpus]]
            ids = batch.source[row][batch.source_mask[row]].tolist()
            assert ids[: len(prefix)] == prefix and ids[-1] == 3
            assert [tokenizer.decode(ids[len(prefix) :])] == dataset.texts("source", [index])
            target = dataset.target[index].tolist()
            assert [tokenizer.decode(target)] == dataset.texts("target", [index]) or dropout
            length = int((batch.labels[row] != 0).sum())
            assert batch.target[row][:length].tolist() == [2, *batch.labels[row][: length - 1].tolist()]
            assert dropout or batch.labels[row][:length].tolist() == [*target, 3]
            assert dropout or len(ids) == batches.source_lengths[index], "tags and marks count"
            seen.add((direction, corpus))
    assert len(seen) == 6


def test_the_seed_and_the_epoch_decide_the_order(stream: Stream, tmp_path: Path, tiny_recipe: Build) -> None:
    def order(batches: UpdateStream, epoch: int) -> list[int]:
        return [index for update in batches.plan(epoch) for batch in update for index in batch.tolist()]

    batches = stream()
    assert order(batches, 0) == order(stream(), 0)
    assert order(batches, 0) != order(batches, 1)
    reseeded = UpdateStream(batches.dataset, batches.tokenizer, tiny_recipe().model_copy(update={"seed": 2}), World())
    assert order(reseeded, 0) != order(batches, 0)
    assert sorted(order(reseeded, 0)) == sorted(order(batches, 0)) == sorted(order(batches, 1))
    longer = np.maximum(batches.source_lengths, batches.target_lengths)
    longest = [int(longer[batch].max()) for update in batches.plan(0) for batch in update]
    assert longest != sorted(longest), "batches of all lengths come by turns"


@pytest.mark.parametrize(("data", "dropout"), [(PLAIN, 0.0), (MIXED, 0.3)], ids=["plain", "mixed"])
def test_from_any_position_the_same_follows(stream: Stream, dropout: float, data: dict[str, object]) -> None:
    def begun() -> UpdateStream:
        return stream(tokenizer={"vocabulary_size": 330, "dropout": dropout}, data=data)

    batches = begun()
    epoch = len(batches.plan(0))
    assert epoch > 3
    whole = list(islice(batches.updates(Position()), 2 * epoch + 2))
    assert whole[epoch - 1].next_position == Position(1, 0)
    for done in range(len(whole) - 1):
        resumed = list(islice(begun().updates(whole[done].next_position), 3))
        for update, expected in zip(resumed, whole[done + 1 :], strict=False):
            assert update.next_position == expected.next_position
            assert all(same(*pair) for pair in zip(update.batches, expected.batches, strict=True))


@MIXTURES
@pytest.mark.parametrize("size", [2, 3])
def test_processes_share_out_each_updates_batches(stream: Stream, size: int, data: dict[str, object]) -> None:
    updates = len(stream(data=data).plan(0)) + 2
    alone = list(islice(stream(data=data).updates(Position()), updates))
    streams = [stream(world=World(rank, size), data=data) for rank in range(size)]
    parts = [list(islice(part.updates(Position()), updates)) for part in streams]
    for number, update in enumerate(alone):
        share = [parts[rank][number] for rank in range(size)]
        assert {part.next_position for part in share} == {update.next_position}
        together = Counter(index for part in share for batch in part.batches for index in batch.indices)
        assert together == Counter(index for batch in update.batches for index in batch.indices)
        assert sum(together.values()) < size or all(part.batches for part in share)
        loads = [[int((batch.labels != 0).sum()) for batch in part.batches] for part in share]
        assert max(map(sum, loads)) - min(map(sum, loads)) <= max(map(max, filter(None, loads)))


def test_with_dropout_a_batch_is_decided_by_seed_epoch_and_place(stream: Stream) -> None:
    batches = stream(tokenizer={"vocabulary_size": 320, "dropout": 0.3})
    indices = batches.plan(0)[0][0]
    first = batches.load(indices, 0)
    assert same(first, batches.load(indices, 0))
    assert not same(first, batches.load(indices, 1))
    assert not same(first, batching.load_batch(batches.dataset, batches.tags, indices))
    reseeded = UpdateStream(batches.dataset, batches.tokenizer, batches.recipe.model_copy(update={"seed": 2}), World())
    assert not same(first, reseeded.load(indices, 0))


def test_no_pair_is_too_long(stream: Stream, tmp_path: Path, tiny_recipe: Build) -> None:
    shape = {"size": "tiny", "max_length": 40}
    tokenizer = {"vocabulary_size": 330, "dropout": 0.9}
    batches = stream(("en-de", "de-en"), tokenizer=tokenizer, model=shape, data=MIXED)
    longest = 0
    for update in islice(batches.updates(Position()), len(batches.plan(0))):
        for batch in update.batches:
            longest = max(longest, batch.source.shape[1], batch.target.shape[1])
            assert (batch.source[~batch.source_mask] == 0).all()
    assert 30 < longest <= 40
    recipe = tiny_recipe(data={"max_tokens": 1})
    data: PreparedData = load_prepared(prepare(recipe, tmp_path / "prepared"))
    with pytest.raises(DataError, match="each of the 50 training pairs has a source or target of more than 1 tokens"):
        UpdateStream(data.train, data.tokenizer, recipe, ALONE)
