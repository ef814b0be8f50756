"""The plain loop over one search, and scores of translations that are given."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import torch

from mt.decoding.beam import BeamSearch
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.rows import Hypothesis, Search
from mt.decoding.sampling import Sampling
from mt.decoding.scorer import ModelScorer, Scorer, State, padded, real


def steps_between_looks(device: torch.device) -> int:
    """How often to ask which sentences are finished: on an accelerator that makes the host wait."""
    return 1 if device.type == "cpu" else 8


@dataclass(frozen=True)
class ScoredPair:
    """How probable a model holds a given translation: one entry a token, the last for EOS, and their sum."""

    log_probability: float
    token_log_probabilities: tuple[float, ...]


def start_search(
    source_lengths: Sequence[int],
    options: Sequence[SearchOptions],
    prefixes: Sequence[Sequence[int]],
    special: SpecialIds,
    device: torch.device,
) -> Search:
    """The search that these options ask for, of sentences that take the same number of rows.

    Greedy sentences may be mixed with those that draw one sample. Raises RequestError for a prefix of no use.
    """
    kind = BeamSearch if options[0].beams else Sampling
    assert all(wanted.beams == options[0].beams for wanted in options)
    return kind.start(source_lengths, options, prefixes, special, device)


@torch.inference_mode()
def decode(
    scorer: Scorer[State],
    sources: Sequence[Sequence[int]],
    options: SearchOptions,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    """Sources, ids that end with EOS, decoded as one batch -> the hypotheses of each, best first, at most `n_best`.

    A list is empty where the scorer gave numbers that are none. Raises RequestError for a prefix that cannot be used.
    """
    found: list[list[Hypothesis]] = [[] for _ in sources]
    if not sources:
        return found
    lengths = [len(source) for source in sources]
    search = start_search(
        lengths, [options] * len(sources), prefixes or [()] * len(sources), scorer.special, scorer.device
    )
    state = scorer.start(sources, options.rows)
    present = list(range(len(sources)))
    every = steps_between_looks(scorer.device)
    for step in count(1):
        rows = search.advance(scorer.step(state, search.tokens))
        if rows is not None:
            state.reorder(rows)
        if step % every:
            continue
        finished = search.finished.tolist()
        done = [place for place, over in enumerate(finished) if over]
        if 2 * len(done) < len(present):  # moving those that stay would cost more than it saves
            continue
        for place, hypotheses in zip(done, search.results(done), strict=True):
            found[present[place]] = hypotheses
        left = [place for place, over in enumerate(finished) if not over]
        if not left:
            break
        keep = torch.tensor(left, device=scorer.device)
        search.select(keep)
        state.select(keep)
        present = [present[place] for place in left]
    return found


@torch.inference_mode()
def score(
    scorer: ModelScorer[Any], sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
) -> list[ScoredPair]:
    """The log-probabilities of given targets, ids without BOS and EOS, in one teacher-forced pass over the batch."""
    if not sources:
        return []
    special, device = scorer.special, scorer.device
    fed = [[special.bos, *target] for target in targets]
    asked = padded([[*target, special.eos] for target in targets], special.pad, device)
    logits = scorer.model(padded(sources, special.pad, device), real(sources, device), padded(fed, special.pad, device))
    log_probs = logits.log_softmax(2, dtype=torch.float32).gather(2, asked[:, :, None])[:, :, 0]  # [B, T]
    each = [tuple(line[: len(ids)]) for line, ids in zip(log_probs.tolist(), fed, strict=True)]
    return [ScoredPair(sum(values), values) for values in each]
