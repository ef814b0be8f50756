"""What the validation set says of a model: its loss, the BLEU of its translations, and the loss on other corpora."""

from collections.abc import Mapping

import numpy as np
import torch

from mt import evaluation
from mt.checkpoint import CalibrationPair, Description, LoadedModel
from mt.config import Recipe
from mt.data.batching import direction_tags, load_batch, plan_batches
from mt.data.dataset import ParallelDataset, Prepared
from mt.engine.translator import Translator
from mt.errors import TrainingError
from mt.model.transformer import AnyModel, Transformer
from mt.tokenizer import PAD
from mt.training.loss import batch_loss
from mt.training.report import WATCHED

BATCH_TOKENS = 4096  # padded, in a batch of the loss


class Validation:
    """By the loss alone, as a language model is judged, on those pairs of a validation set that a model can read."""

    def __init__(self, recipe: Recipe, data: Prepared) -> None:
        """Raises TrainingError if there are none."""
        self.recipe = recipe
        self.data = data
        limit = recipe.model.max_length
        self.readable = _readable(data.valid, limit)
        self.sets = {"valid_loss": (data.valid, self.readable)}
        self.sets |= {f"{WATCHED}{path}": (there, _readable(there, limit)) for path, there in data.watch.items()}
        for dataset, readable in self.sets.values():
            if not len(readable):
                raise TrainingError(
                    f"none of the {len(dataset):,} validation pairs is short enough for model.max_length {limit}; "
                    "accepted: a higher one"
                )

    @property
    def names(self) -> list[str]:
        """Of the figures: `valid_loss`, what the model is judged by, and a loss for each corpus that is watched."""
        first, *watched = self.sets
        return [first, self.judge, *watched]

    @property
    def judge(self) -> str:
        """The name of the figure that decides which model is the best."""
        return "valid_perplexity"

    def figures(self, model: AnyModel, exact: AnyModel) -> dict[str, float]:
        """All of them; `exact` is the model in the numbers that it will have for users."""
        losses = self.losses(model)
        return {**losses, self.judge: float(torch.tensor(losses["valid_loss"]).exp())}  # inf if that is too large

    def score(self, figures: Mapping[str, float]) -> float:
        """What is higher for the better model: here the mean probability of a token, 1 / perplexity."""
        return 1 / figures[self.judge]

    def verdict(self, figures: Mapping[str, float]) -> str:
        """What decides, in words."""
        return f"perplexity {figures[self.judge]:.2f}"

    def in_words(self, figures: Mapping[str, float]) -> str:
        """All figures, for a line of the report."""
        watched = [
            f"{name.removeprefix(WATCHED)} {loss:.3f}" for name, loss in figures.items() if name.startswith(WATCHED)
        ]
        said = f"validation loss {figures['valid_loss']:.3f}, {self.verdict(figures)}"
        return said + (f" | watched loss: {', '.join(watched)}" if watched else "")

    def losses(self, model: AnyModel) -> dict[str, float]:
        """On the validation set and on each corpus that is watched."""
        return {name: self._loss(model, *readable) for name, readable in self.sets.items()}

    @torch.inference_mode()
    def _loss(self, model: AnyModel, dataset: ParallelDataset, readable: np.ndarray) -> float:
        """Cross-entropy without smoothing, in nats a target token."""
        model.eval()
        tags = direction_tags(self.data.tokenizer, self.recipe.data.directions, self.recipe.directions)
        device = next(model.parameters()).device
        loss, tokens = 0.0, 0
        for indices in plan_batches(*_lengths(dataset), BATCH_TOKENS, readable):
            batch = load_batch(dataset, tags, indices).to(device)
            loss += float(batch_loss(model, batch, 0.0))
            tokens += int((batch.labels != PAD).sum())
        return loss / tokens


class TranslationValidation(Validation):
    """By the BLEU of translations; `description` says how they are searched."""

    def __init__(self, recipe: Recipe, data: Prepared, description: Description) -> None:
        """Raises TrainingError if there is nothing that the model can read."""
        super().__init__(recipe, data)
        self.description = description

    @property
    def judge(self) -> str:
        return "valid_bleu"

    def figures(self, model: AnyModel, exact: AnyModel) -> dict[str, float]:
        assert isinstance(exact, Transformer)
        return {**self.losses(model), self.judge: self.bleu(exact)}

    def score(self, figures: Mapping[str, float]) -> float:
        """BLEU."""
        return figures[self.judge]

    def verdict(self, figures: Mapping[str, float]) -> str:
        return f"{figures[self.judge]:.2f} BLEU"

    def bleu(self, model: Transformer) -> float:
        """The mean over directions of sacreBLEU, of evenly spaced sentences, translated as a user's would be."""
        model.eval()
        valid = self.data.valid
        chosen = self._evenly_spaced(self.recipe.training.validate_sentences)
        translator = Translator.over(LoadedModel(model, self.data.tokenizer, self.description))
        scores = []
        for number in np.unique(valid.direction[chosen]):
            indices = chosen[valid.direction[chosen] == number]
            source, target = self.recipe.data.directions[number].split("-")
            texts = valid.texts("source", indices)
            translations = translator.translate(texts, source=source, target=target, sentences=True, whole=False)
            hypotheses = [translation.text for translation in translations]
            scores.append(evaluation.bleu(hypotheses, valid.texts("target", indices), target_language=target).value)
        return float(np.mean(scores))

    def pairs(self, count: int) -> list[CalibrationPair]:
        """At most so many, evenly spaced."""
        valid, chosen = self.data.valid, self._evenly_spaced(count)
        directions = (self.recipe.data.directions[number] for number in valid.direction[chosen])
        texts = zip(directions, valid.texts("source", chosen), valid.texts("target", chosen), strict=True)
        return [CalibrationPair(direction=name, source=source, target=target) for name, source, target in texts]

    def _evenly_spaced(self, count: int) -> np.ndarray:
        fits = self.readable
        chosen: np.ndarray = fits[np.linspace(0, len(fits) - 1, min(count, len(fits))).astype(int)]
        return chosen


def _lengths(dataset: ParallelDataset) -> tuple[np.ndarray, np.ndarray]:
    """Of the sources, with a tag and EOS; of the targets, with EOS."""
    return dataset.source.lengths + 2, dataset.target.lengths + 1


def _readable(dataset: ParallelDataset, limit: int) -> np.ndarray:
    """The pairs that are at most so long."""
    return np.flatnonzero(np.maximum(*_lengths(dataset)) <= limit)
