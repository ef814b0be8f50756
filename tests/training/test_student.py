"""A student that begins with parts of its teacher: which parts, and that what is added changes nothing yet."""

from pathlib import Path

import pytest
import torch

from mt import Translator
from mt.checkpoint import LoadedModel, load_model
from mt.cli.shrink import main
from mt.errors import ModelError
from mt.training.student import evenly_spaced, shrink
from tests.conftest import sentences, write_model


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "teacher", ["en-de", "en-fr"], layers=3)


@pytest.fixture
def loaded(teacher: Path) -> LoadedModel:
    return load_model(teacher)


@pytest.mark.parametrize(
    ("layers", "count", "kept"),
    [(4, 1, [3]), (4, 2, [0, 3]), (6, 3, [0, 2, 5]), (4, 4, [0, 1, 2, 3]), (4, 6, [0, 1, 2, 3]), (1, 1, [0])],
)
def test_which_layers_stay(layers: int, count: int, kept: list[int]) -> None:
    assert evenly_spaced(layers, count) == kept


def test_further_encoder_layers_change_nothing_yet(teacher: Path, tmp_path: Path) -> None:
    assert main([str(teacher), str(tmp_path / "student"), "--encoder-layers", "5"]) == 0
    ours, theirs = (Translator.load(each, "cpu", "float32") for each in (tmp_path / "student", teacher))
    assert ours.description.model.encoder_layers == 5
    found = [translator.translate_many(sentences(9), target="fr") for translator in (ours, theirs)]
    assert [each.text for each in found[0]] == [each.text for each in found[1]]
    assert [each.score for each in found[0]] == pytest.approx([each.score for each in found[1]])


def test_other_folders_are_not_replaced(teacher: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "app" / "src").mkdir(parents=True)  # a project that has a config.json, and perhaps a model, too
    for file in ("config.json", "model.safetensors"):
        (tmp_path / "app" / file).touch()
    around, alone = "is or contains the model to convert, and would be replaced", "is not a model"
    for out, message in ((teacher, around), (teacher.parent, around), (tmp_path, alone), (tmp_path / "app", alone)):
        assert main([str(teacher), str(out), "--decoder-layers", "1"]) == 2
        assert message in capsys.readouterr().err
    assert (tmp_path / "app" / "src").exists() and load_model(teacher)


def test_it_has_the_layers_and_the_rows_of_its_pieces(loaded: LoadedModel) -> None:
    weights, tokenizer, description = shrink(loaded, 2, 1, len(loaded.tokenizer) - 40)
    theirs = loaded.model.state_dict()
    assert (description.model.encoder_layers, description.model.decoder_layers) == (2, 1)
    assert description.vocabulary_size == len(tokenizer) == len(loaded.tokenizer) - 40
    for ours, name in (("decoder.layers.0", "decoder.layers.2"), ("encoder.layers.1", "encoder.layers.2")):
        assert torch.equal(weights[f"{ours}.feed_forward.inner.weight"], theirs[f"{name}.feed_forward.inner.weight"])
    for piece in ("▁the", "<2de>", "e"):
        row, old = (each.pieces(range(len(each))).index(piece) for each in (tokenizer, loaded.tokenizer))
        assert torch.equal(weights["embedding.tokens.weight"][row], theirs["embedding.tokens.weight"][old])


def test_all_that_cannot_be_is_told_at_once(loaded: LoadedModel) -> None:
    with pytest.raises(ModelError) as told:
        shrink(loaded, 0, 4, 9999)
    for words in ("encoder_layers is 0; accepted: at least 1", "decoder_layers is 4; accepted: 1 to 3", "is 9999"):
        assert words in str(told.value)


def test_a_student_can_be_loaded(teacher: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(teacher), str(tmp_path / "student"), "--decoder-layers", "1", "--vocabulary-size", "380"]
    assert main(arguments) == 0
    assert "not trained yet" in capsys.readouterr().err
    assert "3 encoder and 1 decoder layers, 380 pieces" in (tmp_path / "student" / "README.md").read_text()
    Translator.load(tmp_path / "student", "cpu").translate_many(["The dog."], target="de")
    assert main([str(tmp_path / "nothing"), str(tmp_path / "out")]) == 2
    assert "no model here" in capsys.readouterr().err
