"""The training loop: updates, validation, checkpoints, and the choice of the final weights."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from mt.arrays import average_arrays, load_arrays
from mt.checkpoint import read_description
from mt.config import Recipe
from mt.data.batching import TrainingBatch, Update, UpdateStream
from mt.data.dataset import PreparedData
from mt.description import Description
from mt.distributed import World, all_reduce, all_reduce_gradients, barrier, gather_objects
from mt.errors import ModelError, TrainingError
from mt.model.transformer import Transformer
from mt.training.loader import prefetch
from mt.training.loss import batch_loss
from mt.training.optimizer import optimizers, scaled_step
from mt.training.precision import WorkingCopy, choose_precision
from mt.training.report import BLEU, Reporter
from mt.training.schedule import cooldown, learning_rate, peak_warning, warmup_updates
from mt.training.state import (
    Progress,
    RunState,
    as_tensors,
    checkpoints,
    prune_checkpoints,
    restore_checkpoint,
    save_checkpoint,
    trained,
)
from mt.training.tuning import first_model, forgetting_warning, new_model, source_vocabulary_size
from mt.training.validation import Validation

RECORD_EVERY = 10  # updates
COVERED_SHARE = 0.999  # share of the sources of the training text that are not longer than `source_length` of the model
MAX_SKIPPED = 5  # consecutive updates, skipped because of a loss that is not finite or a lack of memory
MEASURED_UPDATES = range(3, 13)  # updates whose time is measured; earlier updates warm up caches
LONGEST_UNSAVED, UNSAVED_SHARE = 3, 0.2  # maximum number of minutes between checkpoints, and share of `max_minutes`
NAMED_PAIRS = 20  # maximum number of pairs of a batch that a message lists


@dataclass(frozen=True)
class Totals:
    """Sums over all batches of one update, and over all processes."""

    loss: float
    tokens: float
    problem: str  # reason to skip the update, or empty
    norm: float = 0.0  # norm of the mean gradient, before clipping


@dataclass
class Interval:
    """Sums over the updates since metrics were last recorded. `seconds` excludes validation and checkpoints."""

    loss: float = 0.0
    tokens: float = 0.0
    seconds: float = 0.0
    resumed: float = field(default_factory=time.monotonic)  # time of the last update, validation or checkpoint

    def add(self, totals: Totals) -> None:
        now = time.monotonic()
        self.loss += totals.loss
        self.tokens += totals.tokens
        self.seconds += now - self.resumed
        self.resumed = now

    def __str__(self) -> str:
        return f"loss {self.loss / self.tokens:.3f} | {self.tokens / self.seconds:,.0f} target tokens/s"

    def metrics(self, rate: float, norm: float) -> dict[str, float]:
        """Return the metrics to record, by name. `train_speed` is the number of target tokens per second.

        `rate` is the learning rate and `norm` the norm of the gradient in the last update.
        """
        speed = self.tokens / self.seconds
        return {"train_loss": self.loss / self.tokens, "train_rate": rate, "train_norm": norm, "train_speed": speed}


def is_out_of_memory(error: RuntimeError) -> bool:
    """Return whether torch raised `error` because memory ran out. For CPUs, torch has no class of this error."""
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


class Trainer:
    """One process of a training run. `world` is the group of all processes of the run."""

    def __init__(self, recipe: Recipe, data: PreparedData, run: Path, device: torch.device, world: World) -> None:
        """Prepare the model, the optimizers and the data. `run` is the folder of the run.

        Raises: DataError if all training pairs are too long; TrainingError if all pairs of a validation set are.
        """
        self.recipe = recipe
        self.config = recipe.training
        self.data = data
        self.run = run
        self.device = device
        self.world = world
        torch.manual_seed(recipe.seed)
        self.precision = choose_precision(self.config.precision, device, world)
        self.model = first_model(recipe, data.tokenizer).to(device)
        self.loss = batch_loss
        self.working = WorkingCopy(self.model, self.precision)
        self.optimizers = optimizers(self.model, self.config, self.working.dtype, world)
        self.progress = Progress()
        self.state = RunState(self.model, self.optimizers, self.progress, str(data.meta["digest"]))
        self.batches = UpdateStream(data.train, data.tokenizer, recipe, world)
        self.validation = Validation(recipe, data, self.describe())
        self._stop_requested = False
        self._saved = 0  # the update of the newest checkpoint

    @property
    def checkpoints(self) -> Path:
        return self.run / "checkpoints"

    def resume(self) -> bool:
        """Restore the newest checkpoint of the run. Return False if the run has no checkpoint."""
        saved = [path.name for path in checkpoints(self.checkpoints)]
        # Rank 0 decides which checkpoint is the newest: on a shared disk, other processes may see it later.
        newest = gather_objects(self.world, saved[-1] if saved else "")[0]
        if newest:
            try:
                restore_checkpoint(self.checkpoints / newest, self.state)
            except ModelError as error:  # as after a full disk
                earlier = f". To resume from {saved[-2]}, delete {self.checkpoints / newest}" if saved[1:] else ""
                raise ModelError(f"{error}{earlier}") from error
            self._saved = self.progress.updates
        return bool(newest)

    def stop(self) -> None:
        """Let `train` finish the current update, save a checkpoint and return. Signal handlers may call this method."""
        self._stop_requested = True

    def train(self, report: Reporter) -> bool:
        """Train until a limit (updates, minutes or patience) or `stop` ends it. Return whether a limit was reached.

        Raises: TrainingError if more than `MAX_SKIPPED` updates in a row are skipped.
        """
        progress, config = self.progress, self.config
        if warning := peak_warning(config, config.max_updates, progress.planned_updates):
            report.print(f"warning: {warning}")
        began = time.monotonic() - progress.seconds
        interval = Interval()
        longest = 60 * min(LONGEST_UNSAVED, UNSAVED_SHARE * (config.max_minutes or math.inf))
        over, stopped, saved_at = False, False, progress.seconds
        if self.recipe.tuning and not progress.updates:
            progress.before = self._validation_metrics()
            report.record(0, progress.before)
            report.print(f"before tuning | {self.validation.describe(progress.before)}")
            interval.resumed = time.monotonic()
        updates = self.batches.updates(progress.position)
        for update in prefetch(updates) if self.device.type == "cuda" else updates:
            over, stopped = self._is_over()
            if over or stopped:
                break
            if progress.updates == self._saved:
                saved_at = progress.seconds  # equal in all processes, as `unsaved` must be: see _is_over
            unsaved = progress.seconds - saved_at
            self._plan_updates()
            rate = self._learning_rate()
            totals = self.learn(update, rate)
            progress.position = update.next_position
            if totals.problem:
                self._skip(totals.problem, report)
                continue
            progress.updates += 1
            progress.skipped = 0
            progress.seconds = time.monotonic() - began
            interval.add(totals)
            status = f"{interval} | epoch {progress.position.epoch + 1}"
            report.show_progress(progress.updates, progress.seconds, status)
            if progress.updates % RECORD_EVERY == 0:
                report.record(progress.updates, interval.metrics(rate, totals.norm))
                interval = Interval()
            validated = progress.updates % config.validate_every == 0
            if validated:
                self._validate(report)
                progress.seconds = time.monotonic() - began
            if validated or unsaved >= longest or progress.updates % config.save_every == 0:
                self._save()
            interval.resumed = time.monotonic()
        if progress.updates > self._saved:
            self._save()
        warnings = (peak_warning(config, progress.updates, progress.planned_updates), forgetting_warning(self.recipe))
        for warning in filter(None, warnings if over else ()):
            report.print(f"warning: {warning}")
        return over

    def learn(self, update: Update, rate: float) -> Totals:
        """Train on one update, and return the totals. If their `problem` is not empty, no weight has changed."""
        totals = self._accumulate(update)
        if totals.problem:
            return totals
        norm = self._step(rate, totals.tokens)
        return replace(totals, norm=norm, problem=self._gradient_problem(norm, update))

    def finish(self, report: Reporter) -> tuple[dict[str, Tensor], str, dict[str, float]]:
        """Return (weights to publish, description of their origin, their validation metrics by name).

        The best and the last checkpoint and the mean of the last checkpoints are evaluated on the validation set, and
        the best of them is returned. The last checkpoint often was not evaluated during training, but is usually the
        best after a cool-down. Raises: TrainingError if there is no checkpoint.
        """
        saved = checkpoints(self.checkpoints)
        if not saved:
            raise TrainingError(f"{self.checkpoints} contains no checkpoint; accepted: a run with at least one")
        last = saved[-min(self.config.average_checkpoints, self.config.keep_checkpoints) :]
        mean = as_tensors(average_arrays([path / "model.safetensors" for path in last]))
        candidates = {f"mean of the last {len(last)} checkpoints": mean} if len(last) > 1 else {}
        best = self.checkpoints / f"{self.progress.best_update:08d}"
        for path in dict.fromkeys((best, saved[-1])):
            if path.exists():
                arrays = load_arrays(path / "model.safetensors")
                candidates[f"checkpoint of update {int(path.name):,}"] = as_tensors(arrays)
        scored = []
        for name, weights in candidates.items():
            model = self.model_of(weights)
            metrics = self.validation.metrics(model, model)
            report.print(f"{name}: {metrics[BLEU]:.2f} BLEU on the validation set")
            scored.append((metrics[BLEU], name, metrics))
        _, name, metrics = max(scored, key=lambda candidate: candidate[:2])
        changes = ((key, value, metrics[key]) for key, value in self.progress.before.items())
        worse = [f"{key} {old:.3f} -> {v:.3f}" for key, old, v in changes if (v < old if key == BLEU else v > old)]
        if worse:
            report.print(f"warning: worse than before tuning: {', '.join(worse)}")
        return candidates[name], name, metrics

    def model_of(self, weights: Mapping[str, Tensor]) -> Transformer:
        """Return a new model with `weights`, on the device, in evaluation mode."""
        model = new_model(self.recipe, self.data.tokenizer)
        model.load_state_dict(weights)
        return model.to(self.device).eval()

    def describe(self) -> Description:
        first = read_description(self.recipe.tuning.model) if self.recipe.tuning else None
        covered = int(np.quantile(self.data.train.source.lengths, COVERED_SHARE))
        return Description(
            name=self.recipe.run_name,
            about=self.recipe.about,
            directions=self.recipe.directions,
            vocabulary_size=self.model.vocabulary_size,
            source_vocabulary_size=source_vocabulary_size(self.recipe, self.data.tokenizer),
            model=self.recipe.architecture,
            decoding=self.recipe.decoding,
            normalised_text=first is None or first.normalised_text,
            source_length=max(covered, first.source_length if first else 1),
        )

    def _plan_updates(self) -> None:
        """Set `progress.planned_updates`: with `max_minutes`, from the measured updates so far."""
        config, progress, update = self.config, self.progress, self.progress.updates + 1
        if config.max_minutes is None:
            progress.planned_updates = config.max_updates
        elif update == MEASURED_UPDATES.start:
            progress.measured_from = progress.seconds
        elif MEASURED_UPDATES.start < update <= MEASURED_UPDATES.stop:
            seconds = (progress.seconds - progress.measured_from) / (update - MEASURED_UPDATES.start)
            left = int((60 * config.max_minutes - progress.seconds) / max(seconds, 1e-6))
            progress.planned_updates = min(config.max_updates, progress.updates + left)

    def _learning_rate(self) -> float:
        """Return the learning rate of the next update."""
        config, progress, update = self.config, self.progress, self.progress.updates + 1
        warmup = warmup_updates(config, progress.planned_updates)
        rate = learning_rate(update, config, self.recipe.model.d_model, warmup)
        return rate * cooldown(update, progress.seconds, config)

    def _is_over(self) -> tuple[bool, bool]:
        """Return (whether a limit of the recipe is reached, whether `stop` was called), equal in all processes."""
        config, progress = self.config, self.progress
        stopped = self._stop_requested
        if self.world.size > 1:  # clocks and signals differ between processes
            values = torch.tensor([float(stopped), progress.seconds], dtype=torch.float64, device=self.device)
            stops, seconds = all_reduce(self.world, values).tolist()
            stopped, progress.seconds = bool(stops), seconds / self.world.size
        late = config.max_minutes is not None and progress.seconds > 60 * config.max_minutes
        return late or progress.updates >= config.max_updates or progress.stale_validations >= config.patience, stopped

    def _accumulate(self, update: Update) -> Totals:
        """Compute the gradients of the loss, summed over all batches of an update and all processes. Return the totals.

        If a batch does not fit in memory or its loss is not finite, `Totals.problem` describes the batch in all
        processes. They must then skip the update, so that their weights stay equal.
        """
        self.working.refresh()
        self.working.model.train()
        self.model.zero_grad(set_to_none=True)
        losses, tokens, problem = [], 0, ""
        for batch in update.batches:
            loss = self._add_gradients(batch)
            if loss is None:
                problem = f"out of memory on {self._describe(batch)}"
                break
            losses.append(loss)
            tokens += len(batch.label_indices)
        total = torch.stack(losses).sum(0, keepdim=True, dtype=torch.float64) if losses else self._sent(0.0)
        sums = torch.cat((total, self._sent(tokens, float(bool(problem)))))
        total_loss, total_tokens, failed = all_reduce(self.world, sums).tolist()
        if not math.isfinite(total_loss):
            failed = True
            for value, batch in zip(map(float, losses), update.batches, strict=False):
                if not math.isfinite(value) and not problem:
                    problem = f"a loss of {value} on {self._describe(batch)}"
        if failed:
            problem = "; ".join(filter(None, gather_objects(self.world, problem)))
        else:
            all_reduce_gradients(self.world, trained(self.model).values())
        return Totals(total_loss, total_tokens, problem)

    def _add_gradients(self, batch: TrainingBatch) -> Tensor | None:
        """Add the gradients of a batch to those of the model. Return the loss, or None if memory ran out.

        The loss is the sum over the target tokens. The seed of dropout depends only on recipe, epoch and batch, so that
        it is the same after a resume.
        """
        seed = np.random.SeedSequence((self.recipe.seed, self.progress.position.epoch, batch.indices[0]))
        torch.manual_seed(int(seed.generate_state(1)[0]))
        try:
            summed = self.loss(self.working.model, batch.to(self.device), self.config.label_smoothing)
            torch.autograd.backward(summed / self.config.update_tokens)
            self.working.collect()
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
        else:
            return summed.detach()
        torch.cuda.empty_cache()  # after `except`, because the exception keeps the activations alive
        return None

    def _sent(self, *numbers: float, dtype: torch.dtype = torch.float64) -> Tensor:
        """Return a tensor of `numbers` on the device. They are copied to a GPU asynchronously."""
        tensor = torch.tensor(numbers, dtype=dtype)
        return tensor if self.device.type == "cpu" else tensor.pin_memory().to(self.device, non_blocking=True)

    def _describe(self, batch: TrainingBatch) -> str:
        """Return a description of a batch: its sizes, the numbers of its pairs, and the text of the first pair."""
        source, target = (self.data.train.texts(side, batch.indices[:1])[0] for side in ("source", "target"))
        named = ", ".join(map(str, batch.indices[:NAMED_PAIRS])) + (", ..." if len(batch.indices) > NAMED_PAIRS else "")
        return (
            f"a batch of {len(batch.indices)} pairs, padded to {batch.source.shape[1]} source and "
            f"{batch.target.shape[1]} target tokens: pairs {named} of the prepared data; "
            f"the first has source {source!r} and target {target!r}"
        )

    def _step(self, rate: float, tokens: float) -> float:
        """Update the weights, and return the norm of the gradient before clipping.

        The gradient is the mean over `tokens` target tokens. If the norm is not finite, nothing is updated.
        """
        scale = self.config.update_tokens / tokens
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        norm = float(torch.nn.utils.get_total_norm(gradients)) * scale
        if not math.isfinite(norm):
            return norm
        # The optimizers divide the gradients as they read them, so mean and clipping need no separate pass.
        divisor = self._sent(max(1.0, norm / self.config.clip_norm) / scale, dtype=torch.float32)[0]
        for optimizer in self.optimizers:
            scaled_step(optimizer, rate, divisor)
        return norm

    def _gradient_problem(self, norm: float, update: Update) -> str:
        if math.isfinite(norm):
            return ""
        batches = [batch for rank in gather_objects(self.world, update.batches) for batch in rank]
        return f"a gradient of norm {norm} on " + "; or ".join(map(self._describe, batches))

    def _skip(self, problem: str, report: Reporter) -> None:
        self.progress.skipped += 1
        report.print(f"update {self.progress.updates + 1:,} skipped: {problem}")
        if self.progress.skipped > MAX_SKIPPED:
            raise TrainingError(
                f"{self.progress.skipped} updates in a row were skipped, the last because of {problem}; "
                f"the last checkpoint is that of update {self._saved:,}. Reduce training.learning_rate or "
                "training.batch_tokens, or set training.precision to float32, and resume with --resume"
            )

    def _validate(self, report: Reporter) -> None:
        """Compute and report the validation metrics, and update the best score in `progress`."""
        progress = self.progress
        metrics = self._validation_metrics()
        better = metrics[BLEU] > progress.best_score
        progress.stale_validations = 0 if better else progress.stale_validations + 1
        if better:
            progress.best_score, progress.best_update = metrics[BLEU], progress.updates
        report.record(progress.updates, metrics)
        report.print(
            f"update {progress.updates:,} | {progress.seconds / 60:.1f} min | {self.validation.describe(metrics)}"
            + (" | the best so far" if better else "")
        )
        report.plot()

    def _validation_metrics(self) -> dict[str, float]:
        """Compute the validation metrics in rank 0, and return them in all processes."""
        names = self.validation.names
        values = torch.zeros(len(names), dtype=torch.float64, device=self.device)
        if self.world.is_main:
            self.working.refresh()
            metrics = self.validation.metrics(self.working.model, self.model)
            values += torch.tensor([metrics[name] for name in names]).to(values)
        barrier(self.world)
        return dict(zip(names, all_reduce(self.world, values).tolist(), strict=True))

    def _save(self) -> None:
        if self.world.is_main:
            save_checkpoint(self.checkpoints, self.state)
            prune_checkpoints(self.checkpoints, self.config, self.progress.best_update)
        self._saved = self.progress.updates
        barrier(self.world)
