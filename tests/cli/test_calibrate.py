import json
import shutil
from pathlib import Path
from statistics import mean

import pytest
import torch

from mt import Translator
from mt.checkpoint import load_model, save_calibration
from mt.cli.calibrate import LEAST_PAIRS, main
from mt.description import CalibrationPair, Confidence
from mt.errors import DataError
from mt.evaluation import sentence_chrf
from mt.model.transformer import Transformer
from mt.training.confidence import fit_confidence
from tests.conftest import sentences

SOURCES = sentences(12)
TIMES = -(-LEAST_PAIRS // len(SOURCES))


@pytest.fixture
def model(small_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(small_model, tmp_path / "model"))


@pytest.fixture
def files(model: Path, tmp_path: Path) -> list[str]:
    """A corpus whose references are what the model writes, but for every third."""
    translations = [item.text for item in Translator.load(model, "cpu").translate_many(SOURCES)]
    references = ["Haus" if number % 3 == 0 else text for number, text in enumerate(translations)]
    for name, lines in {"en": [*SOURCES * TIMES, ""], "de": [*references * TIMES, ""]}.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return ["--source-file", str(tmp_path / "en"), "--reference-file", str(tmp_path / "de")]


def test_a_model_is_given_its_confidence(model: Path, files: list[str]) -> None:
    assert main([str(model), *files]) == 0
    written = json.loads((model / "confidence.json").read_text(encoding="utf-8"))
    assert written.keys() == {"slope", "exponent", "intercept", "token_length", "max_novelty", "sentences"}
    translations = Translator.load(model, "cpu").translate_many(SOURCES * TIMES, sentences=True)
    decoded = [
        (item, text)
        for item, text in zip(translations, Path(files[-1]).read_text(encoding="utf-8").splitlines(), strict=False)
        if item.confidence is not None
    ]
    assert (
        TIMES * len(SOURCES) / 2 < written["sentences"] == len(decoded)
    )  # without a word, a sentence has no confidence
    confidence = mean(item.confidence or 0 for item, _ in decoded)
    chrf = mean(sentence_chrf([item.text for item, _ in decoded], [text for _, text in decoded])) / 100
    assert confidence == pytest.approx(chrf, rel=0.03)  # least squares keep the mean, except for limits 0 and 1


def test_a_model_is_given_text_to_check_int8_with(model: Path, files: list[str]) -> None:
    assert Translator.load(model, "cpu").dtype == "float32"
    pair = CalibrationPair(direction="fr-en", source="une", target="a")
    save_calibration(model, [pair])
    assert main([str(model), *files]) == 0
    kept, *added = load_model(model).calibration
    assert kept == pair and {item.source for item in added} == {*SOURCES}
    save_calibration(model, added[:2])
    assert load_model(model).calibration == (pair, *added[:2])


def test_few_pairs_change_no_confidence(model: Path, files: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(model), *files]) == 0
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    for path in map(Path, files[1::2]):
        path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[: LEAST_PAIRS - 1]))
    assert main([str(model), *files]) == 2
    assert "the text has 199 pairs with a source" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before


def test_text_of_other_kinds_is_fitted_but_stays_unfamiliar(several_directions: Path, tmp_path: Path) -> None:
    model = Path(shutil.copytree(several_directions, tmp_path / "model"))
    for name, lines in {"dev": SOURCES[:8] * 2 * TIMES, "news": [text.upper() for text in SOURCES]}.items():
        (tmp_path / name).write_text("".join(f"{line}\tHaus\n" for line in lines), encoding="utf-8")

    def calibrated(*options: str) -> Confidence:
        assert main([str(model), "--tsv", str(tmp_path / "dev"), "en,de", *options]) == 0
        confidence = load_model(model).confidence
        assert confidence is not None
        return confidence

    alone = calibrated()
    both = calibrated("--other-tsv", str(tmp_path / "news"), "en,fr")
    assert (alone.sentences < both.sentences, alone.exponent, both.exponent) == (True, 1, 3)
    assert both.max_novelty == alone.max_novelty


def test_several_directions_share_one_line(several_directions: Path) -> None:
    translator = Translator.load(several_directions, "cpu")
    pairs = [
        CalibrationPair(direction=direction, source=source, target="Haus")
        for source, direction in zip(SOURCES, ["en-de", "en-fr", "fr-de"] * 4, strict=True)
    ]
    assert fit_confidence(translator, pairs).sentences == len(SOURCES)
    with pytest.raises(DataError, match="none of the 1 pairs has a source to translate"):
        fit_confidence(translator, [CalibrationPair(direction="en-de", source="12", target="12")])


def test_a_model_that_writes_no_word_has_no_confidence(small_model: Path) -> None:
    loaded = load_model(small_model)
    mark = loaded.tokenizer.encode("!")[-1]
    assert isinstance(loaded.model, Transformer)
    with torch.no_grad():  # every state of the decoder becomes the embedding of "!"
        norm = loaded.model.decoder.norm
        assert isinstance(norm, torch.nn.LayerNorm)
        norm.weight.zero_()
        norm.bias.copy_(10 * loaded.model.embedding.tokens.weight[mark])
    translator = Translator.from_loaded(loaded)
    pairs = [CalibrationPair(direction="en-de", source=source, target="Haus") for source in SOURCES]
    with pytest.raises(DataError, match="the model writes no word for any of 12 sentences"):
        fit_confidence(translator, pairs)
