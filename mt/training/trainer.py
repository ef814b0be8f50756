"""The training loop: updates over batches, validation, checkpoints, and a model at the end."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from mt.checkpoint import Description, LanguageModelDescription, average_weights, load_weights
from mt.config import Recipe
from mt.data.batching import Batch, TrainingBatches, Update
from mt.data.dataset import Prepared
from mt.distributed import World, all_reduce, all_reduce_gradients, barrier, gather_objects
from mt.errors import TrainingError
from mt.model.transformer import AnyModel
from mt.tokenizer import PAD
from mt.training.loader import ahead
from mt.training.loss import batch_loss
from mt.training.optimizer import optimizers
from mt.training.precision import WorkingCopy, choose_precision
from mt.training.report import Reporter
from mt.training.schedule import learning_rate
from mt.training.sharding import Loss, ShardedLoss, gathered, whole
from mt.training.speed import batch_operations, peak_operations
from mt.training.state import (
    Progress,
    RunState,
    checkpoints,
    load_average,
    prune_checkpoints,
    restore_checkpoint,
    save_checkpoint,
    trained,
)
from mt.training.tuning import first_model, new_model, plain_weights, source_vocabulary_size
from mt.training.validation import TranslationValidation, Validation

RECORD_EVERY = 10  # updates
NAMED_PAIRS = 20  # at most, of a batch that spoilt an update


@dataclass(frozen=True)
class Totals:
    """Sums over one update, over all processes."""

    loss: float
    tokens: float
    operations: float  # of the matrix products
    problem: str  # why the update is skipped, or empty
    norm: float = 0.0  # of the mean gradient, before clipping


@dataclass
class Since:
    """Sums since figures were last recorded; validation and checkpoints are not in the time."""

    loss: float = 0.0
    tokens: float = 0.0
    operations: float = 0.0
    seconds: float = 0.0
    mark: float = field(default_factory=time.monotonic)  # when training last went on

    def add(self, totals: Totals) -> None:
        now = time.monotonic()
        self.loss += totals.loss
        self.tokens += totals.tokens
        self.operations += totals.operations
        self.seconds += now - self.mark
        self.mark = now

    @property
    def mean_loss(self) -> float:
        return self.loss / self.tokens

    @property
    def speed(self) -> float:
        """Target tokens a second."""
        return self.tokens / self.seconds

    def share_of(self, peak: float | None) -> dict[str, float]:
        """The operations a second as a share of `peak`, if that is known."""
        return {} if peak is None else {"train_mfu": self.operations / self.seconds / peak}


def is_out_of_memory(error: RuntimeError) -> bool:
    """torch has a class of its own for a GPU that is full, and words for a CPU's memory."""
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


