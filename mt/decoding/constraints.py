"""Constraints of a search as masks over scores: forced prefixes, lengths and repetition.

Shapes: B sentences, K rows per sentence, R = B x K rows, P prefix length, T steps, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from mt.decoding.options import SearchOptions
from mt.decoding.scorer import padded
from mt.decoding.scores import repeating_ngrams, seen_tokens
from mt.decoding.search_state import SentenceTable


@dataclass(frozen=True)
class Features:
    """Constraints that at least one sentence of the batch uses. Unused constraints cost no time.

    `ngram` is the largest `no_repeat_ngram` of the batch.
    """

    minimum: bool
    prefix: bool
    ngram: int

    @property
    def history(self) -> bool:
        return self.ngram > 0


@dataclass
class Constraints(SentenceTable):
    """Search constraints of B sentences. The step of a row is the number of tokens that it has produced so far."""

    last: Tensor  # [B] the step at which only EOS is allowed
    first_end: Tensor  # [B] the first step at which EOS is allowed
    prefix: Tensor  # [B, P]
    prefix_length: Tensor  # [B]
    ngram: Tensor  # [B]
    features: Features

    @classmethod
    def start(
        cls,
        source_lengths: Sequence[int],
        options: Sequence[SearchOptions],
        prefixes: Sequence[Sequence[int]],
        device: torch.device,
    ) -> Self:
        prefix_lengths = [len(prefix) for prefix in prefixes]
        last = [o.longest(s, p) - 1 for o, s, p in zip(options, source_lengths, prefix_lengths, strict=True)]
        first_end = [
            min(max(o.min_length - 1, p), limit) for o, p, limit in zip(options, prefix_lengths, last, strict=True)
        ]
        return cls(
            last=torch.tensor(last, device=device),
            first_end=torch.tensor(first_end, device=device),
            prefix=padded(prefixes, 0, device),
            prefix_length=torch.tensor(prefix_lengths, device=device),
            ngram=torch.tensor([o.no_repeat_ngram for o in options], device=device),
            features=Features(
                minimum=any(first_end),
                prefix=any(prefix_lengths),
                ngram=max((o.no_repeat_ngram for o in options), default=0),
            ),
        )

    def _update(self) -> None:
        if not self.last.numel():
            self.features = Features(minimum=False, prefix=False, ngram=0)
            return
        used = torch.stack((self.first_end.max(), self.prefix_length.max(), self.ngram.max()))
        minimum, prefix, ngram = used.tolist()  # one transfer from the device
        self.features = Features(minimum=minimum > 0, prefix=prefix > 0, ngram=ngram)

    def apply(self, log_probs: Tensor, never: Tensor, steps: Tensor, history: Tensor) -> Tensor:
        """Set the log-probabilities [R, V] of forbidden next tokens to -inf in place, and return the result.

        `never` contains the ids that no row may produce. `steps` [B] is the step of each sentence. `history` [B, K, T]
        contains the tokens of each row and is read only if `features.history`. A forced prefix overrides the other
        constraints. Its tokens get the log-probability 0, since the model does not choose them. EOS before the minimum
        length is not forbidden here, but by `forbid_early_ends`.
        """
        used = self.features
        rows = log_probs.shape[0] // steps.shape[0]
        if used.prefix:
            index = steps.clamp(max=self.prefix.shape[1] - 1)[:, None]
            forced = self.prefix.gather(1, index).repeat_interleave(rows, 0)  # [R, 1]; any id where none is forced
        log_probs.index_fill_(1, never, -torch.inf)
        if used.history:
            log_probs = self._without_repetition(log_probs, steps.repeat_interleave(rows), history.flatten(0, 1))
        if used.prefix:
            active = (steps < self.prefix_length).repeat_interleave(rows)[:, None]
            free_scores = log_probs.gather(1, forced)
            log_probs.masked_fill_(active, -torch.inf)
            log_probs.scatter_(1, forced, torch.where(active, 0.0, free_scores))
        return log_probs

    def _without_repetition(self, log_probs: Tensor, lengths: Tensor, history: Tensor) -> Tensor:
        rows, vocabulary = log_probs.shape
        n = self.ngram.repeat_interleave(rows // self.last.shape[0])
        repeats = repeating_ngrams(history, lengths, n, self.features.ngram)
        return log_probs.masked_fill_(seen_tokens(history, repeats, vocabulary), -torch.inf)

    def forbid_early_ends(self, scores: Tensor, steps: Tensor) -> None:
        """Set the scores [B, K] of EOS to -inf in sentences that are shorter than their minimum length."""
        if self.features.minimum:
            scores.masked_fill_((steps < self.first_end)[:, None], -torch.inf)
