"""Training contender: the trainer of `mt-service train`, on a GPU or in one or several processes on a CPU."""

import sys
import tempfile
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import torch
import torch.distributed as dist

from mt.data.batching import Position
from mt.data.dataset import load_prepared
from mt.distributed import World, gather_objects, join_process_group, spawn_ranks
from mt.engine.devices import select_device
from mt.recipe import load_recipe
from mt.training.loader import prefetch
from mt.training.memory import keep_freed_memory
from mt.training.trainer import Trainer

from .processes import ROOT, cpu_seconds
from .train_task import TrainSettings, TrainTask, run_learner


class OurTrainer:
    """One process of our trainer. In `learn`, the processes of rank 1 or higher wait until rank 0 begins an update."""

    def __init__(self, task: TrainTask, settings: TrainSettings, world: World, folder: Path) -> None:
        torch.set_num_threads(settings.threads)
        keep_freed_memory()
        self.task, self.world = task, world
        recipe = load_recipe(Path(task.recipe), [f"training.precision={settings.precision}", "training.optimizer=adam"])
        data = load_prepared(Path(task.prepared))
        device = torch.device(select_device(settings.device))
        self.trainer = Trainer(recipe, data, folder, device, world)
        updates = self.trainer.batches.updates(Position())
        self.updates = updates if device.type == "cpu" else prefetch(updates)
        self.update = 0
        self.used = [0.0] * world.size

    def learn(self) -> tuple[float, int]:
        self.used = gather_objects(self.world, cpu_seconds())  # the other processes wait here between requests
        self.update += 1
        update = next(self.updates)
        totals = self.trainer.learn(update, self.task.rate_of(self.update))
        assert not totals.problem, totals.problem
        self.trainer.progress.position = update.next_position
        return totals.loss, int(totals.tokens)

    def cpu_seconds(self) -> float:
        """Return the processor time of all processes in seconds.

        The times of ranks other than 0 are those at the beginning of the last update.
        """
        return cpu_seconds() + sum(self.used[1:])


def follow(task: TrainTask, settings: TrainSettings) -> None:
    """Train in a process of rank 1 or higher, until the connection to rank 0 ends."""
    with join_process_group("cpu") as world, tempfile.TemporaryDirectory() as folder:
        ours = OurTrainer(task, settings, world, Path(folder))
        try:
            while True:
                ours.learn()
        except (RuntimeError, dist.DistBackendError):
            return


def main() -> None:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))

        def load(task: TrainTask, settings: TrainSettings) -> OurTrainer:
            arguments = f"TrainTask(**{asdict(task)}), TrainSettings(**{asdict(settings)})"
            path = f"import sys; sys.path.insert(0, {str(ROOT)!r})"
            source = f"{path}; from scripts.benchmark.train_ours import *; follow({arguments})"
            command = [sys.executable, "-c", source]
            stack.enter_context(spawn_ranks(command, settings.processes))
            return OurTrainer(task, settings, stack.enter_context(join_process_group("cpu")), folder)

        run_learner(load)
