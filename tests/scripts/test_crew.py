"""How chunks of lines are handed out and put in order again, whatever the workers do: without Ray."""

import argparse
import shutil
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from platform import node
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from translation import crew
from translation.crew import CHUNK, DEATHS, HELD, Chunk, Crew, Dispatch, Hand, WorkerDied, chunks
from translation.lines import Line

from mt.data.corpus import Fault
from mt.errors import DataError, ModelError
from mt.text.terms import Terms
from scripts.translate import parse
from tests.service.test_fleet import other_weights

FROZEN = Path(__file__).resolve().parents[1] / "frozen" / "model"


@dataclass
class Cluster:
    """Workers whose answers come in any order, and which die often, or always at one line."""

    random: Random
    deadly: float = 0.0  # how likely it is that a chunk's worker dies, but for once too often
    poison: str = ""
    dead: set[int] = field(default_factory=set)  # that never live again
    begun: dict[int, Chunk | None] = field(default_factory=dict)
    never: set[int] = field(default_factory=set)  # what does not arrive
    deaths: Counter[int] = field(default_factory=Counter)  # by a chunk's first line
    taken: list[int] = field(default_factory=list)  # the first lines of chunks, as they were taken
    refs: "count[int]" = field(default_factory=count)

    def workers(self, number: int) -> "list[Worker]":
        return [Worker(self, each) for each in range(number)]

    def next(self, refs: "list[int]") -> int:
        return self.random.choice([ref for ref in refs if ref not in self.never])

    def take(self, ref: int) -> list[Line]:
        chunk = self.begun.pop(ref)
        if chunk is None:
            return []
        unlucky = self.deaths[chunk.first] < DEATHS and self.random.random() < self.deadly
        if unlucky or self.poison in chunk.lines:
            self.deaths[chunk.first] += 1
            raise WorkerDied
        self.taken.append(chunk.first)
        return [Line(f"{chunk.first + place} {line}", "", 1) for place, line in enumerate(chunk.lines)]


@dataclass
class Worker:
    cluster: Cluster
    number: int

    def begin(self, chunk: Chunk) -> int:
        assert self.number not in self.cluster.dead
        return self._ref(chunk)

    def there(self) -> int:
        ref = self._ref(None)
        if self.number in self.cluster.dead:
            self.cluster.never.add(ref)
        return ref

    def _ref(self, chunk: Chunk | None) -> int:
        ref = next(self.cluster.refs)
        self.cluster.begun[ref] = chunk
        return ref


def test_chunks_follow_each_other() -> None:
    fault = Fault("line 3 is bad")
    assert list(chunks(["a", "b", fault, "c", "d"], first=7, size=2)) == [
        Chunk(7, ("a", "b")),
        Chunk(9, (fault, "c")),
        Chunk(11, ("d",)),
    ]
    assert list(chunks([], first=1)) == []


def test_what_precedes_the_end_of_a_broken_file_comes_first() -> None:
    given = chunks(["a", "b", "c", Fault("cut short", fatal=True)], first=1, size=2)
    cluster = Cluster(Random(1))
    found = Dispatch(given, cluster.workers(2), cluster).lines()
    assert [next(found).text for _ in range(3)] == ["1 a", "2 b", "3 c"]
    with pytest.raises(DataError, match="cut short"):
        next(found)


@given(
    st.integers(0, 60),
    st.integers(1, 7),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.2, 1.0]),
    st.randoms(use_true_random=False),
)
def test_each_line_once_and_in_order(lines: int, size: int, workers: int, deadly: float, random: Random) -> None:
    cluster = Cluster(random, deadly)
    given = chunks(map(str, range(lines)), first=1, size=size)
    found = [line.text for line in Dispatch(given, cluster.workers(workers), cluster).lines()]
    assert found == [f"{number + 1} {number}" for number in range(lines)]
    assert sorted(cluster.taken) == list(range(1, lines + 1, size))


