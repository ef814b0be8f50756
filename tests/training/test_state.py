import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from torch import nn

from mt.config import TrainingConfig
from mt.data.batching import Position
from mt.distributed import World
from mt.errors import ModelError, MTError, TrainingError
from mt.training.optimizer import Muon
from mt.training.state import Progress, RunState, checkpoints, prune_checkpoints, restore_checkpoint, save_checkpoint
from tests.weights import load_weights, save_weights

BEST = {"best_score": 12.25, "best_update": 2, "stale_validations": 4, "before": {"valid_loss": 2.5}}
PROGRESS = Progress(updates=3, position=Position(epoch=2, update=5), seconds=1.5, skipped=1, **BEST)  # type: ignore[arg-type]


def new_state(seed: int, updates: int = 0, muon: bool = False) -> RunState:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2))
    matrices = [p for p in model.parameters() if p.ndim == 2] if muon else []
    rest = [p for p in model.parameters() if p.ndim == 1 or not muon]
    optimizers: list[torch.optim.Optimizer] = [torch.optim.AdamW(rest, lr=0.1, fused=True)]
    if muon:
        optimizers.append(Muon(matrices, torch.float32, World()))
        optimizers[-1].param_groups[0]["lr"] = 0.1
    state = RunState(model, optimizers, Progress())
    for _ in range(updates):
        update(state)
    return state


def update(state: RunState) -> None:
    """One that depends on all of the state: parameters, moments, step count."""
    state.model.zero_grad()
    state.model(torch.tensor([[1.0, 2.0, -1.0]])).square().sum().backward()
    for optimizer in state.optimizers:
        optimizer.grad_scale = torch.tensor(2.0)  # type: ignore[attr-defined]
        optimizer.step()


def saved(folder: Path, updates: int = 3, muon: bool = False) -> tuple[Path, RunState]:
    state = new_state(1, updates, muon=muon)
    vars(state.progress).update(vars(PROGRESS))
    return save_checkpoint(folder, state), state


def same(a: RunState, b: RunState) -> bool:
    return all(torch.equal(x, y) for x, y in zip(a.model.parameters(), b.model.parameters(), strict=True)) and all(
        theirs.keys() == mine.keys() and all(torch.equal(theirs[key], mine[key]) for key in mine)
        for mine, theirs in zip(kept(a), kept(b), strict=True)
    )


def kept(state: RunState) -> list[dict[str, torch.Tensor]]:
    groups = [(optimizer, group) for optimizer in state.optimizers for group in optimizer.param_groups]
    return [optimizer.state[parameter] for optimizer, group in groups for parameter in group["params"]]


def test_the_files_of_a_checkpoint(tmp_path: Path) -> None:
    """The format: a run that goes on may have been begun by an earlier release, which also kept random states."""
    path, state = saved(tmp_path)
    assert path == tmp_path / "00000003"
    assert sorted(file.name for file in path.iterdir()) == ["model.safetensors", "optimizer.safetensors", "state.json"]
    assert set(load_weights(path / "model.safetensors")) == set(state.model.state_dict())
    moments = load_weights(path / "optimizer.safetensors")
    kinds = ("step", "exp_avg", "exp_avg_sq")
    assert set(moments) == {f"{kind}.{name}" for kind in kinds for name in state.model.state_dict()}
    values = {"data": "", **asdict(PROGRESS), "position": {"epoch": 2, "update": 5}}
    assert json.loads((path / "state.json").read_text()) == values
    save_weights(path / "optimizer.safetensors", {**moments, "random.cpu": torch.get_rng_state()})
    other = new_state(2)
    restore_checkpoint(path, other)
    assert same(state, other) and other.progress == PROGRESS

    path, _ = saved(tmp_path / "muon", muon=True)
    moments = load_weights(path / "optimizer.safetensors")
    assert {name for name in moments if name.startswith("momentum.")} == {"momentum.0.weight", "momentum.2.weight"}
    steps = {name.removeprefix("step.") for name in moments if name.startswith("step.")}
    assert steps == {"0.bias", "1.weight", "1.bias", "2.bias"}