class Trainer:
    """One run of a recipe over prepared data, in a folder; every process of a `World` has one."""

    def __init__(self, recipe: Recipe, data: Prepared, run: Path, device: torch.device, world: World) -> None:
        """Raises DataError if every training pair is too long, TrainingError if every validation pair is."""
        self.recipe = recipe
        self.config = recipe.training
        self.data = data
        self.run = run
        self.device = device
        self.world = world
        torch.manual_seed(recipe.seed)
        self.precision = choose_precision(self.config.precision, device, world)
        self.sharded = self.config.shard and world.size > 1
        self.model = first_model(recipe, data.tokenizer)
        loss: Loss = torch.compile(batch_loss, dynamic=True) if self.config.compile else batch_loss
        if self.sharded:  # pieces go to the device, one layer at a time
            self.loss: Loss = ShardedLoss(loss, self.model, self.precision, device, world)
            self.working = WorkingCopy(self.model, "float32")
        else:
            self.loss = loss
            self.working = WorkingCopy(self.model.to(device), self.precision)
        self.optimizers = optimizers(self.model, self.config, self.working.dtype, world)
        average = {}
        if self.config.ema_decay is not None:
            average = {name: p.detach().clone() for name, p in trained(self.model).items()}
        self.progress = Progress()
        self.state = RunState(self.model, self.optimizers, average, self.progress, world, str(data.meta["digest"]))
        self.batches = TrainingBatches(data.train, data.tokenizer, recipe, world)
        about = self.describe()
        self.validation = Validation(recipe, data)
        if isinstance(about, Description):
            self.validation = TranslationValidation(recipe, data, about)
        peak = peak_operations(torch.cuda.get_device_name(device)) if device.type == "cuda" else None
        self.peak = None if peak is None else peak * world.size
        self._asked_to_stop = False
        self._saved = 0  # the update of the newest checkpoint

    @property
    def checkpoints(self) -> Path:
        return self.run / "checkpoints"

    def resume(self) -> bool:
        """Go on from the newest checkpoint; False if there is none."""
        saved = [path.name for path in checkpoints(self.checkpoints)]
        # What the leading process sees: on a shared disk the newest may not be there for all at once.
        newest = gather_objects(self.world, saved[-1] if saved else "")[0]
        if newest:
            restore_checkpoint(self.checkpoints / newest, self.state)
            self._saved = self.progress.updates
        return bool(newest)

    def stop(self) -> None:
        """End `train`, with a checkpoint, once the update in progress is done; a signal handler may call this."""
        self._asked_to_stop = True

    def train(self, report: Reporter) -> bool:
        """Train until the recipe's limit of updates, minutes or patience; False if `stop` ended it before.

        Raises TrainingError after more than `max_skipped` skipped updates in a row.
        """
        progress, config = self.progress, self.config
        began = time.monotonic() - progress.seconds
        since = Since()
        over = stopped = False
        if self.recipe.tuning and not progress.updates:
            progress.before = self._figures()
            report.record(0, progress.before)
            report.say(f"before tuning | {self.validation.in_words(progress.before)}")
            since.mark = time.monotonic()
        updates = self.batches.updates(progress.position)
        for update in ahead(updates) if self.device.type == "cuda" else updates:
            over, stopped = self._is_over()
            if over or stopped:
                break
            rate = learning_rate(progress.updates + 1, config, self.recipe.model.d_model)
            totals = self.learn(update, rate)
            progress.position = update.next_position
            if totals.problem:
                self._skip(totals.problem, report)
                continue
            progress.updates += 1
            progress.skipped = 0
            progress.seconds = time.monotonic() - began
            since.add(totals)
            if progress.updates % RECORD_EVERY == 0:
                figures = f"loss {since.mean_loss:.3f} | {since.speed:,.0f} target tokens/s"
                report.progress(progress.updates, f"{figures} | epoch {progress.position.epoch + 1}")
                values = {"train_loss": since.mean_loss, "train_rate": rate, "train_norm": totals.norm}
                report.record(progress.updates, {**values, "train_speed": since.speed, **since.share_of(self.peak)})
                since = Since()
            validated = progress.updates % config.validate_every == 0
            if validated:
                self._validate(report)
                progress.seconds = time.monotonic() - began
            if validated or progress.updates % config.save_every == 0:
                self._save()
            since.mark = time.monotonic()
        if progress.updates > self._saved:
            self._save()
        return over

    def learn(self, update: Update, rate: float) -> Totals:
        """One step on the batches of this process and of all others, or what kept it from being made."""
        totals = self._accumulate(update)
        if totals.problem:
            return totals
        norm = self._step(rate, totals.tokens)
        return replace(totals, norm=norm, problem=self._gradient_problem(norm, update))

    def finish(self, report: Reporter) -> tuple[dict[str, Tensor], str, dict[str, float]]:
        """The weights to publish, what they are, and what validation says of them.

        The best of three candidates: the best checkpoint, the mean of the last ones, and the exponential average.
        """
        saved = checkpoints(self.checkpoints)
        if not saved:
            raise TrainingError(f"{self.checkpoints}: no checkpoint to make a model of")
        last = saved[-min(self.config.average, self.config.keep) :]  # before those, the best may stand alone
        plain = partial(plain_weights, recipe=self.recipe)  # the mean of products is not the product of means
        mean = average_weights([path / "model.safetensors" for path in last], plain)
        candidates = {f"mean of the last {len(last)} checkpoints": mean}
        best = self.checkpoints / f"{self.progress.best_update:08d}" / "model.safetensors"
        if best.exists():
            candidates[f"checkpoint of update {self.progress.best_update:,}"] = load_weights(best)
        if self.state.average and (average := load_average(saved[-1])):
            candidates["exponential average"] = load_weights(saved[-1] / "model.safetensors") | average
        scored = []
        for name, weights in candidates.items():
            model = self.model_of(weights)
            figures = self.validation.figures(model, model)
            report.say(f"{name}: {self.validation.verdict(figures)} on the validation set")
            scored.append((self.validation.score(figures), name, figures))
        _, name, figures = max(scored, key=lambda each: each[:2])
        return plain_weights(candidates[name], self.recipe), name, figures

    def model_of(self, weights: Mapping[str, Tensor]) -> AnyModel:
        """A model of its own, whole, on the device and ready for use."""
        model = new_model(self.recipe, self.data.tokenizer)
        model.load_state_dict(plain_weights(weights, self.recipe))
        return model.to(self.device).eval()

    def describe(self) -> Description | LanguageModelDescription:
        """What the model directory says of the model."""
        name, language, size = self.recipe.run_name, self.recipe.data.language, self.model.vocabulary_size
        if language:
            return LanguageModelDescription(name=name, language=language, vocabulary_size=size, model=self.recipe.model)
        return Description(
            name=name,
            directions=self.recipe.directions,
            vocabulary_size=size,
            source_vocabulary_size=source_vocabulary_size(self.recipe, self.data.tokenizer),
            model=self.recipe.model,
            decoding=self.recipe.decoding,
        )

    def _is_over(self) -> tuple[bool, bool]:
        """Whether a limit of the recipe is reached, and whether `stop` was called; the same in every process."""
        config, progress = self.config, self.progress
        late = config.max_minutes is not None and progress.seconds > 60 * config.max_minutes
        stopped = self._asked_to_stop
        if self.world.size > 1:  # clocks and signals differ: all stop if one would
            votes = torch.tensor([float(late), float(stopped)], device=self.device)
            late, stopped = (bool(vote) for vote in all_reduce(self.world, votes).tolist())
        return late or progress.updates >= config.max_updates or progress.stale_validations >= config.patience, stopped

    def _accumulate(self, update: Update) -> Totals:
        """Gradients of the summed loss of this update's batches; sums over all processes.

        A batch that does not fit in memory, or whose loss is not finite, is named and spoils the whole update, in
        every process, so that all go on with the same weights.
        """
        self.working.refresh()
        self.working.model.train()
        self.model.zero_grad(set_to_none=True)
        losses, tokens, operations, problem = [], 0, 0.0, ""
        for batch in update.batches:
            loss = self._add_gradients(batch)
            if loss is None:
                problem = f"out of memory on {self._describe(batch)}"
                break
            losses.append(loss)
            tokens += int((batch.labels != PAD).sum())
            operations += (2 if self.config.r_drop else 1) * batch_operations(self.model, batch)
        values = torch.stack(losses).tolist() if losses else []  # only here does the host wait for a GPU
        for value, batch in zip(values, update.batches, strict=False):
            if not math.isfinite(value) and not problem:
                problem = f"a loss of {value} on {self._describe(batch)}"
        mine = [sum(values), tokens, operations, float(bool(problem))]
        sums = torch.tensor(mine, dtype=torch.float64, device=self.device)
        total_loss, total_tokens, operations, spoilt = all_reduce(self.world, sums).tolist()
        if spoilt:
            problem = "; ".join(filter(None, gather_objects(self.world, problem)))
        elif not self.sharded:  # else each backward pass has done it
            all_reduce_gradients(self.world, trained(self.model).values(), self.working.dtype)
        return Totals(total_loss, total_tokens, operations, problem)

    def _add_gradients(self, batch: Batch) -> Tensor | None:
        """The summed loss of a batch, whose gradients are added; None if it does not fit in memory.

        Dropout is seeded by the batch, so that it depends neither on what came before, which a resumed run would have
        to remember, nor on the process that the batch falls to.
        """
        seed = np.random.SeedSequence((self.recipe.seed, self.progress.position.epoch, batch.indices[0]))
        torch.manual_seed(int(seed.generate_state(1)[0]))
        try:
            summed = self.loss(
                self.working.model, batch.to(self.device), self.config.label_smoothing, self.config.r_drop
            )
            torch.autograd.backward(summed / self.config.update_tokens)
            self.working.collect()
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            if self.sharded:  # the others wait in a layer for this process
                raise TrainingError(
                    f"out of memory on {self._describe(batch)}, which a sharded run cannot skip; accepted: "
                    "smaller training.batch_tokens, with --resume"
                ) from error
        else:
            return summed.detach()
        torch.cuda.empty_cache()  # now that the error, which holds on to the activations, is gone
        return None

    def _describe(self, batch: Batch) -> str:
        """What a user needs to find the pairs of a batch."""
        source, target = (self.data.train.texts(side, batch.indices[:1])[0] for side in ("source", "target"))
        named = ", ".join(map(str, batch.indices[:NAMED_PAIRS])) + (", ..." if len(batch.indices) > NAMED_PAIRS else "")
        return (
            f"a batch of {len(batch.indices)} pairs, padded to {batch.source.shape[1]} source and "
            f"{batch.target.shape[1]} target tokens: number {named} of the prepared ones; "
            f"the first is {source!r} with {target!r}"
        )

    def _step(self, rate: float, tokens: float) -> float:
        """One step on the mean gradient over `tokens` target tokens; returns its norm before clipping.

        If that is not finite, nothing changes.
        """
        scale = self.config.update_tokens / tokens
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        norm = float(whole(torch.nn.utils.get_total_norm(gradients))) * scale
        if not math.isfinite(norm):
            return norm
        # The step divides each gradient by this: the mean and the clipping cost no pass of their own.
        divisor = torch.tensor(max(1.0, norm / self.config.clip_norm) / scale, device=self.device)
        for optimizer in self.optimizers:
            optimizer.grad_scale = divisor  # type: ignore[attr-defined]
            for group in optimizer.param_groups:
                group["lr"] = rate
            optimizer.step()
        if self.config.ema_decay is not None:
            for name, parameter in trained(self.model).items():
                self.state.average[name].lerp_(parameter.detach(), 1 - self.config.ema_decay)
        return norm

    def _gradient_problem(self, norm: float, update: Update) -> str:
        if math.isfinite(norm):
            return ""
        batches = [batch for theirs in gather_objects(self.world, update.batches) for batch in theirs]
        return f"a gradient of norm {norm} on " + "; or ".join(map(self._describe, batches))

    def _skip(self, problem: str, report: Reporter) -> None:
        self.progress.skipped += 1
        report.say(f"update {self.progress.updates + 1:,} skipped: {problem}")
        if self.progress.skipped > self.config.max_skipped:
            raise TrainingError(
                f"{self.progress.skipped} updates in a row were skipped, the last for {problem}; "
                f"the last checkpoint is update {self._saved:,}. A lower training.learning_rate, smaller "
                "training.batch_tokens or precision float32 may help; go on with --resume"
            )

    def _validate(self, report: Reporter) -> None:
        """Figures of the validation set; all processes learn the outcome, as the leading one computes it."""
        progress = self.progress
        figures = self._figures()
        score = self.validation.score(figures)
        better = score > progress.best_score
        progress.stale_validations = 0 if better else progress.stale_validations + 1
        if better:
            progress.best_score, progress.best_update = score, progress.updates
        report.record(progress.updates, figures)
        report.say(
            f"update {progress.updates:,} | {progress.seconds / 60:.1f} min | {self.validation.in_words(figures)}"
            + (" | the best so far" if better else "")
        )
        report.draw()

    def _figures(self) -> dict[str, float]:
        """Those of `Validation.names`: all processes learn what the leading one computes."""
        names = self.validation.names
        figures = torch.zeros(len(names), dtype=torch.float64, device=self.device)
        working = self._whole()
        if self.world.leads:
            working.refresh()
            found = self.validation.figures(working.model, working.master)
            figures += torch.tensor([found[name] for name in names]).to(figures)
        barrier(self.world)
        return dict(zip(names, all_reduce(self.world, figures).tolist(), strict=True))

    def _whole(self) -> WorkingCopy:
        """The model in one piece, adapters folded in. If it is sharded, only the leading process is given it."""
        if not self.sharded and not (self.recipe.tuning and self.recipe.tuning.adapter_rank):
            return self.working
        weights = gathered(self.model.state_dict(), self.world)
        return WorkingCopy(self.model_of(weights), self.precision) if self.world.leads else self.working

    def _save(self) -> None:
        save_checkpoint(self.checkpoints, self.state)
        if self.world.leads:
            prune_checkpoints(self.checkpoints, self.config.keep, self.progress.best_update)
        self._saved = self.progress.updates
        barrier(self.world)
