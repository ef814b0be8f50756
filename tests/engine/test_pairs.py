"""Scores and word alignments of given translations."""

from pathlib import Path

import pytest
import torch

from mt import Translator
from mt.engine.pairs import align_pairs, score_pairs
from mt.errors import RequestError
from tests.conftest import sentences


@pytest.fixture(scope="module")
def translator(small_model) -> Translator:  # type: ignore[no-untyped-def]
    return Translator.load(small_model, device="cpu")


def test_a_translation_scores_as_the_search_that_found_it_says(translator: Translator) -> None:
    sources = sentences(8, seed=3)
    found = [translation.alternatives[0] for translation in translator.translate(sources, beam_size=2, whole=False)]
    kept = [
        (source, best)
        for source, best in zip(sources, found, strict=True)
        if translator.tokenizer.encode(best.text.strip()) and _reads_back(translator, best.text, best.pieces)
    ]
    assert kept
    scored = score_pairs(translator, [source for source, _ in kept], [best.text for _, best in kept], "en-de")
    for (_, best), pair in zip(kept, scored, strict=True):
        assert pair.log_probability == pytest.approx(best.log_probability, abs=1e-3)
        assert len(pair.token_log_probabilities) == len(best.pieces) + 1


def test_every_target_word_is_aligned_with_one_source_word(translator: Translator) -> None:
    sources, targets = ["The dog sees a cat.", "a"], ["Der Hund sieht eine Katze.", ""]
    first, second = align_pairs(translator, sources, targets, "en-de")
    assert first.source == ("The", "dog", "sees", "a", "cat.")
    assert first.target == ("Der", "Hund", "sieht", "eine", "Katze.")
    assert [target for _, target in first.pairs] == [0, 1, 2, 3, 4]
    assert all(0 <= source < 5 for source, _ in first.pairs)
    assert (second.target, second.pairs) == ((), ())


def test_nothing_is_aligned_with_nothing_whatever_the_tags(several_directions: Path) -> None:
    several = Translator.load(several_directions, device="cpu")
    (pair, _) = align_pairs(several, ["", "a"], ["Hund", ""], several.directions[0])
    assert (pair.source, pair.target, pair.pairs) == ((), ("Hund",), ())


def test_alignment_follows_the_attention(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    model = translator.model

    def one_to_one(source: torch.Tensor, source_mask: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        layers, heads = 2, 2
        return torch.eye(target.shape[1], source.shape[1]).expand(layers, len(source), heads, -1, -1)

    monkeypatch.setattr(model, "cross_attention", one_to_one)
    (pair,) = align_pairs(translator, ["The dog sees a cat."], ["The dog sees a cat."], "en-de")
    assert pair.pairs == ((0, 0), (1, 1), (2, 2), (3, 3), (4, 4))


def test_every_pair_too_long_is_named(translator: Translator) -> None:
    with pytest.raises(RequestError, match=r"pair 1.*\n.*pair 3"):
        score_pairs(translator, ["a"] * 3, ["dog " * 2000, "a", "cat " * 2000], "en-de")


def _reads_back(translator: Translator, text: str, pieces: tuple[str, ...]) -> bool:
    """Whether the text, encoded, gives the pieces that the search chose: an untrained model may choose others."""
    return tuple(translator.tokenizer.pieces(translator.tokenizer.encode(text.strip()))) == pieces
