import json
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from mt.config import TrainingConfig
from mt.data.batching import Position, TrainingBatch, Update, load_batch, make_batch
from mt.distributed import World
from mt.errors import TrainingError
from mt.model.transformer import Transformer
from mt.training import loader
from mt.training.card import Published, write_card
from mt.training.loss import batch_loss
from mt.training.state import checkpoints, trained
from mt.training.trainer import Trainer
from tests.training.conftest import equal, finish, metrics, train, weights_of
from tests.weights import load_weights

MakeTrainer = Callable[..., Trainer]
Spoil = Callable[[Transformer, Tensor], Tensor]


class Listed:
    """In the place of UpdateStream: these updates, and then no more."""

    def __init__(self, trainer: Trainer, updates: Sequence[Sequence[np.ndarray]]) -> None:
        self.trainer = trainer
        self.planned = updates
        self.weights: list[dict[str, Tensor]] = []  # before each update, and at the end

    def updates(self, position: Position) -> Iterator[Update]:
        for number in range(position.update, len(self.planned)):
            self.weights.append(weights_of(self.trainer))
            batches = [load_batch(self.trainer.data.train, [[]], indices) for indices in self.planned[number]]
            yield Update(batches, Position(0, number + 1))
        self.weights.append(weights_of(self.trainer))


class Broken:
    """A loss that does `how` to its result on the calls `when`, counted from 0."""

    def __init__(self, how: Spoil, when: Sequence[int]) -> None:
        self.how = how
        self.when = when
        self.calls = 0

    def __call__(self, model: Transformer, batch: TrainingBatch, smoothing: float) -> Tensor:
        self.calls += 1
        loss = batch_loss(model, batch, smoothing)
        return self.how(model, loss) if self.calls - 1 in self.when else loss


def bad_gradient(model: Transformer, loss: Tensor) -> Tensor:
    """A finite loss whose gradient is not: the square root's at 0."""
    return loss + (next(model.parameters()) * 0).sum().sqrt()


def raising(error: Exception) -> Spoil:
    def fail(model: Transformer, loss: Tensor) -> Tensor:
        raise error

    return fail


