"""Reranking of n-best lists with features of other models.

The score of a translation y of a source x is (score of the search) + sum of (weight * feature value) over all features.
With log p(x | y) and log p(y) as features, this is noisy channel reranking (Yee et al. 2019, equation 4). A length
feature compensates the preference of the models for short translations.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from mt.errors import RequestError, problems
from mt.evaluation import bleu
from mt.languages import Direction
from mt.scoring.language_model import LanguageModelScorer
from mt.scoring.pairs import PairScorer


@dataclass(frozen=True)
class NBest:
    """A source, its translations (best first), and the score of each translation in the search."""

    source: str
    translations: tuple[str, ...]
    scores: tuple[float, ...]


@dataclass(frozen=True)
class Feature:
    """Feature with one value for each translation of each n-best list. `tune` tries the weights in `grid`.

    Values are per token, like the scores of the search, so that the same weight suits short and long sentences.
    """

    name: str
    values: tuple[tuple[float, ...], ...]
    grid: tuple[float, ...]


def channel_features(backward: PairScorer, lists: Sequence[NBest], direction: Direction) -> list[Feature]:
    """Return the features `backward` and `length` of the translations y of each source x.

    `backward` is log p(x | y) per token of x, and `length` is the number of tokens of y per token of x. The model
    `backward` scores pairs in `direction`: from the language of y to the language of x.

    Raises:
        RequestError: Texts are too long for the model. The message lists every line with such a text.
    """
    too_long, probability, length = [], [], []
    for number, n_best in enumerate(lists, 1):
        try:
            scored = backward.score(n_best.translations, [n_best.source] * len(n_best.translations), direction)
        except RequestError as error:
            too_long.append(f"line {number}: {str(error).splitlines()[-1].strip(' -')}")
            continue
        tokens = len(scored[0].token_log_probabilities)
        probability.append(tuple(pair.log_probability / tokens for pair in scored))
        length.append(
            tuple(len(backward.loaded.tokenizer.encode(text.strip())) / tokens for text in n_best.translations)
        )
    if too_long:
        raise RequestError(problems("these lines are too long for the backward model", too_long))
    return [
        Feature("backward", tuple(probability), grid=(0, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5)),
        Feature("length", tuple(length), grid=(0, -0.5, -0.2, -0.1, 0.1, 0.2, 0.5, 1)),
    ]


def language_feature(scorer: LanguageModelScorer, lists: Sequence[NBest]) -> Feature:
    """Return the feature `language`: log p(y) per token of a translation y, EOS included.

    Raises:
        RequestError: Texts are too long for the model. The message lists every line with such a text.
    """
    too_long, values = [], []
    for number, n_best in enumerate(lists, 1):
        try:
            values.append(tuple(scored.mean for scored in scorer.score([text.strip() for text in n_best.translations])))
        except RequestError as error:
            too_long.append(f"line {number}: {str(error).splitlines()[-1].strip(' -')}")
    if too_long:
        raise RequestError(problems("these lines are too long for the language model", too_long))
    return Feature("language", tuple(values), grid=(0, 0.05, 0.1, 0.2, 0.3, 0.5))


def choose(lists: Sequence[NBest], features: Sequence[Feature], weights: Mapping[str, float]) -> tuple[str, ...]:
    """Return the best translation of each list: the first one with the highest score. Missing weights are 0."""
    chosen = []
    for number, n_best in enumerate(lists):
        totals = list(n_best.scores)
        for feature in features:
            weight = weights.get(feature.name, 0.0)
            totals = [total + weight * value for total, value in zip(totals, feature.values[number], strict=True)]
        chosen.append(n_best.translations[totals.index(max(totals))])
    return tuple(chosen)


def tune(
    lists: Sequence[NBest], features: Sequence[Feature], references: Sequence[str], target_language: str
) -> dict[str, float]:
    """Return the combination of weights from the grids that gives the highest BLEU.

    If several combinations give it, return the one with the smallest sum of absolute weights.

    Raises:
        DataError: The BLEU score cannot be computed.
    """
    bleu_of: dict[tuple[str, ...], float] = {}
    candidates = []
    for point in product(*(feature.grid for feature in features)):
        weights = dict(zip((feature.name for feature in features), point, strict=True))
        chosen = choose(lists, features, weights)
        if chosen not in bleu_of:
            bleu_of[chosen] = bleu(chosen, references, target_language=target_language).value
        candidates.append((bleu_of[chosen], -sum(map(abs, point)), weights))
    return max(candidates, key=lambda candidate: candidate[:2])[2]
