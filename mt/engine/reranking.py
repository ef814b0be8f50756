"""Choosing among given translations by more than the model that wrote them.

The score of a translation y of x is that of the search plus a weight times each feature. With the probability of x
given y, and that of y itself to a language model, this is the noisy channel (Yee et al. 2019, equation 4); how long y
is keeps the models from agreeing on short ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from mt.engine.language import LanguageScorer
from mt.engine.pairs import score_pairs
from mt.engine.translator import Translator
from mt.errors import RequestError, problems
from mt.evaluation import bleu


@dataclass(frozen=True)
class NBest:
    """A source, its translations, the best first, and the score that the search gave each."""

    source: str
    translations: tuple[str, ...]
    scores: tuple[float, ...]


@dataclass(frozen=True)
class Feature:
    """A number for each translation of each list, for each token as scores are, so that one weight fits short and long.

    `grid` has the weights that `tune` tries.
    """

    name: str
    values: tuple[tuple[float, ...], ...]
    grid: tuple[float, ...]


def channel_features(backward: Translator, lists: Sequence[NBest], direction: str) -> list[Feature]:
    """`backward`: log p(x | y) a token of x, by a model of this direction; `length`: tokens of y for each of x.

    Raises RequestError naming every list in which something is too long for the model.
    """
    found, probability, length = [], [], []
    for number, each in enumerate(lists, 1):
        try:
            scored = score_pairs(backward, each.translations, [each.source] * len(each.translations), direction)
        except RequestError as error:
            found.append(f"line {number}: {str(error).splitlines()[-1].strip(' -')}")
            continue
        tokens = len(scored[0].token_log_probabilities)
        probability.append(tuple(pair.log_probability / tokens for pair in scored))
        length.append(tuple(len(backward.tokenizer.encode(text.strip())) / tokens for text in each.translations))
    if found:
        raise RequestError(problems("the backward model cannot read these", found))
    return [
        Feature("backward", tuple(probability), grid=(0, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5)),
        Feature("length", tuple(length), grid=(0, -0.5, -0.2, -0.1, 0.1, 0.2, 0.5, 1)),
    ]


def language_feature(scorer: LanguageScorer, lists: Sequence[NBest]) -> Feature:
    """`language`: log p(y) a token of y, the end included.

    Raises RequestError naming every list in which something is too long for the model.
    """
    found, values = [], []
    for number, each in enumerate(lists, 1):
        try:
            values.append(tuple(scored.mean for scored in scorer.score([text.strip() for text in each.translations])))
        except RequestError as error:
            found.append(f"line {number}: {str(error).splitlines()[-1].strip(' -')}")
    if found:
        raise RequestError(problems("the language model cannot read these", found))
    return Feature("language", tuple(values), grid=(0, 0.05, 0.1, 0.2, 0.3, 0.5))


def choose(lists: Sequence[NBest], features: Sequence[Feature], weights: Mapping[str, float]) -> tuple[str, ...]:
    """The best of each list; of equal ones, the first. A feature without a weight has 0."""
    chosen = []
    for number, each in enumerate(lists):
        totals = list(each.scores)
        for feature in features:
            weight = weights.get(feature.name, 0.0)
            totals = [total + weight * value for total, value in zip(totals, feature.values[number], strict=True)]
        chosen.append(each.translations[totals.index(max(totals))])
    return tuple(chosen)


def tune(
    lists: Sequence[NBest], features: Sequence[Feature], references: Sequence[str], target_language: str
) -> dict[str, float]:
    """The weights of highest BLEU on all of the grid; of equal ones, the smallest. Raises DataError as `bleu` does."""
    known: dict[tuple[str, ...], float] = {}
    tried = []
    for point in product(*(feature.grid for feature in features)):
        weights = dict(zip((feature.name for feature in features), point, strict=True))
        chosen = choose(lists, features, weights)
        if chosen not in known:
            known[chosen] = bleu(chosen, references, target_language=target_language).value
        tried.append((known[chosen], -sum(map(abs, point)), weights))
    return max(tried, key=lambda each: each[:2])[2]
