"""Settings and rows of the training benchmark."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch

from mt.distributed import World
from scripts.benchmark import train, train_ours
from scripts.benchmark.train_task import TrainResult, TrainSettings, TrainTask

TASK = TrainTask("", "", "", 9, 8, 8, 2, 1, 0.0, 0.1, rate=1.0, warmup=4, clip=1.0)


@dataclass(frozen=True)
class Data:
    """Prepared data of which only the tokenizer is read."""

    tokenizer: object = field(default_factory=lambda: type("Tokens", (), {})())


class Stopped(Exception):
    """Raised in place of the construction of a trainer."""


def test_trainings_on_a_gpu_run_on_the_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Only the places that choose the device: there is no GPU."""
    monkeypatch.setattr(train, "select_device", torch.device)
    monkeypatch.setattr(train, "choose_precision", lambda precision, device, world: f"auto on {device}")
    rows = train.list_rows("cuda")
    assert {row.settings.device for row in rows} == {"cuda"}
    assert [row.label for row in rows] == [
        "auto on cuda, cuda",
        "auto on cuda, cuda, eager attention",
        "auto on cuda, cuda, sdpa attention",
    ]
    devices: list[torch.device] = []

    def trainer(recipe: object, data: object, folder: Path, device: torch.device, world: World) -> None:
        devices.append(device)
        raise Stopped

    monkeypatch.setattr(train_ours, "select_device", torch.device)
    monkeypatch.setattr(train_ours, "load_recipe", lambda path, overrides: None)
    monkeypatch.setattr(train_ours, "load_prepared", lambda path: Data())
    monkeypatch.setattr(train_ours, "keep_freed_memory", lambda: True)
    monkeypatch.setattr(train_ours, "Trainer", trainer)
    with pytest.raises(Stopped):
        train_ours.OurTrainer(TASK, TrainSettings("float32", threads=1, device="cuda"), World(), tmp_path)
    assert devices == [torch.device("cuda")]


def test_a_row_of_the_training_table() -> None:
    """The first result, of the warm-up, counts only for the losses."""
    row = train.TrainRow("ours", TrainSettings("float32", threads=1))
    row.results = [
        TrainResult(9.0, 9.0, 1_000_000, losses=[80.0, 60.0], tokens=[10, 10]),
        TrainResult(2.0, 4.0, 3_000_000, losses=[40.0, 30.0], tokens=[10, 20]),
    ]
    assert row.cells() == ["ours", "float32, 1x1", "15", "", "8", "8.000", "1.500", "3"]


def test_rates_rise_to_the_end_of_the_warm_up() -> None:
    assert [TASK.rate_of(update) for update in (1, 2, 4, 5)] == [0.25, 0.5, 1, 1]
