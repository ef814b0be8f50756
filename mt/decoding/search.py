"""Choice of the search class by the search options."""

from collections.abc import Sequence

import torch

from mt.decoding.beam import BeamSearch
from mt.decoding.constrained_beam import ConstrainedBeamSearch
from mt.decoding.greedy import GreedySearch
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.sampling import Sampling
from mt.decoding.search_state import Search
from mt.decoding.term_constraints import TermConstraints


def start_search(
    source_lengths: Sequence[int],
    options: Sequence[SearchOptions],
    prefixes: Sequence[Sequence[int]],
    special: SpecialIds,
    device: torch.device,
    constraints: Sequence[TermConstraints] = (),
) -> Search:
    """Return a search before its first step. All sentences must have the same kind of search and number of rows.

    `constraints` has an entry for each sentence, or none.

    Raises:
        RequestError: A prefix is invalid (see `check_prefixes`).
    """
    if constraints:
        return ConstrainedBeamSearch.start(source_lengths, options, constraints, prefixes, special, device)
    first = options[0]
    assert all((sentence.beams, sentence.sample) == (first.beams, first.sample) for sentence in options)
    search = BeamSearch if first.beams else Sampling if first.sample else GreedySearch
    return search.start(source_lengths, options, prefixes, special, device)
