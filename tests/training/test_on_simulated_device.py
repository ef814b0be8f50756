"""Training on a simulated GPU: the same weights as on the CPU, with bounded waits and operations."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from mt.checkpoint import LoadedModel
from mt.config import Recipe
from mt.data.batching import Position, Update
from mt.data.dataset import PreparedData
from mt.decoding.options import SpecialIds
from mt.distributed import World
from mt.engine.backends import cuda
from mt.engine.backends.cuda import GraphDecoder
from mt.engine.backends.static_batch import GraphLimits
from mt.engine.engine import Engine
from mt.engine.scheduler import Limits
from mt.training.loader import pinned
from mt.training.state import save_checkpoint
from mt.training.trainer import Trainer
from tests.simulated_device import SimulatedDevice, SimulatedGraphs
from tests.simulated_device import simulated as simulated
from tests.training.conftest import equal, weights_of

MakeTrainer = Callable[..., Trainer]
EXACT = ("model.dropout=0", "training.precision=float32")
RATE = 1e-3
CPU = torch.device("cpu")


@pytest.fixture
def make(tmp_path: Path, read_recipe: Callable[..., Recipe], prepared: Callable[[Recipe], PreparedData]) -> MakeTrainer:
    """A trainer on a device without dropout, whose masks differ between devices."""

    def trainer(device: torch.device, *overrides: str) -> Trainer:
        recipe = read_recipe(*EXACT, *overrides)
        folder = tmp_path / device.type
        folder.mkdir(exist_ok=True)
        return Trainer(recipe, prepared(recipe), folder, device, World())

    return trainer


def updates(trainer: Trainer, count: int) -> list[Update]:
    """Updates in page-locked memory, as the loader of a GPU makes them."""
    stream = trainer.batches.updates(Position())
    return [pinned(next(stream)) for _ in range(count)]


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: tensor.cpu() for name, tensor in weights_of(trainer).items()}


# The simulated device has no kernel of attention with gradients, and counts its parts.
@pytest.mark.parametrize(
    ("overrides", "operations"),
    [
        (("training.optimizer=adam",), 503),
        (("training.optimizer=muon",), 584),
        (("training.optimizer=adam", "training.precision=bfloat16"), 527),
    ],
)
def test_updates_equal_those_on_the_cpu(
    make: MakeTrainer, simulated: SimulatedDevice, overrides: tuple[str, ...], operations: int
) -> None:
    host, trainer = make(CPU, *overrides), make(simulated.device, *overrides)
    for update in updates(host, 3):
        expected = host.learn(update, RATE)
        simulated.reset()
        found = trainer.learn(update, RATE)
        assert found.loss == pytest.approx(expected.loss, rel=1e-2 if "bfloat16" in overrides[-1] else 1e-5)
    assert len(simulated.waits) <= 2, simulated.waits
    assert simulated.operations.total() <= operations, simulated.operations
    if "bfloat16" not in overrides[-1]:
        trained, right = weights(trainer), weights(host)
        for name in trained:
            if not name.endswith("key.bias"):  # it has no effect: its gradient is rounding, which Adam scales up
                torch.testing.assert_close(trained[name], right[name], atol=1e-5, rtol=1e-4)


def test_a_run_resumes_on_the_device(make: MakeTrainer, simulated: SimulatedDevice) -> None:
    trainer = make(simulated.device, "training.optimizer=muon")
    first, second = updates(trainer, 2)
    trainer.learn(first, RATE)
    trainer.progress.updates = 1
    save_checkpoint(trainer.checkpoints, trainer.state)
    trainer.learn(second, RATE)
    resumed = make(simulated.device, "training.optimizer=muon")
    assert resumed.resume()
    resumed.learn(second, RATE)
    assert equal(weights(resumed), weights(trainer))


def test_a_batch_that_does_not_fit_is_skipped(make: MakeTrainer, simulated: SimulatedDevice) -> None:
    trainer = make(simulated.device, "training.optimizer=adam")
    [update] = updates(trainer, 1)
    before = weights(trainer)
    simulated.fail_at = simulated.allocations + 100
    assert "out of memory on a batch of" in trainer.learn(update, RATE).problem
    assert equal(weights(trainer), before)
    assert not trainer.learn(update, RATE).problem


def test_a_failed_accelerator_ends_the_run(make: MakeTrainer, simulated: SimulatedDevice) -> None:
    trainer = make(simulated.device, "training.optimizer=adam")
    [update] = updates(trainer, 1)
    simulated.broken = True
    with pytest.raises(torch.AcceleratorError):
        trainer.learn(update, RATE)
    simulated.broken = False


def test_validation_equals_that_on_the_cpu(
    make: MakeTrainer, simulated: SimulatedDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Validation decodes with CUDA graphs, for which this device has a simulation."""
    graphs = SimulatedGraphs(simulated)

    def load_engine(loaded: LoadedModel) -> Engine:
        decoder = GraphDecoder(loaded.model, SpecialIds(), simulated.device, graphs, GraphLimits(rows=32))
        return Engine(decoder, Limits.of("cuda"))

    monkeypatch.setattr(cuda, "load_engine", load_engine)
    expected, found = (
        trainer.validation.metrics(trainer.working.model, trainer.model)
        for trainer in (make(device, "training.validate_sentences=8") for device in (CPU, simulated.device))
    )
    assert found == pytest.approx(expected, rel=1e-4)
    assert graphs.captures > 0
