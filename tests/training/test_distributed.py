"""torchrun with two processes on CPUs (gloo) is one process with the same global batch (acceptance 7)."""

import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
import torch
from torch.multiprocessing.spawn import spawn

from mt import distributed
from mt.cli.train import main as train
from tests.conftest import free_port
from tests.training.conftest import Place, metrics, torchrun
from tests.weights import load_weights

pytestmark = pytest.mark.system

RECIPE = (
    *("training.max_updates=30", "training.batch_tokens=64", "training.save_every=10", "training.keep_checkpoints=9"),
    *("training.learning_rate=1e-3", "--threads", "1"),
)


def losses(run: Path) -> list[float]:
    return [record["train_loss"] for record in metrics(run) if "train_loss" in record]


def assert_same_run(a: Path, b: Path) -> None:
    """Equal losses, and weights that are equal on average: Adam makes steps of the rounding noise in tiny gradients.

    A key's bias changes no softmax, so it gets nothing but that noise.
    """
    assert len(losses(a)) == 3
    assert losses(a) == pytest.approx(losses(b), abs=1e-4)
    for update in (10, 20, 30):
        ours, theirs = (load_weights(run / f"checkpoints/{update:08d}/model.safetensors") for run in (a, b))
        far = {name: float((ours[name] - theirs[name]).abs().mean()) for name in ours if "key.bias" not in name}
        assert max(far.values()) < 1e-4, far


def test_two_processes_are_one(place: Place) -> None:
    """With Muon for matrices and Adam for the rest, and with dropout, whose seed is that of the batch."""
    recipe = (*RECIPE, "model.dropout=0.3", "training.optimizer=muon")
    place.here(train, *recipe, "--run", "one")
    said = place.run(torchrun(place.command("train.py", *recipe, "--run", "two")))
    assert "processes: 2 on" in said
    assert_same_run(place.folder / "one", place.folder / "two")


@pytest.mark.slow
def test_a_run_goes_on_with_another_number_of_processes(place: Place) -> None:
    recipe = (*RECIPE, "model.dropout=0.3", "tokenizer.dropout=0.1")
    place.here(train, *recipe, "--run", "one")
    first = ("training.max_updates=10", "--run", "two")
    place.run(torchrun(place.command("train.py", *recipe, *first)))
    second = ("training.max_updates=20", "--run", "two", "--resume")
    said = place.run(torchrun(place.command("train.py", *recipe, *second)))
    assert "resumed at update 10" in said
    said = place.here(train, *recipe, "--run", "two", "--resume")
    assert "resumed at update 20" in said
    assert_same_run(place.folder / "one", place.folder / "two")


@pytest.mark.slow
def test_processes_that_the_script_starts_are_one_run(place: Place) -> None:
    recipe = (*RECIPE, "model.dropout=0.3")
    said = place.run(place.command("train.py", *recipe, "--run", "two", "--processes", "2"))
    assert "processes: 2 on cpu, " in said
    assert said.count("the model is in") == 1
    place.here(train, *recipe, "--run", "one")
    assert_same_run(place.folder / "one", place.folder / "two")


@pytest.mark.slow
def test_a_mistake_is_told_once_and_leaves_no_process(place: Place) -> None:
    (place.folder / "corpora" / "test.de").unlink()
    said = place.run(place.command("train.py", *RECIPE, "--run", "two", "--processes", "2"), status=2)
    assert said.count("test.de") == 1 and "Traceback" not in said


def test_ranks_that_wait_for_a_failed_one_end(tmp_path: Path) -> None:
    """A full disk let rank 0 wait for a rank that waited for it."""
    ready = tmp_path / "ready"
    code = f"""
import pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path({str(ready)!r}).touch()
time.sleep(60)
"""
    started = 0.0

    def fail() -> None:
        nonlocal started
        while not ready.exists():
            time.sleep(0.01)
        started = time.monotonic()
        raise OSError("full")

    with pytest.raises(OSError, match="full"), distributed.spawn_ranks([sys.executable, "-c", code], 2):
        fail()
    assert time.monotonic() - started < 30


def fall_silent(rank: int, port: int, folder: Path) -> None:
    """One of two processes, the second of which takes its time: first where it may, then where it may not.

    The first writes what it saw into the folder.
    """
    os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    distributed.UPDATE_TIMEOUT = timedelta(seconds=2)
    with distributed.join_process_group("cpu") as world:
        time.sleep(4 * rank)
        distributed.barrier(world)
        if rank == 0:
            (folder / "barrier").touch()
            try:
                distributed.all_reduce(world, torch.ones(1))
            except RuntimeError as error:
                (folder / "error").write_text(str(error))
        else:
            time.sleep(6)


@pytest.mark.slow
def test_who_falls_silent_is_given_up_but_may_prepare_and_validate_in_peace(tmp_path: Path) -> None:
    spawn(fall_silent, (free_port(), tmp_path), nprocs=2)
    assert (tmp_path / "barrier").exists()
    assert "timed out" in (tmp_path / "error").read_text().lower()
