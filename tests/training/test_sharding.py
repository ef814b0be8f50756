"""A model in pieces, one in each of two processes, is the same run with the same files."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.tensor import DTensor
from torch.multiprocessing.spawn import spawn

from mt.config import ModelConfig, Recipe
from mt.data.batching import Position, TrainingBatch, UpdateStream, make_batch
from mt.data.dataset import PreparedData
from mt.distributed import World
from mt.model.transformer import Transformer
from mt.tokenizer import PAD
from mt.training.loss import batch_loss
from mt.training.sharding import ShardedLoss, distribute_like, gather
from mt.weights import load_weights

# A key's bias changes no softmax, so its gradient is rounding noise, which Adam blows up; a large epsilon does not.
RECIPE = (
    *("model.dropout=0", "training.batch_tokens=64", "training.adam_epsilon=1e-3", "training.ema_decay=0.9"),
    *("training.max_updates=50", "training.validate_every=25", "training.save_every=20", "training.keep_checkpoints=9"),
    *("--processes", "2"),
)


def records(run: Path, figure: str) -> list[float]:
    found = (json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines())
    return [record[figure] for record in found if figure in record]


def assert_same_files(a: Path, b: Path, name: str) -> None:
    ours, theirs = (load_weights(run / name) for run in (a, b))
    assert {key: tensor.shape for key, tensor in ours.items()} == {key: t.shape for key, t in theirs.items()}
    far = {key: float((ours[key] - theirs[key]).abs().max()) for key in ours}
    assert max(far.values()) < 1e-4, far


def tiny() -> Transformer:
    torch.manual_seed(1)
    config = ModelConfig(encoder_layers=1, decoder_layers=2, d_model=8, d_ff=6, heads=2, dropout=0)
    return Transformer(config, vocabulary_size=11)  # the last piece of 11 rows is smaller


def batches() -> list[TrainingBatch]:
    return [make_batch([[5, 3], [4, 6, 3]], [[7, 8], [9]], np.arange(2)), make_batch([[9, 3]], [[4]], np.arange(1))]


def local(tensor: Tensor) -> Tensor:
    """Return this process's part of a sharded tensor."""
    assert isinstance(tensor, DTensor)
    return tensor.to_local()


