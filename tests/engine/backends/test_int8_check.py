"""The divergence by hand and in the kernels, and what it decides for a model without calibration text."""

import ctypes
import logging
import math
import shutil
from pathlib import Path

import pytest
import torch

from mt import Translator
from mt.checkpoint import FLOAT_WEIGHTS, load_model, save_int8_check
from mt.data.check_sentences import SENTENCES, check_sentences
from mt.description import CalibrationPair, Int8Check
from mt.engine.backends.calibration import LARGEST_DECILE, LARGEST_DIVERGENCE
from mt.engine.backends.int8_check import NOT_FINITE, divergence
from mt.interop.int8 import round_import
from mt.tokenizer import EOS
from tests.decoding.conftest import Ids, TableScorer
from tests.kernels.conftest import library as library
from tests.weights import change_weights

FROZEN = Path(__file__).resolve().parents[2] / "frozen" / "model"
GOOD = Int8Check(sentences=3, divergence=LARGEST_DIVERGENCE, worst_decile=LARGEST_DECILE)


def answering(probability: float) -> TableScorer:
    """Return a scorer by which sentence n has n tokens 5 and EOS, each with this probability; all else is token 6."""

    def table(source: Ids, tokens: Ids) -> list[float]:
        answers = {5 if len(tokens) < len(source) - 1 else EOS: probability, 6: 1 - probability}
        return [math.log(answers.get(token, 0.0) + 1e-9) for token in range(7)]

    return TableScorer(table)


def test_the_divergence_by_hand() -> None:
    loaded = load_model(FROZEN)
    texts = ("", "a dog", "a dog, a dog")
    pairs = [loaded.encode_pair(CalibrationPair(direction="en-de", source=text, target="")) for text in texts]
    expected = 0.9 * math.log(0.9 / 0.6) + 0.1 * math.log(0.1 / 0.4)
    found = divergence(answering(0.9), answering(0.6), pairs, 512)
    assert found.sentences == 3
    assert found.divergence == pytest.approx(expected, abs=1e-5) == found.worst_decile
    assert divergence(answering(0.9), answering(0.9), pairs, 512).divergence == 0
    assert divergence(answering(0.9), answering(math.nan), pairs, 512).divergence == NOT_FINITE


def test_sentences_of_a_language() -> None:
    assert check_sentences("de-AT", ()) == SENTENCES["de"] and check_sentences("xx", ()) == []
    pieces = ["<pad>", ">>de<<", "\u2581", "\u2581ka", "po"]
    samples = check_sentences("xx", pieces)
    assert samples == check_sentences("xx", pieces) and len(set(samples)) > 5
    assert set("".join(samples)) == set("kapo ")


def test_the_kernels_of_a_trained_model_are_accepted(library: ctypes.CDLL, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FROZEN, tmp_path / "model"))
    assert Translator.load(folder, "cpu").dtype == "float32"
    check = round_import(folder)
    assert check is not None and load_model(folder).int8_check == check
    assert check.sentences == len(SENTENCES["en"]) and 1e-6 < check.divergence < LARGEST_DIVERGENCE
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert card.startswith((FROZEN / "README.md").read_text(encoding="utf-8"))
    assert f"by {check.divergence:.5f} nats" in card and "selects int8" in card
    assert Translator.load(folder, "cpu").dtype == "int8"
    assert load_model(folder).description.weights == "int8" and not (folder / FLOAT_WEIGHTS).exists()


def spoil(weights: dict[str, torch.Tensor]) -> None:
    weights["embedding.tokens.weight"][:, 0] = 100 * weights["embedding.tokens.weight"].abs().max()


def test_float_weights_remain_if_int8_diverges(library: ctypes.CDLL, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FROZEN, tmp_path / "model"))
    change_weights(folder, spoil)
    check = round_import(folder)
    assert check is not None and load_model(folder).int8_check == check
    assert load_model(folder).description.weights == "float32" and Translator.load(folder, "cpu").dtype == "float32"
    assert "selects float32" in (folder / "README.md").read_text(encoding="utf-8")


def test_without_kernels_an_import_stays_in_float32(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(shutil.copytree(FROZEN, tmp_path / "model"))
    monkeypatch.setattr("mt.interop.int8.load_library", lambda: None)
    assert round_import(folder) is None and load_model(folder).description.weights == "float32"


@pytest.mark.parametrize(("worst", "dtype"), [(LARGEST_DECILE, "int8"), (1.0, "float32")])
def test_auto_follows_the_stored_check(
    library: ctypes.CDLL, tmp_path: Path, caplog: pytest.LogCaptureFixture, worst: float, dtype: str
) -> None:
    folder = Path(shutil.copytree(FROZEN, tmp_path / "model"))
    save_int8_check(folder, GOOD.model_copy(update={"worst_decile": worst}))
    with caplog.at_level(logging.INFO, "mt"):
        assert Translator.load(folder, "cpu").dtype == dtype
    assert f"frozen-en-de uses {dtype}: int8 diverges from float32 by 0.00500 nats per token" in caplog.text
    for wanted in ("float32", "int8"):
        assert Translator.load(folder, "cpu", dtype=wanted).dtype == wanted