def test_a_checkpoint_of_another_corpus_is_refused(tmp_path: Path) -> None:
    path, _ = saved(tmp_path)
    other, untouched = replace(new_state(2, updates=1), data="b"), new_state(2, updates=1)
    with pytest.raises(TrainingError, match="00000003 was trained on other text: a corpus of the recipe has changed"):
        restore_checkpoint(path, other)
    assert same(other, untouched) and other.progress == Progress()


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
@pytest.mark.parametrize("damage", ["cut short", "empty", "missing"])
def test_a_damaged_file_is_named_and_nothing_is_restored(tmp_path: Path, name: str, damage: str) -> None:
    path, _ = saved(tmp_path)
    file = path / name
    content = file.read_bytes()
    file.unlink()
    if damage != "missing":
        file.write_bytes(content[: len(content) // 2 if damage == "cut short" else 0])
    other, untouched = new_state(2, updates=1), new_state(2, updates=1)
    with pytest.raises(MTError) as caught:
        restore_checkpoint(path, other)
    assert str(file) in str(caught.value)
    assert same(other, untouched)
    assert other.progress == Progress()
    assert checkpoints(tmp_path) == [path], "a damaged checkpoint is not passed over in silence"


def test_every_tensor_that_does_not_fit_is_named(tmp_path: Path) -> None:
    path, state = saved(tmp_path)
    with pytest.raises(ModelError, match=r"(?s)0\.weight.*2\.weight.*weight is missing"):
        restore_checkpoint(path, RunState(nn.Linear(3, 4), state.optimizers, Progress()))
    with pytest.raises(ModelError, match=r"(?s)lacks tensors.*momentum\.0\.weight.*momentum\.2\.weight"):
        restore_checkpoint(path, new_state(2, muon=True))
    tensors = load_weights(path / "optimizer.safetensors")
    del tensors["exp_avg.0.weight"], tensors["step.2.bias"]
    save_weights(path / "optimizer.safetensors", tensors)
    with pytest.raises(ModelError, match=r"(?s)exp_avg\.0\.weight.*step\.2\.bias"):
        restore_checkpoint(path, new_state(2))


@pytest.mark.parametrize("text", ["[]", '{"updates": 3}', '{"updates": 3, "position": {}, "colour": "red"}'])
def test_state_that_is_not_a_runs(tmp_path: Path, text: str) -> None:
    path, _ = saved(tmp_path)
    (path / "state.json").write_text(text)
    with pytest.raises(TrainingError, match=r"state\.json"):
        restore_checkpoint(path, new_state(2))


@pytest.mark.parametrize(
    ("keep", "best", "save_every", "left"),
    [
        (2, 4, 1, [4, 5]),
        (2, 1, 1, [1, 4, 5]),
        (1, 3, 1, [3, 5]),
        (9, 1, 1, [1, 2, 3, 4, 5]),
        (2, 0, 1, [4, 5]),  # nothing was validated yet
        (9, 4, 2, [2, 3, 4, 5]),  # 1 was written because of the time; 3 is validated, 5 is the newest
        (2, 1, 2, [1, 4, 5]),
        (2, 3, 500, [3, 5]),
        (1, 0, 500, [5]),
    ],
)
def test_the_last_and_the_best_are_kept(tmp_path: Path, keep: int, best: int, save_every: int, left: list[int]) -> None:
    state = new_state(1, updates=1)
    for state.progress.updates in range(1, 6):
        save_checkpoint(tmp_path, state)
    (tmp_path / ".00000006.part").mkdir()  # a kill left it half written
    (tmp_path / "00000001-mine").mkdir()  # a user put it there
    config = TrainingConfig(keep_checkpoints=keep, save_every=save_every, validate_every=3)
    prune_checkpoints(tmp_path, config, best)
    assert [int(path.name) for path in checkpoints(tmp_path)] == left
    assert not (tmp_path / ".00000006.part").exists()
    assert (tmp_path / "00000001-mine").exists()
