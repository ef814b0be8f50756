"""Log-probabilities of given translations."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from mt.checkpoint import LoadedModel, load_model
from mt.decoding.scorer import ModelScorer, padded, token_mask
from mt.engine.devices import select_device
from mt.errors import RequestError, problems
from mt.languages import Direction, DirectionSet
from mt.tokenizer import EOS

BATCH_PAIRS = 64  # maximum number of pairs in a pass

EncodedPair = tuple[tuple[int, ...], tuple[int, ...]]
"""Source ids with tag and EOS, and target ids with the tag of the target, but neither BOS nor EOS."""


@dataclass(frozen=True)
class ScoredPair:
    """Log-probability of a target given its source. `token_log_probabilities` has an entry for each token and EOS."""

    log_probability: float
    token_log_probabilities: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean log-probability of a token."""
        return self.log_probability / len(self.token_log_probabilities)


@torch.inference_mode()
def score_targets(
    scorer: ModelScorer[Any], sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[ScoredPair]:
    """Return the log-probabilities of targets given their sources, from one teacher-forced pass.

    `sources` are ids with tag and EOS, and `targets` are ids without BOS and EOS.
    """
    if not sources:
        return []
    special, device = scorer.special, scorer.device
    fed = [[special.bos, *target] for target in targets]
    labels = padded([[*target, special.eos] for target in targets], special.pad, device)
    logits = scorer.model(
        padded(sources, special.pad, device), token_mask(sources, device), padded(fed, special.pad, device)
    )
    log_probs = logits.log_softmax(2, dtype=torch.float32).gather(2, labels[:, :, None])[:, :, 0]  # [B, T]
    rows = [tuple(row[: len(ids)]) for row, ids in zip(log_probs.tolist(), fed, strict=True)]
    return [ScoredPair(sum(values), values) for values in rows]


@dataclass(frozen=True)
class PairScorer:
    """A translation model that scores given translations in teacher-forced passes."""

    loaded: LoadedModel

    @classmethod
    def load(cls, path: str | Path, device: str = "auto") -> "PairScorer":
        """Load a model directory in float32.

        Raises:
            ModelError, TokenizerError: A file of the directory cannot be used.
        """
        return cls(load_model(Path(path), select_device(device)))

    @property
    def directions(self) -> DirectionSet:
        return self.loaded.description.directions

    def target_length(self, text: str) -> int:
        """Return the number of target tokens of a text, without EOS."""
        return len(self.loaded.tokenizer.target.encode(text.strip()))

    def fits(self, source: str, target: str, direction: Direction) -> bool:
        """Return whether a pair is short enough for the model."""
        return not self._excess(self._encode(source, target, direction))

    def score(self, sources: Sequence[str], targets: Sequence[str], direction: Direction) -> list[ScoredPair]:
        """Return the token log-probabilities of each target given its source.

        Raises:
            RequestError: A text is too long for the model. The message lists every pair with such a text.
        """
        pairs = [self._encode(source, target, direction) for source, target in zip(sources, targets, strict=True)]
        too_long = [f"pair {number}: {text}" for number, pair in enumerate(pairs, 1) for text in self._excess(pair)]
        if too_long:
            raise RequestError(problems("these pairs are too long for the model", too_long))
        model = self.loaded.model
        scorer = ModelScorer(model, device=next(model.parameters()).device)
        given = len(self.loaded.tokenizer.target_prefix(direction.target))
        by_length = sorted(range(len(pairs)), key=lambda index: [len(ids) for ids in pairs[index]])  # little padding
        scored: dict[int, ScoredPair] = {}
        for begin in range(0, len(pairs), BATCH_PAIRS):
            chunk = by_length[begin : begin + BATCH_PAIRS]
            batch = score_targets(scorer, [pairs[index][0] for index in chunk], [pairs[index][1] for index in chunk])
            for index, pair in zip(chunk, batch, strict=True):
                log_probabilities = pair.token_log_probabilities[given:]
                scored[index] = ScoredPair(sum(log_probabilities), log_probabilities)
        return [scored[index] for index in range(len(pairs))]

    def _encode(self, source: str, target: str, direction: Direction) -> EncodedPair:
        tokenizer = self.loaded.tokenizer
        tag = tokenizer.source_prefix(direction.source, direction.target, self.directions)
        prefix = tokenizer.target_prefix(direction.target)
        return (*tag, *tokenizer.encode(source.strip()), EOS), (*prefix, *tokenizer.target.encode(target.strip()))

    def _excess(self, pair: EncodedPair) -> list[str]:
        """Return a message for each side of a pair that is too long for the model."""
        limit = self.loaded.description.model.max_length
        lengths = {"source": len(pair[0]), "target": len(pair[1]) + 1}
        return [f"{n} {side} tokens; accepted: at most {limit}" for side, n in lengths.items() if n > limit]
