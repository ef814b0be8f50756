"""Choosing among given translations: by hand, and with a backward model."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from mt.errors import DataError, RequestError
from mt.languages import Direction
from mt.scoring.language_model import LanguageModelScorer, ScoredText
from mt.scoring.pairs import PairScorer
from mt.scoring.reranking import Feature, NBest, channel_features, choose, language_feature, tune
from tests.conftest import write_model

LISTS = [
    NBest("a", ("Ein Hund bellt laut im Haus.", "Eine Katze schläft."), (-1.0, -1.5)),
    NBest("b", ("Der Fluss.", "Der Zug hält dort drüben am Markt.", "Das Kind."), (-0.5, -0.6, -0.7)),
]
CHANNEL = Feature("backward", ((-3.0, -1.0), (-2.0, -2.0, -1.0)), grid=(0, 0.2, 0.5))
LENGTH = Feature("length", ((1.0, 0.5), (0.3, 1.2, 0.3)), grid=(0, 0.2))

DE_EN = Direction("de", "en")


@pytest.fixture(scope="module")
def backward(tmp_path_factory: pytest.TempPathFactory) -> PairScorer:
    folder = write_model(tmp_path_factory.mktemp("models") / "backward", ["de-en"])
    return PairScorer.load(folder, "cpu")


@pytest.mark.parametrize(
    ("weights", "places"),
    [
        ({}, (0, 0)),
        ({"backward": 0.2}, (0, 2)),  # -1.6 and -1.7; -0.9, -1.0 and -0.9
        ({"backward": 0.5}, (1, 2)),  # -2.5 and -2; -1.5, -1.6 and -1.2
        ({"length": 0.2}, (0, 1)),  # -0.8 and -1.4; -0.44, -0.36 and -0.64
        ({"backward": 0.5, "length": 2.0}, (0, 1)),  # -0.5 and -1; -0.9, 0.8 and -0.6
    ],
)
def test_scores_and_features_add_up(weights: dict[str, float], places: tuple[int, int]) -> None:
    expected = tuple(each.translations[place] for each, place in zip(LISTS, places, strict=True))
    assert choose(LISTS, [CHANNEL, LENGTH], weights) == expected


def test_of_equal_ones_the_search_s_first_stays() -> None:
    assert choose([NBest("a", ("x", "y"), (-1.0, -2.0))], [Feature("f", ((0.0, 1.0),), (0,))], {"f": 1.0}) == ("x",)


@pytest.mark.parametrize(
    ("places", "weights"),
    [
        ((0, 0), {"backward": 0, "length": 0}),
        ((1, 2), {"backward": 0.5, "length": 0}),
        ((0, 1), {"backward": 0, "length": 0.2}),
    ],
)
def test_tuning_finds_the_smallest_weights_that_give_the_references(
    places: tuple[int, int], weights: dict[str, float]
) -> None:
    references = [each.translations[place] for each, place in zip(LISTS, places, strict=True)]
    assert tune(LISTS, [CHANNEL, LENGTH], references, "de") == weights


def test_tuning_needs_as_many_references() -> None:
    with pytest.raises(DataError, match="hypotheses: 2"):
        tune(LISTS, [CHANNEL], ["a"], "de")


def test_features_are_a_token_in_the_mean(backward: PairScorer) -> None:
    lists = [
        NBest("The dog sees the cat.", ("The cat.", "The dog and the house.", ""), (-1.0, -2.0, -3.0)),
        NBest("", ("",), (0.0,)),
    ]
    channel, length = channel_features(backward, lists, DE_EN)
    assert (channel.name, length.name) == ("backward", "length")
    for number, each in enumerate(lists):
        tokens = len(backward.loaded.tokenizer.encode(each.source)) + 1
        pairs = backward.score(each.translations, [each.source] * len(each.translations), DE_EN)
        assert channel.values[number] == pytest.approx([pair.log_probability / tokens for pair in pairs], abs=1e-4)
        expected = [len(backward.loaded.tokenizer.encode(text)) / tokens for text in each.translations]
        assert length.values[number] == pytest.approx(expected)
    assert channel.values[0][0] != channel.values[0][1]


class Fluent(LanguageModelScorer):
    """Holds a text without a repeated word for likelier; a word is a token, and so is the end."""

    def __init__(self) -> None:
        pass

    def score(self, texts: Sequence[str]) -> list[ScoredText]:
        found = []
        for text in texts:
            words = text.split()
            found.append(ScoredText(-1.0 - len(words) - 3 * (len(words) - len(set(words))), len(words) + 1))
        return found


def test_the_fluent_one_is_preferred() -> None:
    lists = [NBest("a", ("der der Hund ", "der Hund"), (-1.0, -1.2))]
    feature = language_feature(Fluent(), lists)
    assert feature.name == "language"
    assert feature.values == ((-7 / 4, -1.0),)
    assert choose(lists, [feature], {"language": 0.2}) == ("der der Hund ",)  # -1.35 and -1.4
    assert choose(lists, [feature], {"language": 0.3}) == ("der Hund",)  # -1.525 and -1.5


def test_what_the_language_model_cannot_read_is_named(small_language_model: Path) -> None:
    scorer = LanguageModelScorer.load(small_language_model, "cpu")
    lists = [NBest("a", (each,), (0.0,)) for each in ("The dog.", "dog " * 300)]
    with pytest.raises(RequestError, match=r"line 2: text 1: \d+ tokens; accepted: at most 256") as caught:
        language_feature(scorer, lists)
    assert "line 1" not in str(caught.value)


def test_all_that_is_too_long_is_named(backward: PairScorer) -> None:
    long, short = "dog " * 300, "The dog."
    with pytest.raises(RequestError, match=r"line 2: pair 1: .* source tokens; accepted: at most 256") as caught:
        channel_features(backward, [NBest(short, (each,), (0.0,)) for each in (short, long)], DE_EN)
    assert "line 1" not in str(caught.value)
    with pytest.raises(RequestError, match=r"line 1: pair 1: \d+ target tokens; accepted: at most 256\n.*line 2: pair"):
        channel_features(backward, [NBest(long, (short,), (0.0,))] * 2, DE_EN)
