"""Ours as a training contender: the trainer of `scripts/train.py`, in as many processes as it starts on a CPU."""

import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path

import torch
import torch.distributed as dist

from mt.data.batching import Position
from mt.data.dataset import Prepared, load_prepared
from mt.distributed import World, accompanied, gather_objects, joined
from mt.recipe import load_recipe
from mt.tokenizer import Tokenizer
from mt.training.memory import keep_freed_memory
from mt.training.trainer import Trainer

from .harness import cpu_seconds
from .train_contender import Course, Way, attend


class Wide(Tokenizer):
    """A tokenizer whose model has more rows than pieces, where the corpus is too small for so many pieces."""

    def __init__(self, like: Tokenizer, rows: int) -> None:
        self.__dict__.update(like.__dict__)
        self.rows = rows

    def __len__(self) -> int:
        return self.rows


class Ours:
    """One process of ours; the first tells the others when to go on."""

    def __init__(self, course: Course, way: Way, world: World, folder: Path) -> None:
        torch.set_num_threads(way.threads)
        keep_freed_memory()
        self.course, self.world = course, world
        recipe = load_recipe(Path(course.recipe), [f"training.precision={way.precision}", "training.optimizer=adam"])
        data: Prepared = load_prepared(Path(course.prepared))
        data = replace(data, tokenizer=Wide(data.tokenizer, course.vocabulary))
        self.trainer = Trainer(recipe, data, folder, torch.device("cpu"), world)
        self.updates = self.trainer.batches.updates(Position())
        self.update = 0
        self.used = [0.0] * world.size

    def learn(self) -> tuple[float, int]:
        self.used = gather_objects(self.world, cpu_seconds())  # the others wait here between lessons
        self.update += 1
        update = next(self.updates)
        totals = self.trainer.learn(update, self.course.rate_of(self.update))
        assert not totals.problem, totals.problem
        self.trainer.progress.position = update.next_position
        return totals.loss, int(totals.tokens)

    def cpu_seconds(self) -> float:
        """Of all processes; the others' as of the beginning of the last update."""
        return cpu_seconds() + sum(self.used[1:])


def follow(course: Course, way: Way) -> None:
    """The life of every process but the first: it ends with the first's last lesson, when the connection ends."""
    with joined("cpu") as world, tempfile.TemporaryDirectory() as folder:
        ours = Ours(course, way, world, Path(folder))
        try:
            while True:
                ours.learn()
        except (RuntimeError, dist.DistBackendError):
            return


def main() -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))

        def load(course: Course, way: Way) -> Ours:
            source = (
                f"from scripts.benchmarks.train_ours import *; follow(Course(**{asdict(course)}), Way(**{asdict(way)}))"
            )
            command = [sys.executable, "-c", source]
            stack.enter_context(accompanied(command, way.processes))
            return Ours(course, way, stack.enter_context(joined("cpu")), folder)

        attend(load)


if __name__ == "__main__":
    main()
