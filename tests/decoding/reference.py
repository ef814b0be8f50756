"""The plain loop over one search, which the engine and its backends are compared with."""

from collections.abc import Sequence

import torch

from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions
from mt.decoding.scorer import Scorer, State
from mt.decoding.search import start_search


@torch.inference_mode()
def decode(
    scorer: Scorer[State],
    sources: Sequence[Sequence[int]],
    options: SearchOptions,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    """Decode sources, ids that end with EOS, as one batch -> at most `n_best` hypotheses of each, best first."""
    lengths, each = [len(source) for source in sources], [options] * len(sources)
    search = start_search(lengths, each, prefixes or [()] * len(sources), scorer.special, scorer.device)
    state = scorer.start(sources, options.rows)
    while not search.finished.all():
        rows = search.advance(scorer.step(state, search.tokens))
        if rows is not None:
            state.reorder(rows)
    return search.results(range(len(sources)))
