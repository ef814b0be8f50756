"""Texts and how probable they are: by hand, alone and among others."""

import shutil
from pathlib import Path

import pytest
import torch

from mt import Translator
from mt.checkpoint import load_language_model, load_model
from mt.errors import ModelError, RequestError
from mt.scoring import language_model as language
from mt.scoring.language_model import LanguageModelScorer, ScoredText, perplexity
from mt.tokenizer import BOS, EOS
from tests.conftest import sentences


@pytest.fixture(scope="module")
def scorer(small_language_model: Path) -> LanguageModelScorer:
    return LanguageModelScorer.load(small_language_model, "cpu")


def test_scores_are_those_of_the_logits(scorer: LanguageModelScorer) -> None:
    texts = ["The dog sees the cat.", "", "The house", " The house"]
    for text, scored in zip(texts, scorer.score(texts), strict=True):
        ids = scorer.tokenizer.encode(text)
        with torch.inference_mode():
            log = scorer.model(torch.tensor([[BOS, *ids]])).double().log_softmax(-1)[0]
        expected = sum(float(log[place, id]) for place, id in enumerate([*ids, EOS]))
        assert scored.tokens == len(ids) + 1
        assert scored.log_probability == pytest.approx(expected, abs=1e-3)
        assert scored.mean == pytest.approx(expected / (len(ids) + 1), abs=1e-3)


def test_neighbours_do_not_matter(scorer: LanguageModelScorer, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*sentences(20), "The dog " * 50, "", "The dog."]
    together = scorer.score(texts)
    for count in (1, 60):
        monkeypatch.setattr(language, "BATCH_TOKENS", count)
        for one, other in zip(scorer.score(texts[::-1])[::-1], together, strict=True):
            assert one.tokens == other.tokens
            assert one.log_probability == pytest.approx(other.log_probability, rel=1e-5)
    assert scorer.score([]) == []


def test_perplexity_by_hand() -> None:
    """Six tokens of 1/2 and two of 1/8: 2^((6 + 6) / 8)."""
    half = -0.6931471805599453
    assert perplexity([ScoredText(6 * half, 6), ScoredText(6 * half, 2)]) == pytest.approx(2**1.5)


def test_what_is_too_long_is_named(scorer: LanguageModelScorer) -> None:
    with pytest.raises(RequestError, match=r"text 2: \d+ tokens; accepted: at most 256\n  - text 4") as caught:
        scorer.score(["The dog.", "dog " * 300, "", "cat " * 300])
    assert "text 1" not in str(caught.value)


def test_each_kind_of_model_is_refused_where_the_other_belongs(small_model: Path, small_language_model: Path) -> None:
    message = "a language model of 'de', but a translation model is needed"
    with pytest.raises(ModelError, match=message):
        Translator.load(small_language_model, "cpu")
    with pytest.raises(ModelError, match=message):
        load_model(small_language_model)
    with pytest.raises(ModelError, match="is a translation model, but a language model is needed"):
        LanguageModelScorer.load(small_model, "cpu")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"d_model": 32', '"d_model": 64', "does not fit its config.json"),
        ('"d_model": 32', '"d_model": 65536', "does not fit its config.json"),
        ('"decoder_layers": 1', '"decoder_layers": 2', r"decoder.layers.1.\S+ is missing"),
        ('"format_version": 1', '"format_version": 2', "format_version is 2; accepted: 1"),
        ('"language"', '"tongue"', "is a translation model, but a language model is needed"),
        ('"vocabulary_size": ', '"vocabulary_size": 1', "pieces, but vocabulary_size in config.json is"),
    ],
)
def test_a_config_that_does_not_fit(
    small_language_model: Path, tmp_path: Path, old: str, new: str, message: str
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(small_language_model, folder)
    config = folder / "config.json"
    text = config.read_text()
    assert old in text
    config.write_text(text.replace(old, new))
    with pytest.raises(ModelError, match=message):
        load_language_model(folder)
