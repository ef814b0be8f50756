"""torchrun starts a run again when a process, or a machine, is lost: it goes on from its last checkpoint."""

import os
import signal
import subprocess
import time
from datetime import timedelta
from pathlib import Path

import pytest
import torch
from torch.multiprocessing.spawn import spawn

from mt import distributed
from tests.conftest import free_port
from tests.training.conftest import Place, newest, torchrun

pytestmark = [pytest.mark.system, pytest.mark.slow]

UPDATES = 150
RECIPE = (
    *("model.dropout=0.2", "tokenizer.dropout=0.1", "training.batch_tokens=64"),
    *(f"training.max_updates={UPDATES}", "training.save_every=7", "training.validate_every=60", "--threads", "1"),
)
LAST = tuple(f"checkpoints/{UPDATES:08d}/{kind}.safetensors" for kind in ("model", "optimizer"))


@pytest.fixture(autouse=True)
def separate_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Restarted processes would otherwise wait for ended ones (pytorch/pytorch, issue 135712)."""
    monkeypatch.setenv("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")


def workers(agent: subprocess.Popen[str]) -> dict[int, int]:
    """The process ids of an agent's workers, by rank, as long as they know it."""
    found: dict[int, int] = {}
    for pid in Path(f"/proc/{agent.pid}/task/{agent.pid}/children").read_text().split():
        try:
            said = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        found |= {int(entry[5:]): int(pid) for entry in said if entry.startswith(b"RANK=")}
    return found


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


def test_who_falls_silent_is_given_up_but_may_prepare_and_validate_in_peace(tmp_path: Path) -> None:
    spawn(fall_silent, (free_port(), tmp_path), nprocs=2)
    assert (tmp_path / "barrier").exists()
    assert "timed out" in (tmp_path / "error").read_text().lower()


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_worker_changes_no_bit(place: Place, rank: int) -> None:
    place.run(torchrun(place.command("train.py", *RECIPE, "--run", "whole")))
    command = place.command("train.py", *RECIPE, "--run", "killed", "--resume")
    killed = place.folder / "killed"
    agent = place.start(torchrun(command, "--max-restarts", "2"))
    try:
        while newest(killed) < 50 and agent.poll() is None:
            time.sleep(0.01)
        os.kill(workers(agent)[rank], signal.SIGKILL)
        _, said = agent.communicate()
    finally:
        agent.terminate()  # it ends its workers
    assert agent.returncode == 0, said
    assert said.count("resumed at update") == 1
    for name in (*LAST, "model/model.safetensors"):
        assert (killed / name).read_bytes() == (place.folder / "whole" / name).read_bytes(), name
