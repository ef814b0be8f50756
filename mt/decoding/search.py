"""Selection of a search class by the search options."""

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
    """Return a search for these sentences. All sentences must have the same number of rows.

    Sentences with greedy search and sentences that draw one sample may be mixed.

    Raises:
        RequestError: A prefix cannot be used.
    """
    search = BeamSearch if options[0].beams else Sampling
    assert all(sentence.beams == options[0].beams for sentence in options)
    return search.start(source_lengths, options, prefixes, special, device)
