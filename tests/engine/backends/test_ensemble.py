"""Several models that translate together."""

import math
from pathlib import Path

import pytest

from mt import Translator
from mt.checkpoint import load_model, save_confidence
from mt.decoding.scorer import ModelScorer
from mt.description import Confidence
from mt.errors import ModelError
from mt.scoring.pairs import score_targets
from tests.conftest import search_results, sentences, write_model

TEXTS = sentences(6)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model like the small one, but for its weights and its length."""
    return write_model(tmp_path_factory.mktemp("models") / "other", ["en-de"], seed=2, max_length=64)


def test_each_token_has_the_mean_of_its_probabilities(small_model: Path, other: Path) -> None:
    one, two = Translator.load(small_model, "cpu"), Translator.load(other, "cpu")
    ensemble = Translator.load(small_model, "cpu", others=[other])
    translations = {each: search_results(each, TEXTS) for each in (one, two, ensemble)}
    members = [load_model(folder).model for folder in (small_model, other)]
    pieces = ensemble.tokenizer.pieces(range(len(ensemble.tokenizer)))
    texts = {each: [found.text for found in translations[each]] for each in translations}
    assert texts[ensemble] != texts[one] and texts[ensemble] != texts[two]
    for text, found in zip(TEXTS, translations[ensemble], strict=True):
        written = found.alternatives[0]
        asked = ensemble.request(text)
        assert asked is not None
        tokens = [pieces.index(piece) for piece in written.pieces]
        each = [score_targets(ModelScorer(member), [asked.source], [tokens])[0] for member in members]
        probabilities = [[math.exp(value) for value in pair.token_log_probabilities] for pair in each]
        expected = [math.log((a + b) / 2) for a, b in zip(*probabilities, strict=True)]
        assert written.piece_log_probabilities == pytest.approx(expected, abs=1e-4)


def test_the_shortest_says_how_long_a_sentence_may_be(small_model: Path, other: Path) -> None:
    long = "the dog sees the cat " * 20  # 100 tokens and more
    assert len(Translator.load(small_model, "cpu").planner().task(long).requests) == 1
    for first, second in [(small_model, other), (other, small_model)]:
        plan = Translator.load(first, "cpu", others=[second]).planner().task(long)
        assert len(plan.requests) > 1 and all(len(request.source) <= 64 for request in plan.requests)


def test_numbers_that_it_computes_in(small_model: Path, other: Path) -> None:
    for asked, chosen in [("auto", "float32"), ("float32", "float32"), ("bfloat16", "bfloat16")]:
        ensemble = Translator.load(small_model, "cpu", dtype=asked, others=[other])
        assert ensemble.dtype == chosen and ensemble.translate_many(["The dog."])[0].text
    with pytest.raises(ModelError, match=r"torch: dtype is int8; accepted: auto, float32, bfloat16"):
        Translator.load(small_model, "cpu", dtype="int8", others=[other])


def test_it_claims_no_confidence(other: Path, tmp_path: Path) -> None:
    sure = write_model(tmp_path / "sure", ["en-de"])
    save_confidence(sure, Confidence(slope=1, intercept=0, sentences=9))
    assert Translator.load(sure, "cpu").translate_many(["The dog."])[0].confidence is not None
    assert Translator.load(sure, "cpu", others=[other]).translate_many(["The dog."])[0].confidence is None


def test_all_that_does_not_fit_is_named_at_once(small_model: Path, several_directions: Path, tmp_path: Path) -> None:
    french = write_model(tmp_path / "french", ["en-fr"])
    with pytest.raises(ModelError) as caught:
        Translator.load(small_model, "cpu", others=[small_model, french, several_directions])
    told = str(caught.value).splitlines()
    assert told[0].startswith(f"these models cannot form an ensemble with {small_model}; accepted: the same tokenizer")
    for each, directions in ((french, "en-fr"), (several_directions, "en-de, en-fr, fr-de")):
        assert f"  - {each} has another tokenizer" in told
        assert f"  - {each} translates {directions}, not en-de" in told
    with pytest.raises(ModelError, match=r"nowhere: no model here"):
        Translator.load(small_model, "cpu", others=[tmp_path / "nowhere"])
