import math
from dataclasses import replace
from pathlib import Path

import pytest
from torch import Tensor

from mt import Translator
from mt.errors import RequestError
from mt.languages import Direction
from mt.scoring.pair_filter import drop_lowest, round_trip_scores
from mt.scoring.pairs import PairScorer
from tests.conftest import search_results, sentences, write_model

EN_DE = Direction("en", "de")
TOO_LONG = "dog " * 300
PAIRS = [*zip(sentences(6), sentences(6, seed=1), strict=True), (TOO_LONG, "The dog."), ("The dog.", TOO_LONG)]


@pytest.fixture(scope="module")
def backward(tmp_path_factory: pytest.TempPathFactory) -> PairScorer:
    folder = write_model(tmp_path_factory.mktemp("models") / "backward", ["de-en", "en-de"], seed=5, max_length=512)
    return PairScorer.load(folder, "cpu")


def test_the_source_given_the_translation(backward: PairScorer) -> None:
    scores = round_trip_scores(backward, PAIRS, EN_DE, chunk_size=4)
    for (source, target), score in zip(PAIRS[:6], scores, strict=False):
        (scored,) = backward.score([target], [source], Direction("de", "en"))
        assert score == pytest.approx(scored.log_probability / len(scored.token_log_probabilities), rel=1e-5)
    assert len({*scores[:6]}) == 6


def test_pairs_that_are_too_long(backward: PairScorer, small_model: Path) -> None:
    assert list(map(math.isfinite, round_trip_scores(backward, PAIRS[6:], EN_DE))) == [True, True]
    pairs = [(TOO_LONG * 3, "The dog."), ("The dog.", TOO_LONG * 3)]
    assert round_trip_scores(backward, pairs, EN_DE) == [-math.inf] * 2
    with pytest.raises(RequestError, match=r"pair 1.*\n.*pair 3"):
        PairScorer.load(small_model, "cpu").score(["a"] * 3, ["dog " * 2000, "a", "cat " * 2000], EN_DE)


@pytest.mark.parametrize(
    ("scores", "fraction", "kept"),
    [
        ((-1.0, -3.0, -2.0, -4.0), 0.5, "ac"),
        ((-1.0, -3.0, -2.0, -4.0), 0.49, "abc"),  # 0.49 x 4 is rounded down
        ((-1.0, -3.0, -2.0, -4.0), 0.0, "abcd"),
        ((-2.0, -2.0, -2.0, -2.0), 0.25, "abc"),  # of equal ones, the last
        ((-1.0, -math.inf, -math.inf, -4.0), 0.25, "ad"),  # what has no score is dropped in any case
    ],
)
def test_the_lowest_are_dropped(scores: tuple[float, ...], fraction: float, kept: str) -> None:
    pairs = [(name, name.upper()) for name in "abcd"]
    assert drop_lowest(pairs, scores, fraction) == [(name, name.upper()) for name in kept]


@pytest.fixture(scope="module")
def translator(small_model: Path) -> Translator:
    return Translator.load(small_model, device="cpu")


def test_a_translation_scores_as_the_search_that_found_it_says(translator: Translator, small_model: Path) -> None:
    sources, options = sentences(8, seed=3), replace(translator.options, beam_size=2)
    found = [translation.alternatives[0] for translation in search_results(translator, sources, options)]
    kept = [
        (source, best)
        for source, best in zip(sources, found, strict=True)
        if translator.tokenizer.encode(best.text.strip()) and _reads_back(translator, best.text, best.pieces)
    ]
    assert kept
    texts = [source for source, _ in kept], [best.text for _, best in kept]
    scored = PairScorer.load(small_model, "cpu").score(*texts, EN_DE)
    for (_, best), pair in zip(kept, scored, strict=True):
        assert pair.log_probability == pytest.approx(best.log_probability, abs=1e-3)
        assert len(pair.token_log_probabilities) == len(best.pieces) + 1


def test_neighbours_do_not_matter(small_model: Path) -> None:
    scorer = PairScorer.load(small_model, "cpu")
    sources, targets = [*sentences(70), "The dog " * 40], ["The cat " * 30, *sentences(70, seed=1)]
    for source, target, scored in zip(sources, targets, scorer.score(sources, targets, EN_DE), strict=True):
        (alone,) = scorer.score([source], [target], EN_DE)
        assert len(scored.token_log_probabilities) == len(alone.token_log_probabilities)
        assert scored.log_probability == pytest.approx(alone.log_probability, rel=1e-4)
        assert scored.mean == pytest.approx(alone.log_probability / len(alone.token_log_probabilities), rel=1e-4)


def _reads_back(translator: Translator, text: str, pieces: tuple[str, ...]) -> bool:
    """Whether the text, encoded, gives the pieces that the search chose: an untrained model may choose others."""
    return tuple(translator.tokenizer.pieces(translator.tokenizer.encode(text.strip()))) == pieces


def test_a_pass_and_its_logits_are_of_limited_size(small_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long pairs of a large vocabulary would otherwise take gigabytes."""
    scorer = PairScorer.load(small_model, "cpu")
    model = scorer.loaded.model
    sources, targets = sentences(70), sentences(70, seed=1)
    expected = scorer.score(sources, targets, EN_DE)
    passes: list[int] = []
    logits: list[int] = []
    encode, project = model.encode, model.embedding.project

    def noted_encode(source: Tensor, mask: Tensor) -> Tensor:
        passes.append(source.numel())
        return encode(source, mask)

    def noted_project(states: Tensor) -> Tensor:
        logits.append(states[..., 0].numel())
        return project(states)

    monkeypatch.setattr(model, "encode", noted_encode)
    monkeypatch.setattr(model.embedding, "project", noted_project)
    limited = replace(scorer, pass_tokens=100, max_logits=7 * model.vocabulary_size)
    scored = limited.score(sources, targets, EN_DE)
    assert len(passes) > 2 and max(passes) <= 100
    assert max(logits) <= 7
    assert sum(logits) == sum(len(pair.token_log_probabilities) for pair in scored), "padding has no logits"
    for one, other in zip(scored, expected, strict=True):  # passes of other shapes round logits of 30 differently
        assert one.token_log_probabilities == pytest.approx(other.token_log_probabilities, abs=1e-3)
