"""How probable a text is to a language model."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from mt.checkpoint import load_language_model
from mt.data.batching import make_batch, plan_batches
from mt.engine.translator import select_device
from mt.errors import RequestError, problems
from mt.model.transformer import LanguageModel
from mt.tokenizer import PAD, Tokenizer

BATCH_TOKENS = 4096  # padded, in one pass


@dataclass(frozen=True)
class ScoredText:
    """The natural logarithm of a text's probability, and of how many tokens it is the sum: its own, and the end."""

    log_probability: float
    tokens: int

    @property
    def mean(self) -> float:
        """The log-probability of a token."""
        return self.log_probability / self.tokens


def perplexity(scored: Sequence[ScoredText]) -> float:
    """exp of minus the mean log-probability of a token, over all texts."""
    return math.exp(-sum(each.log_probability for each in scored) / sum(each.tokens for each in scored))


class LanguageScorer:
    """A language model with its tokenizer."""

    def __init__(self, model: LanguageModel, tokenizer: Tokenizer, language: str) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.language = language

    @classmethod
    def load(cls, path: str | Path, device: str = "auto") -> "LanguageScorer":
        """Of a model directory. Raises ModelError or TokenizerError, which say what is wrong with which file."""
        loaded = load_language_model(Path(path), select_device(device))
        return cls(loaded.model, loaded.tokenizer, loaded.description.language)

    def fits(self, text: str) -> bool:
        """Whether it is short enough for the model."""
        return len(self.tokenizer.encode(text)) < self.model.config.max_length

    @torch.inference_mode()
    def score(self, texts: Sequence[str]) -> list[ScoredText]:
        """Each text as it is, a sentence as the model's lines of training are, whatever stands beside it.

        Raises RequestError naming every text that is too long for the model.
        """
        encoded = [self.tokenizer.encode(text) for text in texts]
        limit = self.model.config.max_length
        found = [
            f"text {number}: {len(ids) + 1} tokens; accepted: at most {limit}"
            for number, ids in enumerate(encoded, start=1)
            if len(ids) >= limit
        ]
        if found:
            raise RequestError(problems("the language model cannot read these", found))
        lengths = np.array([len(ids) + 1 for ids in encoded], np.int64)
        totals = np.zeros(len(texts))
        for indices in plan_batches(lengths, lengths, BATCH_TOKENS, np.arange(len(texts))):
            totals[indices] = self._totals([encoded[index] for index in indices])
        return [ScoredText(float(total), int(length)) for total, length in zip(totals, lengths, strict=True)]

    def _totals(self, encoded: Sequence[list[int]]) -> np.ndarray:
        """The log-probabilities [B] of one batch, summed in float64."""
        batch = make_batch([[]] * len(encoded), encoded, np.arange(len(encoded)))
        device = next(self.model.parameters()).device
        labels = batch.labels.to(device)
        real = labels != PAD
        logits = self.model.embedding.project(self.model.decode(batch.target.to(device))[real])  # [N, V]
        each = torch.zeros(labels.shape, dtype=torch.float64, device=device)
        each[real] = -cross_entropy(logits.float(), labels[real], reduction="none").double()
        totals: np.ndarray = each.sum(1).cpu().numpy()
        return totals
