"""Tied weights, which a file may store once or several times."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor


def without_copies(
    weights: Mapping[str, Tensor], copies: Sequence[tuple[str, str]]
) -> tuple[dict[str, Tensor], list[str]]:
    """The weights without the second of each pair, which stands in for the first if that is absent.

    Returns what is wrong, too: pairs that differ.
    """
    own, wrong = dict(weights), []
    for name, copy in copies:
        if copy in own and name not in own:
            own[name] = own[copy]
        elif copy in own and not torch.equal(own[name], own[copy]):
            wrong.append(f"{copy} differs from {name}; accepted: equal ones, as the options say that they are tied")
    return {name: weight for name, weight in own.items() if name not in {copy for _, copy in copies}}, wrong
