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


@dataclass(frozen=True)
class ScoredPair:
    """Log-probability of a target given its source. `token_log_probabilities` has an entry for each token and EOS."""

    log_probability: float
    token_log_probabilities: tuple[float, ...]


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

    def score(self, sources: Sequence[str], targets: Sequence[str], direction: Direction) -> list[ScoredPair]:
        """Return the token log-probabilities of each target given its source.

        Raises:
            RequestError: A text is too long for the model. The message lists every pair with such a text.
        """
        pairs = self._encode(sources, targets, direction)
        model = self.loaded.model
        scorer = ModelScorer(model, device=next(model.parameters()).device)
        scored: list[ScoredPair] = []
        for begin in range(0, len(pairs), BATCH_PAIRS):
            chunk = pairs[begin : begin + BATCH_PAIRS]
            scored += score_targets(scorer, [source for source, _ in chunk], [target for _, target in chunk])
        given = len(self.loaded.tokenizer.target_prefix(direction.target))
        values = [pair.token_log_probabilities[given:] for pair in scored]
        return [ScoredPair(sum(log_probabilities), log_probabilities) for log_probabilities in values]

    def _encode(
        self, sources: Sequence[str], targets: Sequence[str], direction: Direction
    ) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Return (source ids, target ids) of each pair.

        Source ids include the tag and EOS. Target ids include the tag of the target, but neither BOS nor EOS.
        """
        tokenizer, limit = self.loaded.tokenizer, self.loaded.description.model.max_length
        tag = tokenizer.source_prefix(direction.source, direction.target, self.directions)
        prefix = tokenizer.target_prefix(direction.target)
        too_long, encoded = [], []
        for number, (source, target) in enumerate(zip(sources, targets, strict=True), start=1):
            pair = (
                (*tag, *tokenizer.encode(source.strip()), EOS),
                (*prefix, *tokenizer.target.encode(target.strip())),
            )
            for side, length in (("source", len(pair[0])), ("target", len(pair[1]) + 1)):
                if length > limit:
                    too_long.append(f"pair {number}: {length} {side} tokens; accepted: at most {limit}")
            encoded.append(pair)
        if too_long:
            raise RequestError(problems("these pairs are too long for the model", too_long))
        return encoded
