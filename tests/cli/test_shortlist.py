"""`scripts/shortlist.py` as a user types it: a shortlist from a recipe's text, beside its model."""

import io
from contextlib import redirect_stderr
from pathlib import Path
from shutil import copytree

import pytest

from mt.checkpoint import load_model
from mt.cli.shortlist import main
from mt.errors import ModelError
from mt.kernels.shortlist import Shortlist, save_shortlist
from mt.tokenizer import EOS, Tokenizer
from tests.conftest import NOUNS, sentences, write_model

RECIPE = """
name = "words"
[data]
root = "{root}"
directions = [{directions}]
train = ["train.{{language}}"]
valid = ["train.{{language}}"]
[tokenizer]
vocabulary_size = 400
[model]
size = "tiny"
"""


def german(sentence: str) -> str:
    """Each word backwards, which is German enough."""
    return " ".join(word[::-1] for word in sentence.split())


def write_recipe(folder: Path, directions: str = '"en-de"') -> Path:
    english = sentences(400)
    (folder / "train.en").write_text("".join(f"{each}\n" for each in english), encoding="utf-8")
    (folder / "train.de").write_text("".join(f"{german(each)}\n" for each in english), encoding="utf-8")
    recipe = folder / "recipe.toml"
    recipe.write_text(RECIPE.format(root=folder.as_posix(), directions=directions), encoding="utf-8")
    return recipe


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    """The exit status, and what stands on stderr."""
    with redirect_stderr(io.StringIO()) as said:
        status = main([*arguments, "--prepared", str(folder / "prepared")])
    return status, said.getvalue()


@pytest.fixture
def model(small_model: Path, tmp_path: Path) -> Path:
    return Path(copytree(small_model, tmp_path / "model"))


def test_each_noun_allows_its_translation(model: Path, tmp_path: Path) -> None:
    """With the model's own tokenizer, which is another than the one that is prepared."""
    recipe = write_recipe(tmp_path)
    status, said = run(tmp_path, str(model), str(recipe), "--frequent", "5", "--translations", "12")
    assert (status, "tokens per sentence with" in said) == (0, True), said
    loaded = load_model(model)
    assert loaded.shortlist is not None
    assert loaded.shortlist.vocabulary_size == len(loaded.tokenizer)
    alone = 0
    for noun in NOUNS:
        source, target = loaded.tokenizer.encode(f"the {noun}"), loaded.tokenizer.encode(german(f"the {noun}"))
        allowed = set(loaded.shortlist.ids(source).tolist())
        alone += len(set(target) - set(loaded.shortlist.always.tolist()))
        assert set(target) <= allowed and len(allowed) < len(loaded.tokenizer)
    assert alone > 0, "some translations ought not to be allowed always"


def test_the_recipe_of_a_tuned_model(model: Path, tmp_path: Path) -> None:
    recipe = write_recipe(tmp_path)
    text = recipe.read_text().partition("[tokenizer]")[0]
    recipe.write_text(f'{text}[tuning]\nmodel = "{model}"\n')
    assert run(tmp_path, str(model), str(recipe))[0] == 0
    assert load_model(model).shortlist is not None


def test_a_recipe_of_another_direction(model: Path, tmp_path: Path) -> None:
    status, said = run(tmp_path, str(model), str(write_recipe(tmp_path, '"de-en"')))
    assert status == 2 and "has no text for the model's en-de; accepted: a recipe with all" in said
    assert not (model / "shortlist.safetensors").exists()


def test_a_number_that_cannot_be(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([str(model), str(write_recipe(tmp_path)), "--frequent", "0"])
    assert ended.value.code == 2 and "--frequent: 0; accepted: a number of at least 1" in capsys.readouterr().err


def test_several_directions_share_one(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model", ["en-de", "de-en"])
    recipe = write_recipe(tmp_path, '"en-de", "de-en"')
    status, said = run(tmp_path, str(model), str(recipe))
    assert status == 0, said
    loaded = load_model(model)
    assert loaded.shortlist is not None
    for direction in (sentences(5), list(map(german, sentences(5)))):
        for text in direction:
            allowed = set(loaded.shortlist.ids(loaded.tokenizer.encode(text)).tolist())
            assert set(loaded.tokenizer.encode(german(text))) <= allowed


def test_a_shortlist_that_is_not_the_models_is_refused(model: Path) -> None:
    tokenizer = Tokenizer.load(model / "tokenizer.model")
    pieces = tokenizer.pieces(range(len(tokenizer)))
    path = model / "shortlist.safetensors"
    save_shortlist(model, Shortlist.build(pieces, EOS, [], []), tokenizer)
    assert load_model(model).shortlist is not None
    assert [file.name for file in model.iterdir() if file.name.startswith(".")] == []
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    with pytest.raises(ModelError, match=r"shortlist\.safetensors: not a complete safetensors file"):
        load_model(model)
    save_shortlist(model, Shortlist.build(pieces[:-1], EOS, [], []), tokenizer)
    with pytest.raises(ModelError, match=rf"the shortlist is for {len(pieces) - 1} tokens; accepted: {len(pieces)}"):
        load_model(model)
    other = write_model(model.parent / "other", ["en-de", "en-fr"])
    tokenizer = Tokenizer.load(other / "tokenizer.model")
    save_shortlist(model, Shortlist.build(pieces, EOS, [], []), tokenizer)
    with pytest.raises(ModelError, match=r"for another tokenizer; accepted: .*mt-service shortlist"):
        load_model(model)
