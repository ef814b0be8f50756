"""What the validation set says of a model: its loss, and the BLEU of its translations."""

import numpy as np
import torch

from mt import evaluation
from mt.checkpoint import CalibrationPair, Description, LoadedModel
from mt.config import Recipe
from mt.data.batching import direction_tags, load_batch, plan_batches
from mt.data.dataset import Prepared
from mt.engine.translator import Translator
from mt.errors import TrainingError
from mt.model.transformer import Transformer
from mt.tokenizer import PAD
from mt.training.loss import batch_loss

BATCH_TOKENS = 4096  # padded, in a batch of the loss


class Validation:
    """The pairs of a validation set that a model can read."""

    def __init__(self, recipe: Recipe, data: Prepared, description: Description) -> None:
        """Raises TrainingError if there are none."""
        self.recipe = recipe
        self.data = data
        self.description = description
        self.lengths = (data.valid.source.lengths + 2, data.valid.target.lengths + 1)  # + tag and EOS; + EOS
        limit = recipe.model.max_length
        self.readable = np.flatnonzero(np.maximum(*self.lengths) <= limit)
        if not len(self.readable):
            raise TrainingError(
                f"none of the {len(data.valid):,} validation pairs is short enough for model.max_length {limit}; "
                "accepted: a higher one"
            )

    @torch.inference_mode()
    def loss(self, model: Transformer) -> float:
        """Cross-entropy without smoothing, in nats a target token."""
        model.eval()
        tags = direction_tags(self.data.tokenizer, self.recipe.data.directions)
        device = next(model.parameters()).device
        loss, tokens = 0.0, 0
        for indices in plan_batches(*self.lengths, BATCH_TOKENS, self.readable):
            batch = load_batch(self.data.valid, tags, indices).to(device)
            loss += float(batch_loss(model, batch, 0.0))
            tokens += int((batch.labels != PAD).sum())
        return loss / tokens

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
