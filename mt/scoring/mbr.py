"""Minimum Bayes risk: selection of the sampled translation that is most similar to all other samples.

The most probable translation of a sentence can be an outlier. The translation that is most similar to the other samples
is rarely an outlier (Eikema and Aziz 2020; Freitag et al. 2022).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from mt.evaluation import expected_chrf


class HasText(Protocol):
    """An object with a text, such as a candidate translation."""

    @property
    def text(self) -> str: ...


T = TypeVar("T", bound=HasText)


@dataclass(frozen=True)
class MinimumBayesRisk:
    """Selection of the `keep` different candidates with the highest mean chrF2 against all others, the highest first.

    A candidate that occurs n times counts n times in the means. Of candidates with equal means, the first is preferred.
    """

    keep: int = 1

    def __call__(self, candidates: Sequence[T]) -> tuple[T, ...]:
        scored = zip(expected_chrf([candidate.text for candidate in candidates]), candidates, strict=True)
        different: dict[str, T] = {}
        for _, candidate in sorted(scored, key=lambda pair: -pair[0]):
            different.setdefault(candidate.text, candidate)
        return tuple(different.values())[: self.keep]
