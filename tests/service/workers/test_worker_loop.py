"""Loading of a model in a worker."""

import ctypes
from pathlib import Path
from shutil import copytree
from types import SimpleNamespace
from typing import cast

import pytest
import torch

from mt.checkpoint import load_model
from mt.data.shortlist import build_shortlist
from mt.kernels.shortlist import save_shortlist
from mt.pipeline.translator import Translator
from mt.tokenizer import EOS
from service.workers.messages import ModelSetup
from service.workers.worker_loop import load, worker_devices
from tests.kernels.conftest import library as library


@pytest.mark.parametrize(
    ("device", "wanted", "free", "devices"),
    [
        ("auto", None, 24, ("cuda:0", "cuda:1")),
        ("cuda", None, 80, ("cuda:0", "cuda:1", "cuda:0", "cuda:1")),
        ("cuda", 1, 80, ("cuda:0", "cuda:1")),
        ("cuda:1", 3, 24, ("cuda:1", "cuda:1", "cuda:1")),
        ("cpu", 3, 80, ("cpu",)),
    ],
)
def test_each_gpu_gets_workers(
    monkeypatch: pytest.MonkeyPatch, device: str, wanted: int | None, free: int, devices: tuple[str, ...]
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda gpu: (free * 10**9, 80 * 10**9))
    translator = SimpleNamespace(device="cuda" if device == "auto" else device)
    setup = ModelSetup(Path("model"), device, workers_per_gpu=wanted)
    assert worker_devices(setup, cast(Translator, translator)) == devices


def test_a_served_model_uses_its_shortlist(library: ctypes.CDLL, small_model: Path, tmp_path: Path) -> None:
    model = Path(copytree(small_model, tmp_path / "model"))
    assert not load(ModelSetup(model, "cpu")).shortlist  # it has none
    tokenizer = load_model(model).tokenizer
    save_shortlist(model, build_shortlist(tokenizer.pieces(range(len(tokenizer))), EOS, [], []), tokenizer.digest)
    assert load(ModelSetup(model, "cpu")).shortlist