def learn_in_pieces(rank: int, folder: Path) -> None:
    """One of two processes."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    world = World(rank, 2)
    model = tiny()
    loss = ShardedLoss(batch_loss, model, "float32", torch.device("cpu"), world)
    loss(model, batches()[rank], 0.1).backward()
    parameters: dict[str, Any] = dict(model.named_parameters())
    held = sum(p.to_local().numel() + p.grad.to_local().numel() for p in parameters.values())
    gradients = gather({name: p.grad for name, p in parameters.items()}, world)
    weights = gather({name: p.detach() for name, p in parameters.items()}, world)
    again = {name: distribute_like(tensor, parameters[name]) for name, tensor in tiny().state_dict().items()}
    same = all(local(again[name]).equal(local(p)) for name, p in parameters.items())
    torch.save((held, gradients, weights, same), folder / str(rank))
    dist.destroy_process_group()


def test_each_process_holds_its_piece_of_weights_and_summed_gradients(tmp_path: Path) -> None:
    spawn(learn_in_pieces, (tmp_path,), nprocs=2)
    (held, gradients, weights, same), (also_held, none, neither, also_same) = (
        torch.load(tmp_path / str(rank)) for rank in range(2)
    )
    model = tiny()
    assert held + also_held == 2 * sum(p.numel() for p in model.parameters())
    assert 0.9 < held / also_held < 1.3
    assert same and also_same, "what is placed is the piece that was there"
    assert none == neither == {}, "only the leading process is given all of it"
    assert weights.keys() == model.state_dict().keys()
    for batch in batches():
        batch_loss(model, batch, 0.1).backward()
    for name, parameter in model.named_parameters():
        assert torch.equal(weights[name], parameter)
        torch.testing.assert_close(gradients[name], parameter.grad)


def test_an_idle_batch_teaches_nothing(
    read_recipe: Callable[..., Recipe], prepared: Callable[[Recipe], PreparedData]
) -> None:
    """Each of three processes has as many batches as the others, and all tokens are still there once."""
    recipe = read_recipe("training.shard=true", "training.batch_tokens=64")
    data = prepared(recipe)
    streams = [UpdateStream(data.train, data.tokenizer, recipe, World(rank, 3)) for rank in range(3)]
    plan = streams[0].plan(0)
    idle = 0
    for indices, *updates in zip(plan, *(stream.updates(Position()) for stream in streams), strict=False):
        assert len({len(update.batches) for update in updates}) == 1
        given = [batch for update in updates for batch in update.batches]
        working = [batch for batch in given if bool((batch.labels != PAD).any())]
        assert sorted(i for batch in working for i in batch.indices) == sorted(np.concatenate(indices).tolist())
        idle += len(given) - len(working)
    assert idle
    model = Transformer(recipe.model, len(data.tokenizer))
    loss = batch_loss(model, streams[0].empty_batch(), 0.1)
    loss.backward()
    assert loss.item() == 0
    assert all(p.grad is not None and not p.grad.any() for p in model.parameters())


@pytest.mark.system
@pytest.mark.slow
@pytest.mark.parametrize("overrides", [("training.update_tokens=256",), ("training.update_tokens=160",)])
def test_a_sharded_run_is_the_run(place: Any, overrides: tuple[str, ...]) -> None:
    """Losses, gradient norms, validation and checkpoints; with few batches in an update, processes have idle ones."""
    recipe = (*RECIPE, *overrides)
    place.run(place.command("train.py", *recipe, "--run", "whole"))
    said = place.run(place.command("train.py", *recipe, "--run", "sharded", "training.shard=true"))
    whole, sharded = place.folder / "whole", place.folder / "sharded"
    assert "processes: 2 on" in said
    for figure in ("train_loss", "train_norm", "valid_loss"):
        assert records(sharded, figure) == pytest.approx(records(whole, figure), abs=1e-4), figure
    for update in (20, 25, 40, 50):
        for kind in ("model", "optimizer"):
            assert_same_files(whole, sharded, f"checkpoints/{update:08d}/{kind}.safetensors")
    assert_same_files(whole, sharded, "model/model.safetensors")


@pytest.mark.system
@pytest.mark.slow
def test_a_run_goes_on_sharded_and_whole_again(place: Any) -> None:
    place.run(place.command("train.py", *RECIPE, "--run", "whole"))
    parts = (
        ("training.max_updates=20", "training.shard=true"),
        ("training.max_updates=30", "training.shard=true"),
        ("training.max_updates=40", "--processes", "1"),
        ("training.shard=true",),
    )
    for number, part in enumerate(parts):
        said = place.run(place.command("train.py", *RECIPE, *part, "--run", "parts", "--resume"))
        assert ("resumed at update" in said) is (number > 0)
    whole, parted = place.folder / "whole", place.folder / "parts"
    assert records(parted, "train_loss") == pytest.approx(records(whole, "train_loss"), abs=1e-4)
    assert_same_files(whole, parted, "checkpoints/00000050/optimizer.safetensors")


@pytest.mark.system
@pytest.mark.slow
def test_in_bfloat16_the_pieces_and_the_sums_of_gradients_are_exact(place: Any) -> None:
    recipe = (*RECIPE, "training.precision=bfloat16")
    place.run(place.command("train.py", *recipe, "--run", "whole"))
    place.run(place.command("train.py", *recipe, "--run", "sharded", "training.shard=true"))
    whole, sharded = (records(place.folder / run, "train_loss") for run in ("whole", "sharded"))
    assert sharded == pytest.approx(whole, rel=1e-2)
