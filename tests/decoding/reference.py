"""The plain loop over one search, which the engine and its backends are compared with, and a run of an engine."""

from collections.abc import Sequence

import torch

from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions
from mt.decoding.scorer import Scorer, State
from mt.decoding.search import start_search
from mt.engine.requests import Request, Result
from mt.engine.threads import AnyEngine


@torch.inference_mode()
def decode(
    scorer: Scorer[State],
    sources: Sequence[Sequence[int]],
    options: SearchOptions,
    prefixes: Sequence[Sequence[int]] | None = None,
) -> list[list[Hypothesis]]:
    """Decode sources, ids that end with EOS, as one batch -> at most `n_best` hypotheses of each, best first."""
    lengths, prefixes = [len(source) for source in sources], prefixes or [()] * len(sources)
    search = start_search(lengths, [options] * len(sources), prefixes, scorer.special, scorer.device)
    state = scorer.start(sources, options.rows)
    while not search.finished.all():
        rows = search.advance(scorer.step(state, search.tokens))
        if rows is not None:
            state.reorder(rows)
    return search.results(range(len(sources)))


def drain(engine: AnyEngine, requests: Sequence[Request]) -> dict[int, Result]:
    for request in requests:
        engine.submit(request)
    results = list(engine.drain())
    assert sorted(result.id for result in results) == sorted(request.id for request in requests)
    return {result.id: result for result in results}
