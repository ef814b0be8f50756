"""Scores of given translations."""

from dataclasses import replace
from pathlib import Path

import pytest
from torch import Tensor

from mt import Translator
from mt.errors import RequestError
from mt.languages import Direction
from mt.scoring import pairs
from mt.scoring.pairs import PairScorer
from tests.conftest import search_results, sentences

EN_DE = Direction("en", "de")


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
    scored = PairScorer.load(small_model, "cpu").score(
        [source for source, _ in kept], [best.text for _, best in kept], EN_DE
    )
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


def test_every_pair_too_long_is_named(small_model: Path) -> None:
    with pytest.raises(RequestError, match=r"pair 1.*\n.*pair 3"):
        PairScorer.load(small_model, "cpu").score(["a"] * 3, ["dog " * 2000, "a", "cat " * 2000], EN_DE)


def _reads_back(translator: Translator, text: str, pieces: tuple[str, ...]) -> bool:
    """Whether the text, encoded, gives the pieces that the search chose: an untrained model may choose others."""
    return tuple(translator.tokenizer.pieces(translator.tokenizer.encode(text.strip()))) == pieces


def test_a_pass_and_its_logits_are_of_limited_size(small_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Long pairs of a large vocabulary would otherwise take gigabytes."""
    scorer = PairScorer.load(small_model, "cpu")
    model = scorer.loaded.model
    sources, targets = sentences(70), sentences(70, seed=1)
    expected = scorer.score(sources, targets, EN_DE)
    monkeypatch.setattr(pairs, "PASS_TOKENS", 100)
    monkeypatch.setattr(pairs, "MAX_LOGITS", 7 * model.vocabulary_size)
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
    scored = scorer.score(sources, targets, EN_DE)
    assert len(passes) > 2 and max(passes) <= 100
    assert max(logits) <= 7
    assert sum(logits) == sum(len(pair.token_log_probabilities) for pair in scored), "padding has no logits"
    for one, other in zip(scored, expected, strict=True):  # passes of other shapes round logits of 30 differently
        assert one.token_log_probabilities == pytest.approx(other.token_log_probabilities, abs=1e-3)
