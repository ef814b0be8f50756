"""Validation of a model during training: loss, BLEU, and the loss on monitored corpora."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import torch

from mt import evaluation
from mt.checkpoint import LoadedModel
from mt.config import Recipe
from mt.data.batching import TrainingBatch, direction_prefixes, load_batch, plan_batches
from mt.data.dataset import ParallelDataset, PreparedData
from mt.description import CalibrationPair, Description
from mt.errors import TrainingError
from mt.model.transformer import Transformer
from mt.pipeline.translator import Translator
from mt.training.loss import batch_loss
from mt.training.report import BLEU, MONITORED

BATCH_TOKENS = 4096  # maximum number of tokens of a batch, with padding, when the loss is computed


class Validation:
    """Validation by the loss and by BLEU. Pairs that are longer than `model.max_length` are left out.

    The translations are made with `description.decoding`.
    """

    def __init__(self, recipe: Recipe, data: PreparedData, description: Description) -> None:
        """Select the pairs that are short enough for the model.

        Raises: TrainingError if all pairs of the validation set or of a monitored corpus are too long.
        """
        self.recipe = recipe
        self.data = data
        self.description = description
        self.directions = tuple(recipe.data.directions)
        limit = recipe.model.max_length
        self.pair_indices = _pairs_within(data.valid, limit)
        self.sets = {"valid_loss": (data.valid, self.pair_indices)}
        self.sets |= {f"{MONITORED}{path}": (one, _pairs_within(one, limit)) for path, one in data.monitor.items()}
        for dataset, pair_indices in self.sets.values():
            if not len(pair_indices):
                raise TrainingError(
                    f"all {len(dataset):,} pairs of a validation or monitored corpus are longer than model.max_length, "
                    f"{limit}; accepted: a larger model.max_length"
                )

    @property
    def names(self) -> list[str]:
        """Names of all metrics: "valid_loss", `BLEU`, and one loss for each monitored corpus."""
        first, *monitored = self.sets
        return [first, BLEU, *monitored]

    def metrics(self, model: Transformer, float32_model: Transformer) -> dict[str, float]:
        """Return all metrics by name. The loss is computed with `model`, translations are made with `float32_model`.

        `model` may be in bfloat16. `float32_model` is the same model in float32, as the published weights are.
        """
        return {**self.losses(model), BLEU: self.bleu(float32_model)}

    def describe(self, metrics: Mapping[str, float]) -> str:
        monitored = [
            f"{name.removeprefix(MONITORED)} {loss:.3f}" for name, loss in metrics.items() if name.startswith(MONITORED)
        ]
        line = f"validation loss {metrics['valid_loss']:.3f}, {metrics[BLEU]:.2f} BLEU"
        return line + (f" | monitored loss: {', '.join(monitored)}" if monitored else "")

    def losses(self, model: Transformer) -> dict[str, float]:
        """Return the loss on the validation set and on each monitored corpus, by the name of the metric."""
        return {name: self._loss(model, *selected) for name, selected in self.sets.items()}

    @torch.inference_mode()
    def _loss(self, model: Transformer, dataset: ParallelDataset, pair_indices: np.ndarray) -> float:
        """Return the cross-entropy on some pairs of `dataset`, without label smoothing, in nats per target token.

        `pair_indices` has the indices of the pairs.
        """
        model.eval()
        device = next(model.parameters()).device
        loss, tokens = 0.0, 0
        for batch in self._batches(dataset, pair_indices):
            loss += float(batch_loss(model, batch.to(device), 0.0))
            tokens += len(batch.label_indices)
        return loss / tokens

    def _batches(self, dataset: ParallelDataset, pair_indices: np.ndarray) -> Iterator[TrainingBatch]:
        """Yield batches of the pairs with the indices `pair_indices`."""
        prefixes = direction_prefixes(self.data.tokenizer, self.recipe)
        for indices in plan_batches(*_lengths(dataset), BATCH_TOKENS, pair_indices):
            yield load_batch(dataset, prefixes, indices)

    def bleu(self, model: Transformer) -> float:
        """Translate evenly spaced sources of the validation set, and return the mean of the BLEU of all directions."""
        model.eval()
        valid = self.data.valid
        chosen = self._evenly_spaced(self.recipe.training.validate_sentences)
        translator = Translator.from_loaded(
            LoadedModel(model, self.data.tokenizer, self.description, str(next(model.parameters()).device))
        )
        scores = []
        for number in np.unique(valid.direction[chosen]):
            indices = chosen[valid.direction[chosen] == number]
            source, target = self.directions[number].source, self.directions[number].target
            texts = valid.texts("source", indices)
            planner = translator.planner(source=source, target=target, sentences=True)
            translations = translator.run(replace(planner, protect=False), texts)
            hypotheses = [translation.text for translation in translations]
            scores.append(evaluation.bleu(hypotheses, valid.texts("target", indices), target_language=target).value)
        return float(np.mean(scores))

    def pairs(self, count: int) -> list[CalibrationPair]:
        """Return at most `count` evenly spaced pairs of the validation set."""
        valid, chosen = self.data.valid, self._evenly_spaced(count)
        directions = (self.directions[number] for number in valid.direction[chosen])
        texts = zip(directions, valid.texts("source", chosen), valid.texts("target", chosen), strict=True)
        return [CalibrationPair(direction=pair, source=source, target=target) for pair, source, target in texts]

    def _evenly_spaced(self, count: int) -> np.ndarray:
        pairs = self.pair_indices
        chosen: np.ndarray = pairs[np.linspace(0, len(pairs) - 1, min(count, len(pairs))).astype(int)]
        return chosen


def _lengths(dataset: ParallelDataset) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of tokens of each source and of each target.

    The numbers include a tag and EOS for each source, and EOS for each target.
    """
    return dataset.source.lengths + 2, dataset.target.lengths + 1


def _pairs_within(dataset: ParallelDataset, limit: int) -> np.ndarray:
    """Return the indices of the pairs in which neither source nor target has more than `limit` tokens."""
    return np.flatnonzero(np.maximum(*_lengths(dataset)) <= limit)
