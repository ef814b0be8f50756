"""Checks of forced prefixes."""

from collections.abc import Sequence

from mt.decoding.options import SearchOptions, SpecialIds
from mt.errors import RequestError, problems


def check_prefixes(prefixes: Sequence[Sequence[int]], options: Sequence[SearchOptions], special: SpecialIds) -> None:
    """Check that each prefix contains no PAD, BOS or EOS and is shorter than `max_length`, so that EOS fits behind it.

    Raises:
        RequestError: A prefix is invalid. The message lists every sentence with an invalid prefix.
    """
    if not any(prefixes):
        return
    outside = {special.pad, special.bos, special.eos}
    invalid = []
    for number, (prefix, sentence) in enumerate(zip(prefixes, options, strict=True)):
        if ids := sorted(outside.intersection(prefix)):
            invalid.append(f"sentence {number}: the prefix contains the special ids {ids}; accepted: other ids")
        if len(prefix) >= (limit := sentence.max_length):
            invalid.append(
                f"sentence {number}: the prefix has {len(prefix)} ids; accepted: fewer than max_length, {limit}"
            )
    if invalid:
        raise RequestError(problems("the forced prefixes cannot be used", invalid))
