"""The training loop: updates over batches, validation by translating, checkpoints, and a model at the end."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from mt import evaluation
from mt.checkpoint import Description, average_weights, load_weights
from mt.config import Recipe
from mt.data.batching import Batch, TrainingBatches, Update, direction_tags, load_batch, plan_batches
from mt.data.dataset import Prepared
from mt.distributed import World, all_reduce, all_reduce_gradients, barrier
from mt.engine.translator import Translator
from mt.errors import TrainingError
from mt.model.transformer import Transformer
from mt.training.loss import batch_loss, precision_context
from mt.training.report import Reporter
from mt.training.schedule import learning_rate
from mt.training.state import Progress, RunState, checkpoints, prune_checkpoints, restore_checkpoint, save_checkpoint

VALIDATION_TOKENS = 4096  # padded, in a batch of the validation loss


@dataclass(frozen=True)
class Totals:
    """Sums over one update, over all processes."""

    loss: float
    tokens: float
    problem: str  # why the update is skipped, or empty


class Trainer:
    """One run of a recipe over prepared data, in a folder; every process of a `World` has one."""

    def __init__(self, recipe: Recipe, data: Prepared, run: Path, device: torch.device, world: World) -> None:
        self.recipe = recipe
        self.config = recipe.training
        self.data = data
        self.run = run
        self.device = device
        self.world = world
        torch.manual_seed(recipe.seed)
        self.model = Transformer(recipe.model, len(data.tokenizer)).to(device)
        torch.manual_seed(recipe.seed + world.rank)  # the same weights, but dropout of its own, in each process
        self.optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=0.0,
            betas=self.config.adam_betas,
            eps=self.config.adam_epsilon,
            weight_decay=self.config.weight_decay,
            fused=True,
        )
        average = {}
        if self.config.ema_decay is not None:
            average = {name: p.detach().clone() for name, p in self.model.named_parameters()}
        self.progress = Progress()
        self.state = RunState(self.model, self.optimizer, average, self.progress)
        self.batches = TrainingBatches(data.train, data.tokenizer, recipe, world)
        loss: Callable[[Transformer, Batch, float], Tensor] = batch_loss
        self.loss = torch.compile(loss, dynamic=True) if self.config.compile else loss

    @property
    def checkpoints(self) -> Path:
        return self.run / "checkpoints"

    def resume(self) -> bool:
        """Go on from the newest checkpoint; False if there is none."""
        saved = checkpoints(self.checkpoints)
        if saved:
            restore_checkpoint(saved[-1], self.state)
        return bool(saved)

    def train(self, report: Reporter) -> None:
        """Train until the recipe's limit of updates, minutes or patience.

        Raises TrainingError after `max_skipped` skipped updates in a row.
        """
        progress, config = self.progress, self.config
        began = time.monotonic() - progress.seconds
        shown_at, shown_tokens, shown_loss = time.monotonic(), 0.0, 0.0
        for update in self.batches.updates(progress.position):
            if self._is_over():
                break
            totals = self._accumulate(update)
            if totals.problem:
                self._skip(update, totals.problem, report)
                continue
            rate = learning_rate(progress.updates + 1, config, self.recipe.model.d_model)
            norm = self._step(rate, totals.tokens)
            progress.updates += 1
            progress.position = update.next_position
            progress.skipped = 0
            progress.seconds = time.monotonic() - began
            shown_tokens += totals.tokens
            shown_loss += totals.loss
            if progress.updates % 10 == 0:
                speed = shown_tokens / (time.monotonic() - shown_at)
                loss = shown_loss / shown_tokens
                report.progress(progress.updates, f"loss {loss:.3f} | {speed:,.0f} target tokens/s | epoch {progress.position.epoch + 1}")
                report.record(progress.updates, {"train_loss": loss, "train_rate": rate, "train_norm": norm, "train_speed": speed})
                shown_at, shown_tokens, shown_loss = time.monotonic(), 0.0, 0.0
            validated = progress.updates % config.validate_every == 0
            if validated:
                self._validate(report)
                progress.seconds = time.monotonic() - began
                shown_at = time.monotonic()
            if validated or progress.updates % config.save_every == 0:
                self._save()
        if progress.updates > self._last_saved():
            self._save()

    def finish(self, report: Reporter) -> tuple[dict[str, Tensor], str, float]:
        """The weights to publish, what they are, and their BLEU on the validation set.

        The best of three candidates: the best checkpoint, the mean of the last ones, and the exponential average.
        """
        saved = checkpoints(self.checkpoints)
        if not saved:
            raise TrainingError(f"{self.checkpoints}: no checkpoint to make a model of")
        last = saved[-self.config.average :]
        candidates = {f"mean of the last {len(last)} checkpoints": average_weights([path / "model.safetensors" for path in last])}
        if self.progress.best_update:
            best = self.checkpoints / f"{self.progress.best_update:08d}" / "model.safetensors"
            candidates[f"checkpoint of update {self.progress.best_update:,}"] = load_weights(best)
        if self.state.average:
            candidates["exponential average"] = self.state.average
        scored = []
        for name, weights in candidates.items():
            self.model.load_state_dict(weights)
            bleu = self._validation_bleu()
            report.say(f"{name}: {bleu:.2f} BLEU on the validation set")
            scored.append((bleu, name))
        bleu, name = max(scored)
        return candidates[name], name, bleu

    def describe(self) -> Description:
        """What the model directory says of the model."""
        return Description(
            name=self.recipe.run_name,
            directions=self.recipe.data.directions,
            vocabulary_size=len(self.data.tokenizer),
            model=self.recipe.model,
            decoding=self.recipe.decoding,
        )

    def _is_over(self) -> bool:
        config, progress = self.config, self.progress
        late = config.max_minutes is not None and progress.seconds > 60 * config.max_minutes
        if self.world.size > 1:  # clocks differ: all stop if one would
            late = bool(all_reduce(self.world, torch.tensor(float(late), device=self.device)))
        return late or progress.updates >= config.max_updates or progress.stale_validations >= config.patience

    def _accumulate(self, update: Update) -> Totals:
        """Gradients of the summed loss of this update's batches; sums over all processes.

        A batch that does not fit in memory, or whose loss is not finite, is named and spoils the whole update, in
        every process, so that all go on with the same weights.
        """
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        loss, tokens, problem = 0.0, 0, ""
        for batch in update.batches:
            try:
                with precision_context(self.device, self.config.precision):
                    batch_total = self.loss(self.model, batch.to(self.device), self.config.label_smoothing)
                (batch_total / self.config.update_tokens).backward()
            except torch.OutOfMemoryError:
                problem = f"out of memory on a batch of {batch.source.shape} source and {batch.target.shape} target tokens"
                torch.cuda.empty_cache()
                break
            loss += batch_total.item()
            tokens += int((batch.labels != 0).sum())
            if not np.isfinite(loss):
                problem = f"a loss of {loss} on the pairs {batch.indices[0]} and {len(batch.indices) - 1} more"
                break
        sums = torch.tensor([loss, tokens, float(bool(problem))], dtype=torch.float64, device=self.device)
        total_loss, total_tokens, problems = all_reduce(self.world, sums).tolist()
        if problems and not problem:
            problem = "a problem in another process"
        if not problem:
            all_reduce_gradients(self.world, self.model.parameters())
        return Totals(total_loss, total_tokens, problem)

    def _step(self, rate: float, tokens: float) -> float:
        """One step of Adam on the mean gradient over `tokens` target tokens; returns its norm before clipping."""
        gradients = [p.grad for p in self.model.parameters() if p.grad is not None]
        torch._foreach_mul_(gradients, self.config.update_tokens / tokens)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_norm)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.step()
        if self.config.ema_decay is not None:
            for name, parameter in self.model.named_parameters():
                self.state.average[name].lerp_(parameter.detach(), 1 - self.config.ema_decay)
        return float(norm)

    def _skip(self, update: Update, problem: str, report: Reporter) -> None:
        self.progress.position = update.next_position
        self.progress.skipped += 1
        report.say(f"update {self.progress.updates + 1:,} skipped: {problem}")
        if self.progress.skipped > self.config.max_skipped:
            raise TrainingError(
                f"{self.progress.skipped} updates in a row were skipped, the last for {problem}; "
                f"the last checkpoint is update {self._last_saved():,}. A lower training.learning_rate, smaller "
                "training.batch_tokens or precision float32 may help; go on with --resume"
            )

    def _validate(self, report: Reporter) -> None:
        """Loss and BLEU on the validation set; all processes learn the outcome, as the leading one computes it."""
        progress = self.progress
        figures = torch.zeros(2, dtype=torch.float64, device=self.device)
        if self.world.leads:
            figures += torch.tensor([self._validation_loss(), self._validation_bleu()], device=self.device)
        loss, bleu = all_reduce(self.world, figures).tolist()
        better = bleu > progress.best_score
        progress.stale_validations = 0 if better else progress.stale_validations + 1
        if better:
            progress.best_score, progress.best_update = bleu, progress.updates
        report.record(progress.updates, {"valid_loss": loss, "valid_bleu": bleu})
        report.say(
            f"update {progress.updates:,} | {progress.seconds / 60:.1f} min | validation loss {loss:.3f}, "
            f"{bleu:.2f} BLEU" + (", the best so far" if better else "")
        )
        report.draw()

    @torch.inference_mode()
    def _validation_loss(self) -> float:
        """Cross-entropy without smoothing, in nats a target token."""
        self.model.eval()
        valid = self.data.valid
        tags = direction_tags(self.data.tokenizer, self.recipe.data.directions)
        lengths = (valid.source.lengths + 2, valid.target.lengths + 1)
        fits = np.flatnonzero(np.maximum(*lengths) <= self.recipe.model.max_length)
        loss, tokens = 0.0, 0
        for indices in plan_batches(*lengths, VALIDATION_TOKENS, fits):
            batch = load_batch(valid, tags, indices).to(self.device)
            with precision_context(self.device, self.config.precision):
                loss += float(batch_loss(self.model, batch, 0.0))
            tokens += int((batch.labels != 0).sum())
        return loss / tokens

    def _validation_bleu(self) -> float:
        """sacreBLEU over all directions, evenly spaced sentences, translated as a user's would be."""
        self.model.eval()
        valid = self.data.valid
        count = min(self.config.validate_sentences, len(valid))
        chosen = np.linspace(0, len(valid) - 1, count).astype(int)
        translator = Translator(self.model, self.data.tokenizer, self.describe())
        hypotheses, references = [], []
        for number, direction in enumerate(self.recipe.data.directions):
            indices = chosen[valid.direction[chosen] == number]
            source, target = direction.split("-")
            texts = valid.texts("source", indices)
            hypotheses += [t.text for t in translator.translate(texts, source=source, target=target)]
            references += valid.texts("target", indices)
        language = self.recipe.data.directions[0].split("-")[1]
        return evaluation.bleu(hypotheses, references, target_language=language).value

    def _save(self) -> None:
        if self.world.leads:
            save_checkpoint(self.checkpoints, self.state)
            prune_checkpoints(self.checkpoints, self.config.keep, self.progress.best_update)
        barrier(self.world)

    def _last_saved(self) -> int:
        saved = checkpoints(self.checkpoints)
        return int(saved[-1].name) if saved else 0
