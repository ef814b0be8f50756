"""Log-probabilities of given translations."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from mt.checkpoint import LoadedModel, load_model
from mt.data.batching import plan_batches
from mt.decoding.scorer import ModelScorer, padded, token_mask
from mt.engine.devices import select_device
from mt.errors import RequestError, problems
from mt.languages import Direction, DirectionSet
from mt.text.normalise import Normaliser, plain_spaces
from mt.tokenizer import EOS

PASS_TOKENS = 4096  # maximum number of source tokens, and of target tokens, in a pass, with padding
MAX_LOGITS = 1 << 24  # maximum number of logits in memory at a time; in float32, they take 64 MiB

IdLists = Sequence[Sequence[int]]
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
    scorer: ModelScorer, sources: IdLists, targets: IdLists, max_logits: int = MAX_LOGITS
) -> list[ScoredPair]:
    """Return the log-probabilities of targets given their sources, from one teacher-forced pass.

    `sources` are ids with tag and EOS, and `targets` are ids without BOS and EOS. Only the logits of tokens are
    computed, at most `max_logits` at a time.
    """
    if not sources:
        return []
    special, device = scorer.special, scorer.device
    model = scorer.model
    fed = [[special.bos, *target] for target in targets]
    labels = [id for target in targets for id in (*target, special.eos)]
    mask = token_mask(sources, device)
    memory = model.encode(padded(sources, special.pad, device), mask)
    states = model.decode(padded(fed, special.pad, device), memory, mask)[token_mask(fed, device)]  # [N, D]
    tokens_at_a_time = max(1, max_logits // model.vocabulary_size)
    log_probabilities: list[float] = []
    for part, label in zip(
        states.split(tokens_at_a_time), torch.tensor(labels, device=device).split(tokens_at_a_time), strict=True
    ):
        logits = model.embedding.project(part).float()  # [n, V]
        log_probabilities += (logits.gather(1, label[:, None])[:, 0] - logits.logsumexp(1)).tolist()
    values = iter(log_probabilities)
    rows = [tuple(islice(values, len(ids))) for ids in fed]
    return [ScoredPair(sum(row), row) for row in rows]


@dataclass(frozen=True)
class PairScorer:
    """A translation model that scores given translations in teacher-forced passes."""

    loaded: LoadedModel
    pass_tokens: int = PASS_TOKENS
    max_logits: int = MAX_LOGITS

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

    @cached_property
    def _normaliser(self) -> Normaliser:
        return Normaliser(self.loaded.tokenizer.knows)

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
        lengths = np.array([(len(source), len(target) + 1) for source, target in pairs]).reshape(-1, 2)
        scored: dict[int, ScoredPair] = {}
        for chunk in plan_batches(lengths[:, 0], lengths[:, 1], self.pass_tokens, np.arange(len(pairs))):
            sources, targets = ([pairs[index][side] for index in chunk] for side in (0, 1))
            batch = score_targets(scorer, sources, targets, self.max_logits)
            for index, pair in zip(chunk.tolist(), batch, strict=True):
                log_probabilities = pair.token_log_probabilities[given:]
                scored[index] = ScoredPair(sum(log_probabilities), log_probabilities)
        return [scored[index] for index in range(len(pairs))]

    def _encode(self, source: str, target: str, direction: Direction) -> EncodedPair:
        tokenizer = self.loaded.tokenizer
        tag = tokenizer.source_prefix(direction.source, direction.target, self.directions)
        prefix = tokenizer.target_prefix(direction.target)
        source, target = (plain_spaces(self._normaliser.normalise(text.strip()).text) for text in (source, target))
        return (*tag, *tokenizer.encode(source), EOS), (*prefix, *tokenizer.target.encode(target))

    def _excess(self, pair: EncodedPair) -> list[str]:
        """Return a message for each side of a pair that is too long for the model."""
        limit = self.loaded.description.model.max_length
        lengths = {"source": len(pair[0]), "target": len(pair[1]) + 1}
        return [f"{n} {side} tokens; accepted: at most {limit}" for side, n in lengths.items() if n > limit]
