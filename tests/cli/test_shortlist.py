"""`scripts/shortlist.py` as a user types it: a shortlist from a recipe's text, beside its model."""

import io
from contextlib import redirect_stderr
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest

from mt.checkpoint import load_model
from mt.cli.shortlist import main
from mt.errors import ModelError
from mt.kernels.shortlist import Shortlist, save_shortlist
from mt.tokenizer import EOS, Tokenizer
from tests.conftest import NOUNS, sentences, write_model
from tests.kernels.conftest import CHECK
from tests.kernels.conftest import library as library

pytestmark = pytest.mark.usefixtures("library")
LENIENT = ("--largest-loss", "100", "--largest-excluded", "1")  # the model of the tests has random weights

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


def empty_shortlist(pieces: list[str]) -> Shortlist:
    return replace(Shortlist.build(pieces, EOS, [], []), check=CHECK)


@pytest.fixture(autouse=True)
def small_vocabularies(monkeypatch: pytest.MonkeyPatch) -> None:
    """A vocabulary of 400 tokens may have a shortlist."""
    monkeypatch.setattr("mt.training.shortlist.LARGEST_SHARE", 1)


@pytest.fixture
def model(small_model: Path, tmp_path: Path) -> Path:
    return Path(copytree(small_model, tmp_path / "model"))


def test_each_noun_allows_its_translation(model: Path, tmp_path: Path) -> None:
    """With the model's own tokenizer, which is another than the one that is prepared."""
    recipe = write_recipe(tmp_path)
    status, said = run(tmp_path, str(model), str(recipe), "--frequent", "5", "--translations", "12", *LENIENT)
    assert (status, "of 400 tokens on average; BLEU" in said) == (0, True), said
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
    assert run(tmp_path, str(model), str(recipe), *LENIENT)[0] == 0
    assert load_model(model).shortlist is not None


def test_a_recipe_of_another_direction(model: Path, tmp_path: Path) -> None:
    status, said = run(tmp_path, str(model), str(write_recipe(tmp_path, '"de-en"')))
    assert status == 2 and "has no text for the model's en-de; accepted: a recipe with all" in said
    assert not (model / "shortlist.safetensors").exists()


def test_a_loss_leaves_the_model_without(model: Path, tmp_path: Path) -> None:
    save_shortlist(model, empty_shortlist(load_model(model).tokenizer.pieces(range(400))), load_model(model).tokenizer)
    status, said = run(tmp_path, str(model), str(write_recipe(tmp_path)), "--frequent", "5", "--translations", "1")
    assert status == 0 and "No shortlist, because it would lower the quality." in said
    assert [line.split("with ")[-1] for line in said.splitlines() if line.startswith("translating")] == [
        f"{count} translations per token" for count in (1, 2, 4)
    ]
    assert load_model(model).shortlist is None  # nor the one of before
    card = (model / "README.md").read_text(encoding="utf-8")
    assert card.startswith("# small\n\n## Vocabulary shortlist\n\nNo shortlist, because it would lower the quality. ")
    assert run(tmp_path, str(model), str(tmp_path / "recipe.toml"), *LENIENT)[0] == 0
    card = (model / "README.md").read_text(encoding="utf-8")
    assert card.count("## Vocabulary shortlist") == 1 and "No shortlist" not in card
    assert "differ with it (text that is not training text, float32, beam 3" in card


def test_a_corpus_instead_of_a_recipe(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [f"{german(each)}\t{each}\n" for each in sentences(1500)]
    (tmp_path / "corpus.tsv").write_text("".join(lines), encoding="utf-8")
    corpus = ("--tsv", str(tmp_path / "corpus.tsv"))
    status, said = run(tmp_path, str(model), *corpus, "de,en", *LENIENT)
    assert status == 0 and "aligning 750 pairs, en-de" in said and "translating 750 sentences" in said, said
    shortlist, tokenizer = load_model(model).shortlist, load_model(model).tokenizer
    assert shortlist is not None and shortlist.check is not None and shortlist.check.sentences == 750
    for text in sentences(5):
        assert set(tokenizer.encode(german(text))) <= set(shortlist.ids(tokenizer.encode(text)).tolist())
    status, said = run(tmp_path, str(model), *corpus, "en,fr")
    assert status == 2 and "no corpus has en-de; accepted: files with the languages of en-de" in said
    with pytest.raises(SystemExit):
        main([str(model)])
    assert "give a RECIPE, or --tsv FILE LANGUAGES" in capsys.readouterr().err


def test_a_number_that_cannot_be(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([str(model), str(write_recipe(tmp_path)), "--frequent", "0"])
    assert ended.value.code == 2 and "--frequent: 0; accepted: a number of at least 1" in capsys.readouterr().err


def test_several_directions_share_one(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model", ["en-de", "de-en"])
    recipe = write_recipe(tmp_path, '"en-de", "de-en"')
    status, said = run(tmp_path, str(model), str(recipe), *LENIENT)
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
    save_shortlist(model, empty_shortlist(pieces), tokenizer)
    assert load_model(model).shortlist is not None
    assert [file.name for file in model.iterdir() if file.name.startswith(".")] == []
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    with pytest.raises(ModelError, match=r"shortlist\.safetensors: not a complete safetensors file"):
        load_model(model)
    save_shortlist(model, empty_shortlist(pieces[:-1]), tokenizer)
    with pytest.raises(ModelError, match=rf"the shortlist is for {len(pieces) - 1} tokens; accepted: {len(pieces)}"):
        load_model(model)
    other = write_model(model.parent / "other", ["en-de", "en-fr"])
    tokenizer = Tokenizer.load(other / "tokenizer.model")
    save_shortlist(model, empty_shortlist(pieces), tokenizer)
    with pytest.raises(ModelError, match=r"for another tokenizer; accepted: .*mt-service shortlist"):
        load_model(model)
