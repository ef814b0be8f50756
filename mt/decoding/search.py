"""Choice of the search class by the search options."""

from collections.abc import Sequence

import torch

from mt.decoding.beam import BeamSearch
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.sampling import Sampling
from mt.decoding.search_state import Search


def start_search(
    source_lengths: Sequence[int],
    options: Sequence[SearchOptions],
    prefixes: Sequence[Sequence[int]],
    special: SpecialIds,
    device: torch.device,
) -> Search:
    """Return a search before its first step: beam search if the options require it, else greedy search or sampling.

    All sentences must have the same number of rows, and beam search cannot be mixed with the others. Greedy search can
    be mixed with sampling of one translation.

    Raises:
        RequestError: A prefix is invalid (see `check_prefixes`).
    """
    search = BeamSearch if options[0].beams else Sampling
    assert all(sentence.beams == options[0].beams for sentence in options)
    return search.start(source_lengths, options, prefixes, special, device)
