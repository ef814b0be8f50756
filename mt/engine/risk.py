"""Minimum Bayes risk: of the translations that were drawn, the one that is most like all the others.

The most probable translation of a sentence can be an odd one; what most draws agree on rarely is (Eikema and Aziz 2020;
Freitag et al. 2022).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from mt.engine.results import Alternative
from mt.evaluation import expected_chrf


@dataclass(frozen=True)
class MinimumRisk:
    """The `keep` different translations whose chrF2 with all the others is highest in the mean, the highest first.

    One that was drawn more often counts more often. Of equal ones, that which comes first stays first.
    """

    keep: int = 1

    def __call__(self, drawn: Sequence[Alternative]) -> tuple[Alternative, ...]:
        ranked = zip(expected_chrf([each.text for each in drawn]), drawn, strict=True)
        different: dict[str, Alternative] = {}
        for _, each in sorted(ranked, key=lambda pair: -pair[0]):
            different.setdefault(each.text, each)
        return tuple(different.values())[: self.keep]
