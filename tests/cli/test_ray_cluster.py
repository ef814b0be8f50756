"""The dispatch of chunks to workers that die or never start, without Ray."""

import argparse
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
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

from mt.cli import ray_cluster
from mt.cli.ray_cluster import (
    CHUNK_LINES,
    MAX_DEATHS,
    MAX_OPEN_CHUNKS,
    Chunk,
    ChunkDispatcher,
    ChunkLostError,
    ClusterWorker,
    RayCluster,
    read_chunks,
)
from mt.cli.translate import parse
from mt.cli.translation_job import OutputLine
from mt.data.corpus import Fault
from mt.errors import DataError, ModelError
from mt.text.terms import Terms
from tests.service.workers.test_fleet import other_weights

FROZEN = Path(__file__).resolve().parents[1] / "frozen" / "model"


@dataclass
class Workers:
    """Workers whose results arrive in random order, and which die at random or at a certain line."""

    random: Random
    size: int
    death_rate: float = 0.0  # at most MAX_DEATHS times a chunk
    deadly_line: str = ""
    absent: set[int] = field(default_factory=set)  # workers that never start
    started: dict[int, Chunk | None] = field(default_factory=dict)
    missing: set[int] = field(default_factory=set)  # results that never arrive
    deaths: Counter[int] = field(default_factory=Counter)  # by the first line of a chunk
    finished: list[int] = field(default_factory=list)  # first lines of the chunks, in order of completion
    refs: "count[int]" = field(default_factory=count)

    def start(self, worker: int, chunk: Chunk) -> int:
        assert worker not in self.absent
        return self._ref(chunk)

    def ping(self, worker: int) -> int:
        ref = self._ref(None)
        if worker in self.absent:
            self.missing.add(ref)
        return ref

    def wait(self, refs: Sequence[int]) -> int:
        return self.random.choice([ref for ref in refs if ref not in self.missing])

    def result(self, ref: int) -> list[OutputLine]:
        chunk = self.started.pop(ref)
        if chunk is None:
            return []
        dies = self.deaths[chunk.first] < MAX_DEATHS and self.random.random() < self.death_rate
        if dies or self.deadly_line in chunk.lines:
            self.deaths[chunk.first] += 1
            raise ChunkLostError
        self.finished.append(chunk.first)
        return [OutputLine(f"{chunk.first + i} {line}", "", 1) for i, line in enumerate(chunk.lines)]

    def _ref(self, chunk: Chunk | None) -> int:
        ref = next(self.refs)
        self.started[ref] = chunk
        return ref


def translated(workers: Workers, lines: int, chunk_size: int) -> Iterator[str]:
    """Texts of the numbers 0 to `lines`, translated by the workers in chunks."""
    chunks = read_chunks(map(str, range(lines)), first=1, size=chunk_size)
    return (line.text for line in ChunkDispatcher(chunks, workers).lines())


def expected(lines: int) -> list[str]:
    return [f"{number + 1} {number}" for number in range(lines)]


def test_chunks_are_consecutive() -> None:
    fault = Fault("line 3 is bad")
    assert list(read_chunks(["a", "b", fault, "c", "d"], first=7, size=2)) == [
        Chunk(7, ("a", "b")),
        Chunk(9, (fault, "c")),
        Chunk(11, ("d",)),
    ]
    assert list(read_chunks([], first=1)) == []


def test_lines_before_the_end_of_a_broken_file_come_first() -> None:
    chunks = read_chunks(["a", "b", "c", Fault("cut short", fatal=True)], first=1, size=2)
    lines = ChunkDispatcher(chunks, Workers(Random(1), 2)).lines()
    assert [next(lines).text for _ in range(3)] == ["1 a", "2 b", "3 c"]
    with pytest.raises(DataError, match="cut short"):
        next(lines)


