"""Log-probabilities of texts under a language model."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from mt.checkpoint import load_language_model
from mt.data.batching import TrainingBatch, make_batch, plan_batches
from mt.data.blocks import TokenBlocks
from mt.engine.devices import select_device
from mt.errors import RequestError, problems
from mt.model.transformer import LanguageModel
from mt.tokenizer import PAD, Tokenizer

BATCH_TOKENS = 4096  # maximum number of padded tokens in a pass


@dataclass(frozen=True)
class ScoredText:
    """Natural log-probability of a text, and the number of its tokens, EOS included."""

    log_probability: float
    tokens: int

    @property
    def mean(self) -> float:
        """Mean log-probability of a token."""
        return self.log_probability / self.tokens


def perplexity(scored: Sequence[ScoredText]) -> float:
    """Return exp(-mean log-probability of a token) over all texts."""
    return math.exp(-sum(text.log_probability for text in scored) / sum(text.tokens for text in scored))


class LanguageModelScorer:
    """Scorer of texts: a language model with its tokenizer.

    `block_tokens` is the length of the blocks that the model was trained on, or 0 if it was trained on single lines.
    """

    def __init__(self, model: LanguageModel, tokenizer: Tokenizer, language: str, block_tokens: int = 0) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.language = language
        self.block_tokens = block_tokens

    @classmethod
    def load(cls, path: str | Path, device: str = "auto") -> "LanguageModelScorer":
        """Load a model directory. Raises ModelError or TokenizerError if a file of the model cannot be used."""
        loaded = load_language_model(Path(path), select_device(device))
        return cls(loaded.model, loaded.tokenizer, loaded.description.language, loaded.description.block_tokens)

    def fits(self, text: str) -> bool:
        """Return whether a text is short enough for the model."""
        return len(self.tokenizer.encode(text)) < self.model.config.max_length

    @torch.inference_mode()
    def score(self, texts: Sequence[str]) -> list[ScoredText]:
        """Return the score of each text. A text should be one sentence, like a line of the training data.

        Raises:
            RequestError: Texts are too long for the model. The message lists all of them.
        """
        encoded = [self.tokenizer.encode(text) for text in texts]
        limit = self.model.config.max_length
        too_long = [
            f"text {number}: {len(ids) + 1} tokens; accepted: at most {limit}"
            for number, ids in enumerate(encoded, start=1)
            if len(ids) >= limit
        ]
        if too_long:
            raise RequestError(problems("these texts are too long for the language model", too_long))
        lengths = np.array([len(ids) + 1 for ids in encoded], np.int64)
        totals = np.zeros(len(texts))
        for indices in plan_batches(lengths, lengths, BATCH_TOKENS, np.arange(len(texts))):
            chosen = [encoded[index] for index in indices]
            totals[indices] = self._totals(make_batch([[]] * len(chosen), chosen, indices))
        return [ScoredText(float(total), int(length)) for total, length in zip(totals, lengths, strict=True)]

    @torch.inference_mode()
    def score_lines(self, lines: Sequence[str]) -> ScoredText:
        """Return the total score of the lines of a text. Each line ends with an EOS.

        A model that was trained on blocks scores consecutive blocks: a token sees all tokens before it in its block,
        including tokens of earlier lines. Other models score each line alone.

        Raises:
            RequestError: The model was trained on lines, and some lines are too long for it.
        """
        if not self.block_tokens:
            scored = self.score(lines)
            return ScoredText(sum(line.log_probability for line in scored), sum(line.tokens for line in scored))
        blocks = TokenBlocks.of(self.tokenizer.encode_many(lines), self.block_tokens)
        begins = blocks.consecutive
        parts = np.array_split(begins, -(-len(begins) * self.block_tokens // BATCH_TOKENS))
        return ScoredText(sum(float(self._totals(blocks.batch(part)).sum()) for part in parts), len(blocks))

    def _totals(self, batch: TrainingBatch) -> np.ndarray:
        """Return float64 [B]: the sum of the log-probabilities of the labels in each of the B rows of a batch."""
        device = next(self.model.parameters()).device
        labels = batch.labels.to(device)
        real = labels != PAD
        logits = self.model.embedding.project(self.model.decode(batch.target.to(device))[real])  # [N, V]
        log_probs = torch.zeros(labels.shape, dtype=torch.float64, device=device)
        log_probs[real] = -cross_entropy(logits.float(), labels[real], reduction="none").double()
        totals: np.ndarray = log_probs.sum(1).cpu().numpy()
        return totals