NAN = "a loss of nan", lambda model, loss: loss * math.nan
GPU_FULL = "out of memory", raising(torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"))
NO_MEMORY = RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 2 B.")
CPU_FULL = "out of memory", raising(NO_MEMORY)
BAD_GRADIENT = "a gradient of norm nan", bad_gradient
SPOILT = [("a loss of inf", lambda model, loss: loss * math.inf), NAN, GPU_FULL, CPU_FULL, BAD_GRADIENT]


def test_the_gradient_is_a_mean_over_tokens(make_trainer: MakeTrainer) -> None:
    """The norm that is recorded is that of the mean loss of a target token, of all batches of the update."""
    trainer = make_trainer("run", "model.dropout=0", "training.max_updates=10", "training.learning_rate=1e-30")
    pairs = np.arange(6)
    batch = load_batch(trainer.data.train, [[]], pairs)
    tokens = int(trainer.data.train.target.lengths[pairs].sum()) + len(pairs)  # EOS counts
    mean = batch_loss(trainer.model, batch, 0.1) / tokens
    expected = torch.stack([g.norm() for g in torch.autograd.grad(mean, list(trainer.model.parameters()))]).norm()
    trainer.batches = Listed(trainer, [[pairs[:2], pairs[2:]]] * 10)  # type: ignore[assignment]
    train(trainer)
    (record,) = metrics(trainer.run)
    assert record["train_norm"] == pytest.approx(float(expected), rel=1e-4)
    assert record["train_loss"] == pytest.approx(mean.item(), rel=1e-5)


@pytest.mark.parametrize(("words", "how"), SPOILT)
def test_a_spoilt_update_is_reported_with_its_pairs_and_skipped(
    make_trainer: MakeTrainer, capsys: pytest.CaptureFixture[str], words: str, how: Spoil
) -> None:
    updates = [[np.array([0, 1])], [np.array([2, 3]), np.array([4, 5])], [np.array([6, 7])]]
    broken = make_trainer("broken", "training.max_updates=9")
    broken.batches = listed = Listed(broken, updates)  # type: ignore[assignment]
    broken.loss = Broken(how, when=[2])  # the second batch of the second update
    train(broken)
    said = capsys.readouterr().err
    assert f"update 2 skipped: {words}" in said
    assert "pairs 4, 5 of the prepared data;" in said
    assert repr(broken.data.train.texts("source", [4])[0]) in said
    assert equal(listed.weights[1], listed.weights[2]), "a skipped update leaves the weights alone"
    assert broken.progress.updates == 2
    assert broken.progress.skipped == 0
    assert broken.progress.position == Position(0, 3)
    assert all(bool(tensor.isfinite().all()) for tensor in weights_of(broken).values())

    without = make_trainer("without", "training.max_updates=9")
    without.batches = Listed(without, [updates[0], [], updates[2]][::2])  # type: ignore[assignment]
    train(without)
    assert equal(weights_of(broken), weights_of(without)), "the run goes on as if that update had not been"


def test_too_many_spoilt_updates_in_a_row_end_the_run(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer("run", "training.update_tokens=16")
    trainer.loss = Broken(NAN[1], when=[*range(1, 6), *range(7, 13)])  # five in a row may be; six may not
    with pytest.raises(TrainingError, match="6 updates in a row were skipped"):
        train(trainer)
    assert trainer.progress.updates == 2


def test_another_error_is_not_taken_for_lack_of_memory(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer("run")
    trainer.loss = Broken(raising(RuntimeError("The size of tensor a (3) must match the size of tensor b (4)")), [0])
    with pytest.raises(RuntimeError, match="must match"):
        train(trainer)


def test_training_stops_when_validation_no_longer_improves(make_trainer: MakeTrainer) -> None:
    """With weights that stand still the first validation is the best there will be."""
    overrides = ("training.learning_rate=1e-30", "training.validate_every=4", "training.patience=2")
    trainer = make_trainer("run", *overrides, "training.max_updates=1000")
    assert trainer.describe().normalised_text
    assert trainer.describe().source_length == np.quantile(trainer.data.train.source.lengths, 0.999) // 1
    assert train(trainer) is True
    assert trainer.progress.updates == 12
    assert (trainer.progress.best_update, trainer.progress.stale_validations) == (4, 2)
    scores = [record["valid_bleu"] for record in metrics(trainer.run) if "valid_bleu" in record]
    assert len(scores) == 3 and len(set(scores)) == 1


def test_a_schedule_that_does_not_fit_is_reported_twice(
    make_trainer: MakeTrainer, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = make_trainer("run", "training.max_updates=3", "training.warmup_updates=2", "training.cooldown_updates=31")
    assert train(trainer) is True
    lines = capsys.readouterr().err.splitlines()
    warnings = [line for line in lines if "only 12% of its peak in 3 updates, with a warm-up of 2 and a cool" in line]
    assert len(warnings) == 2 and all(line.startswith("warning: ") for line in warnings)


def test_training_stops_after_its_minutes_resumes_included(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer("run", "training.max_minutes=1e-9")
    assert train(trainer) is True
    assert trainer.progress.updates == 1
    again = make_trainer("run", "training.max_minutes=1e-9")
    assert again.resume()
    assert train(again) is True
    assert again.progress.updates == 1


def test_the_warm_up_fits_a_limit_in_minutes(
    make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each reading of the clock takes 0.1 s, so the run has about 60 / 0.5 updates, and a tenth of them warms up."""
    clock = count()
    monkeypatch.setattr("time.monotonic", lambda: next(clock) / 10)
    trainer = make_trainer("run")
    trainer.config = TrainingConfig(max_minutes=1, optimizer="adam", batch_tokens=128, update_tokens=256)
    assert train(trainer) is True
    updates, planned = trainer.progress.updates, trainer.progress.planned_updates
    assert 50 < updates < 200 and abs(planned - updates) <= 0.1 * updates
    rates = {record["update"]: record["train_rate"] for record in metrics(trainer.run)}
    assert max(rates, key=rates.__getitem__) in (round(updates / 10, -1), round(updates / 10, -1) + 10)
    assert rates[max(rates)] < 0.5 * max(rates.values())  # the cool-down
    assert "warning" not in capsys.readouterr().err


def test_a_run_that_resumes_early_plans_as_well(make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first two updates, which are not measured, take 10 s each, all others less than a second."""
    seconds = 0.0

    def clock() -> float:
        nonlocal seconds
        seconds += 0.1
        return seconds

    def loss(model: Transformer, batch: TrainingBatch, smoothing: float) -> Tensor:
        nonlocal seconds
        seconds += 10 if part.progress.updates < 2 else 0
        if part.progress.updates == 7:
            part.stop()
        return batch_loss(model, batch, smoothing)

    monkeypatch.setattr("time.monotonic", clock)
    part, again = make_trainer("run"), make_trainer("run")
    part.config = again.config = TrainingConfig(max_minutes=1, optimizer="adam", batch_tokens=128, update_tokens=128)
    part.loss = loss
    assert train(part) is False
    assert again.resume() and again.progress.updates == 8 and train(again) is True
    updates, planned = again.progress.updates, again.progress.planned_updates
    assert updates > 30 and abs(planned - updates) <= 0.15 * updates


@pytest.mark.parametrize(("minutes", "most"), [(1, 12), (None, 180)])
def test_a_run_that_is_killed_loses_minutes_at_most(
    make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch, minutes: float | None, most: float
) -> None:
    """Each reading of the clock takes a second; neither `save_every` nor `validate_every` updates are done."""
    clock = count()
    monkeypatch.setattr("time.monotonic", lambda: float(next(clock)))
    trainer = make_trainer("run", "training.save_every=500", "training.validate_every=500")
    trainer.config = TrainingConfig(max_minutes=minutes, max_updates=200, optimizer="adam", batch_tokens=128)
    lost = []

    def loss(model: Transformer, batch: TrainingBatch, smoothing: float) -> Tensor:
        saved = checkpoints(trainer.checkpoints)
        state = json.loads((saved[-1] / "state.json").read_text()) if saved else {"seconds": 0}
        lost.append(trainer.progress.seconds - state["seconds"])
        assert len(saved) <= 1, "written because of the time, a checkpoint replaces the one before"
        return batch_loss(model, batch, smoothing)

    trainer.loss = loss
    assert train(trainer) is True
    assert most <= max(lost) <= most + 15


def test_a_run_leaves_metrics_curves_events_and_a_last_checkpoint(make_trainer: MakeTrainer) -> None:
    trainer = make_trainer("run", "training.validate_every=15", "training.save_every=7")
    assert train(trainer) is True
    assert sorted(int(path.name) for path in (trainer.run / "checkpoints").iterdir()) == [14, 15, 21, 28, 30]
    assert (trainer.run / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert next((trainer.run / "tensorboard").iterdir()).name.startswith("events")
    assert [(record["update"], *record) for record in metrics(trainer.run)] == [
        (10, "update", "train_loss", "train_rate", "train_norm", "train_speed"),
        (15, "update", "valid_loss", "valid_bleu"),
        (20, "update", "train_loss", "train_rate", "train_norm", "train_speed"),
        (30, "update", "train_loss", "train_rate", "train_norm", "train_speed"),
        (30, "update", "valid_loss", "valid_bleu"),
    ]
    rates = [record["train_rate"] for record in metrics(trainer.run) if "train_rate" in record]
    assert rates == pytest.approx([1.5e-3, 3e-3, 3e-3 * math.sqrt(20 / 30)])


RESUMED = (*("training.max_updates=30", "training.validate_every=8", "training.save_every=5"), "tokenizer.dropout=0.1")


def with_incidents(trainer: Trainer, stop_at: int | None = None) -> Trainer:
    """One update is spoilt, and during number `stop_at`, counted from 0, the run is asked to stop."""

    def loss(model: Transformer, batch: TrainingBatch, smoothing: float) -> Tensor:
        if trainer.progress.updates == stop_at:
            trainer.stop()
        spoilt = trainer.progress.position == Position(1, 2)
        return batch_loss(model, batch, smoothing) * (math.nan if spoilt else 1)

    trainer.loss = loss
    return trainer


@pytest.mark.parametrize(("optimizer", "precision"), [("adam", "bfloat16"), ("muon", "float32")])
def test_a_resumed_run_equals_one_without_a_stop(make_trainer: MakeTrainer, optimizer: str, precision: str) -> None:
    """With dropout, BPE-dropout, a skipped update, and random numbers drawn by others in between."""
    overrides = (*RESUMED, f"training.optimizer={optimizer}", f"training.precision={precision}")
    whole = with_incidents(make_trainer("whole", *overrides))
    assert train(whole) is True
    assert whole.progress.position.epoch > 1, "or the spoilt update never came"

    for seed, stop_at in enumerate((3, 20)):
        torch.manual_seed(seed)
        part = with_incidents(make_trainer("parts", *overrides), stop_at)
        assert part.resume() is bool(seed)
        assert train(part) is False
        assert part.progress.updates == stop_at + 1, "the update in progress is done"
        assert (part.run / f"checkpoints/{stop_at + 1:08d}").is_dir()
    last = with_incidents(make_trainer("parts", *overrides))
    assert last.resume()
    assert train(last) is True
    assert equal(weights_of(last), weights_of(whole))
    assert last.progress.best_score == whole.progress.best_score
    assert last.progress.position == whole.progress.position


@pytest.mark.parametrize(
    ("scores", "origin"),
    [
        ([30.0, 20.0, 10.0], "mean of the last 2 checkpoints"),
        ([20.0, 30.0, 10.0], "checkpoint of update 5"),
        ([20.0, 10.0, 30.0], "checkpoint of update 20"),
    ],
)
def test_the_published_weights_are_the_best_candidate(
    make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch, scores: list[float], origin: str
) -> None:
    kept_and_averaged = ("training.keep_checkpoints=2", "training.average_checkpoints=5")
    trainer = make_trainer("run", "training.validate_every=5", "training.max_updates=20", *kept_and_averaged)
    said = iter([9.0, 3.0, 2.0, 1.0, *scores])  # the first validation is the best, so an old checkpoint is kept
    monkeypatch.setattr(trainer.validation, "bleu", lambda model: next(said))
    train(trainer)
    kept = {path.name: load_weights(path / "model.safetensors") for path in (trainer.run / "checkpoints").iterdir()}
    assert set(kept) == {"00000005", "00000015", "00000020"}
    weights, name, scored = finish(trainer)
    candidates = {
        "mean of the last 2 checkpoints": {n: (kept["00000015"][n] + kept["00000020"][n]) / 2 for n in weights},
        "checkpoint of update 5": kept["00000005"],
        "checkpoint of update 20": kept["00000020"],
    }
    assert (name, scored["valid_bleu"]) == (origin, 30.0)
    torch.testing.assert_close(weights, candidates[origin])


def test_without_a_checkpoint_there_is_no_model(make_trainer: MakeTrainer) -> None:
    with pytest.raises(TrainingError, match="no checkpoint"):
        finish(make_trainer("run"))


def test_validation_leaves_out_what_the_model_cannot_read(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    long = " ".join(["willow"] * 40)
    overrides = ("model.max_length=24", f"data.valid='{tmp_path}/valid.{{language}}'", "training.validate_every=30")
    for language in ("en", "de"):
        (tmp_path / f"valid.{language}").write_text(f"oak elm\n{long}\n")
    trainer = make_trainer("run", *overrides)
    train(trainer)
    assert trainer.progress.best_update == 30
    for language in ("en", "de"):
        (tmp_path / f"valid.{language}").write_text(f"{long}\n{long} oak\n")
    with pytest.raises(TrainingError, match=r"all 2 pairs of .* are longer than model\.max_length, 24"):
        make_trainer("another", *overrides)


def test_only_training_sees_marks(make_trainer: MakeTrainer, tmp_path: Path) -> None:
    corpora = f"[{{path='train.{{language}}', source_tag='bt', weight=0.5}}, '{tmp_path}/test.{{language}}']"
    for language in ("en", "de"):
        (tmp_path / f"test.{language}").write_text("oak elm\n" * 10)
    trainer = make_trainer("run", f"data.train={corpora}", "training.max_updates=10")
    mark = trainer.data.tokenizer.source_tag_id("bt")
    seen: set[int] = set()
    trainer.model.embedding.tokens.register_forward_pre_hook(lambda _, ids: seen.update(ids[0].flatten().tolist()))
    assert train(trainer) and mark in seen
    seen.clear()
    trainer.validation.losses(trainer.model)
    assert len(seen) > 5 and mark not in seen
    card = write_card(trainer.recipe, trainer.data, trainer.progress, Published("mean", {"valid_bleu": 1.0}, "cpu"), {})
    assert "Text: train.{language} (weight 0.5, source tag bt), test.{language} (" in card


def test_gradients_are_summed_in_float32(make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch) -> None:
    """In bfloat16, whose numbers have 8 bits, a sum of two gradients would lose half of its bits."""
    trainer = make_trainer("run", "training.precision=bfloat16")
    assert {parameter.dtype for parameter in trainer.working.model.parameters()} == {torch.bfloat16}
    update = next(trainer.batches.updates(Position()))
    gradients = []
    for world in (World(), World(0, 2)):
        trainer.world = world
        monkeypatch.setattr(dist, "all_reduce", lambda values: values.mul_(1.5).mul_(4 / 3))  # 1.5 needs one more bit
        assert not trainer.learn(update, rate=0.0).problem
        gradients.append({name: p.grad for name, p in trained(trainer.model).items() if p.grad is not None})
    assert gradients[1].keys() == trained(trainer.model).keys()
    # The optimizer divides them by the tokens, of which two such processes have twice as many.
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-6, atol=0)


@pytest.fixture
def without_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tensor, "pin_memory", Tensor.detach)


def numbered(count: int, fail: bool = False) -> Iterator[Update]:
    for number in range(count):
        yield Update([make_batch([[4, 3]], [[5]], np.array([number]))], Position(0, number + 1))
    if fail:
        raise ValueError("line 7")


@pytest.mark.usefixtures("without_a_gpu")
def test_an_error_comes_after_the_updates_before_it_in_their_order() -> None:
    updates = loader.prefetch(numbered(30, fail=True))
    assert [next(updates).next_position.update for _ in range(30)] == list(range(1, 31))
    with pytest.raises(ValueError, match="line 7"):
        next(updates)


@pytest.mark.usefixtures("without_a_gpu")
def test_the_thread_ends_with_who_reads() -> None:
    others = set(threading.enumerate())  # some of them may end
    updates = loader.prefetch(numbered(1000))
    next(updates)
    assert len(set(threading.enumerate()) - others) == 1
    updates.close()  # type: ignore[attr-defined]
    assert not set(threading.enumerate()) - others