@given(
    st.integers(0, 60),
    st.integers(1, 7),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.2, 1.0]),
    st.randoms(use_true_random=False),
)
def test_each_line_once_and_in_order(lines: int, size: int, number: int, death_rate: float, random: Random) -> None:
    workers = Workers(random, number, death_rate)
    assert list(translated(workers, lines, size)) == expected(lines)
    assert sorted(workers.finished) == list(range(1, lines + 1, size))


def test_other_workers_replace_those_that_never_start() -> None:
    assert list(translated(Workers(Random(1), 3, absent={0, 2}), 100, 3)) == expected(100)


def test_lines_that_kill_workers_are_named_after_the_lines_before_them() -> None:
    workers = Workers(Random(1), 3, deadly_line="5")
    done: list[str] = []
    with pytest.raises(DataError, match=rf"lines 5 to 6: {MAX_DEATHS + 1} workers"):
        done.extend(translated(workers, 100, 2))
    assert len(workers.finished) < 50


def test_the_number_of_open_chunks_is_bounded() -> None:
    workers = Workers(Random(1), 3)
    lines = translated(workers, 1000, 1)
    workers.missing.add(6)  # the first chunk, after two pings to each of three workers
    with pytest.raises(IndexError):  # of `wait`: nothing else can arrive
        next(lines)
    assert len(workers.finished) == 3 * MAX_OPEN_CHUNKS - 1


class RayActorError(Exception):
    """Error of Ray, like the next two."""


class ObjectLostError(Exception):
    pass


class RayTaskError(Exception):
    pass


@dataclass
class Ray:
    """A Ray in which a call runs when its result is fetched."""

    lost: Exception | None = None

    def wait(self, refs: list[Any], num_returns: int) -> Any:
        return refs[:1], refs[1:]

    def get(self, ref: Any) -> Any:
        if self.lost:
            raise self.lost
        return ref()


def use_ray(monkeypatch: pytest.MonkeyPatch, ray: Ray) -> None:
    monkeypatch.setattr(ray_cluster, "ray", ray)
    for error in (RayActorError, ObjectLostError, RayTaskError):
        monkeypatch.setattr(ray_cluster, error.__name__, error, raising=False)


@pytest.mark.parametrize("error", [RayActorError, ObjectLostError])
def test_a_result_that_is_lost_with_its_machine_is_a_lost_chunk(
    monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """Ray keeps a large result on the machine of its worker until it is fetched."""
    use_ray(monkeypatch, Ray(lost=error()))
    with pytest.raises(ChunkLostError):
        RayCluster(argparse.Namespace(), Terms()).result("ref")


def worker(model: Path, dtype: str = "float32") -> ClusterWorker:
    return ClusterWorker(parse([str(model), "--device", "cpu", "--threads", "1", "--dtype", dtype]), Terms())


@dataclass
class Actor:
    """A ClusterWorker behind Ray's interface."""

    worker: ClusterWorker

    def __getattr__(self, name: str) -> Any:
        call = SimpleNamespace(remote=lambda *arguments: partial(getattr(self.worker, name), *arguments))
        return SimpleNamespace(remote=call.remote, options=lambda max_task_retries: call)


def test_machines_with_another_model_or_precision_refuse_and_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(FROZEN, tmp_path / "model")
    other_weights(tmp_path / "model", 0.9)
    use_ray(monkeypatch, Ray())

    def lines(*workers: ClusterWorker) -> int:
        cluster = RayCluster(argparse.Namespace(), Terms())
        cluster._actors = [Actor(each) for each in workers]
        return len(list(cluster.translate(iter([""] * (CHUNK_LINES + 1)), 1, interactive=False)))

    first = worker(FROZEN)
    assert lines(first, worker(FROZEN)) == CHUNK_LINES + 1
    heading = f"machine {node()} would translate differently from the first machine:\n  - "
    with pytest.raises(ModelError, match=rf"{heading}models is \['\w+'\]; accepted: \['\w+'\], the value on the first"):
        lines(first, worker(tmp_path / "model"))
    with pytest.raises(ModelError, match=rf"{heading}dtype is bfloat16; accepted: float32, the value on .*$"):
        lines(first, worker(FROZEN, "bfloat16"))