def test_others_do_the_work_of_one_that_never_comes() -> None:
    cluster = Cluster(Random(1), dead={0, 2})
    found = Dispatch(chunks(map(str, range(100)), 1, size=3), cluster.workers(3), cluster).lines()
    assert [line.text for line in found] == [f"{number + 1} {number}" for number in range(100)]


def test_lines_that_kill_are_named_and_what_precedes_them_is_done() -> None:
    cluster = Cluster(Random(1), poison="5")
    found = Dispatch(chunks(map(str, range(100)), 1, size=2), cluster.workers(3), cluster).lines()
    done = []
    with pytest.raises(DataError, match=rf"lines 5 to 6: {DEATHS + 1} workers"):
        done.extend(line.text for line in found)
    assert len(cluster.taken) < 50


def test_what_waits_for_one_chunk_is_bounded() -> None:
    cluster = Cluster(Random(1))
    workers = cluster.workers(3)
    given = chunks(map(str, range(1000)), 1, size=1)
    found = Dispatch(given, workers, cluster).lines()
    cluster.never.update(range(6, 7))  # the first chunk: before it, each of six places asks whether its worker is there
    with pytest.raises(IndexError):  # of the double: nothing else can arrive
        next(found)
    assert len(cluster.taken) == 3 * HELD - 1


class RayActorError(Exception):
    """Ray's, as the next ones."""


class ObjectLostError(Exception):
    pass


class RayTaskError(Exception):
    pass


@dataclass
class Ray:
    """Ray, where what a Hand is told is done when its result is fetched."""

    lost: Exception | None = None

    def wait(self, refs: list[Any], num_returns: int) -> Any:
        return refs[:1], refs[1:]

    def get(self, ref: Any) -> Any:
        if self.lost:
            raise self.lost
        return ref()


def on_ray(monkeypatch: pytest.MonkeyPatch, ray: Ray) -> None:
    monkeypatch.setattr(crew, "ray", ray)
    for error in (RayActorError, ObjectLostError, RayTaskError):
        monkeypatch.setattr(crew, error.__name__, error, raising=False)


@pytest.mark.parametrize("error", [RayActorError, ObjectLostError])
def test_a_result_that_is_lost_with_its_machine_is_a_death(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """Ray leaves a large one where it was made until it is fetched."""
    on_ray(monkeypatch, Ray(lost=error()))
    with pytest.raises(WorkerDied):
        Crew(argparse.Namespace(), Terms()).take("ref")


def hand(model: Path, dtype: str = "float32") -> Hand:
    return Hand(parse([str(model), "--device", "cpu", "--threads", "1", "--dtype", dtype]), Terms())


@dataclass
class Actor:
    """A Hand on a machine."""

    hand: Hand

    def __getattr__(self, name: str) -> Any:
        told = SimpleNamespace(remote=lambda *given: partial(getattr(self.hand, name), *given))
        return SimpleNamespace(remote=told.remote, options=lambda max_task_retries: told)


def test_machines_with_another_model_or_precision_refuse_and_say_who_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(FROZEN, tmp_path / "model")
    other_weights(tmp_path / "model", 0.9)
    on_ray(monkeypatch, Ray())

    def lines(*hands: Hand) -> int:
        found = Crew(argparse.Namespace(), Terms())
        found._hands = [Actor(each) for each in hands]
        return len(list(found.lines(iter([""] * (CHUNK + 1)), 1, typed=False)))

    first = hand(FROZEN)
    assert lines(first, hand(FROZEN)) == CHUNK + 1
    heading = f"machine {node()} would translate otherwise than the first one:\n  - "
    with pytest.raises(ModelError, match=rf"{heading}model.safetensors is \w+; accepted: \w+, as where the first"):
        lines(first, hand(tmp_path / "model"))
    with pytest.raises(ModelError, match=rf"{heading}dtype is bfloat16; accepted: float32, as where .*$"):
        lines(first, hand(FROZEN, "bfloat16"))
