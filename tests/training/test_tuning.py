"""Recipes that tune a model: what they take from it and refuse, what is frozen, and what is watched."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from mt.bundled import STARTER_MODEL
from mt.checkpoint import LoadedModel, load_model, save_model
from mt.config import DecodingConfig, ModelConfig, Recipe
from mt.data.batching import load_batch
from mt.data.dataset import PreparedData, load_prepared
from mt.data.preparation import prepare, prepared_folder
from mt.description import COVERED_LENGTH, Description
from mt.distributed import World
from mt.errors import RecipeError
from mt.interop.importer import import_model
from mt.languages import DirectionSet
from mt.model.embedding import NEVER
from mt.model.transformer import Transformer
from mt.recipe import save_recipe
from mt.tokenizer import Tokenizer, train_tokenizer
from mt.training.card import Published, write_card
from mt.training.loss import batch_loss
from mt.training.state import trained
from mt.training.trainer import Trainer
from mt.training.tuning import forgetting_warning, read_recipe
from tests.interop.opus import Opus
from tests.training.conftest import WORDS, equal, finish, metrics, train, weights_of, write_corpora
from tests.weights import load_weights

RECIPE = """
name = "tuned"

[data]
root = "{folder}/corpora"
directions = ["en-de"]
train = ["train.{{language}}"]
valid = ["valid.{{language}}"]

[tuning]
model = "{folder}/old"
monitor = ["test.{{language}}"]

[training]
precision = "float32"
batch_tokens = 128
update_tokens = 256
max_updates = 4
learning_rate = 3e-3
warmup_updates = 1
validate_every = 4
validate_sentences = 8
save_every = 2
"""

OLD_CARD = "# old\n\n## Sources\n\nTatoeba: CC-BY 2.0.\n"

Read = Callable[..., Recipe]
Make = Callable[..., Trainer]


def write_old(folder: Path, directions: tuple[str, ...], marks: tuple[str, ...] = ()) -> Path:
    torch.manual_seed(3)
    parsed = DirectionSet.parse(directions)
    languages = sorted({*parsed.sources, *parsed.targets})
    tagged = languages if len(directions) > 1 else ()
    tokenizer = Tokenizer(train_tokenizer(WORDS * 9, vocabulary_size=330, languages=tagged, source_tags=marks))
    config = ModelConfig(encoder_layers=2, decoder_layers=1, d_model=16, d_ff=24, heads=2, max_length=64)
    search = DecodingConfig(beam_size=2, max_length_factor=1.5, max_length_offset=3)
    facts: dict[str, Any] = {"directions": parsed, "vocabulary_size": len(tokenizer), "model": config}
    description = Description(name="old", decoding=search, **facts)
    save_model(folder, LoadedModel(Transformer(config, len(tokenizer)), tokenizer, description), OLD_CARD)
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with corpora, a model to tune, and the recipe; not to be written to."""
    folder = tmp_path_factory.mktemp("tuning")
    write_corpora(folder / "corpora", 60, seed=1)
    write_old(folder / "old", ("en-de",))
    (folder / "recipe.toml").write_text(RECIPE.format(folder=folder))
    return folder


@pytest.fixture
def read(place: Path) -> Read:
    return lambda *overrides: read_recipe(place / "recipe.toml", overrides)


@pytest.fixture
def make(place: Path, read: Read, tmp_path: Path) -> Make:
    """A trainer in the folder `tmp_path/name`, with overrides of the recipe."""

    def build(name: str, *overrides: str) -> Trainer:
        recipe = read(*overrides)
        (tmp_path / name).mkdir(exist_ok=True)
        return Trainer(recipe, prepared(recipe, place), tmp_path / name, torch.device("cpu"), World())

    return build


def prepared(recipe: Recipe, place: Path) -> PreparedData:
    return load_prepared(prepare(recipe, place / "prepared"))


def refused(read: Read, *overrides: str) -> str:
    with pytest.raises(RecipeError) as caught:
        read(*overrides)
    return str(caught.value)


def test_a_recipe_takes_over_what_the_model_is(read: Read, place: Path, tmp_path: Path) -> None:
    recipe = read("model.dropout=0.25", "tokenizer.dropout=0.1", "decoding.beam_size=4")
    old = load_model(place / "old").description
    assert recipe.architecture == old.model.model_copy(update={"dropout": 0.25})
    assert recipe.decoding == old.decoding.model_copy(update={"beam_size": 4})
    assert recipe.directions.to_config() == ["en-de"]
    save_recipe(recipe, tmp_path / "kept.toml")
    assert read_recipe(tmp_path / "kept.toml") == recipe, "with every value spelt out, it is the same recipe"
    starter = read("tuning.model=starter").tuning
    assert starter and starter.model == STARTER_MODEL


def test_all_that_would_change_the_model_is_refused_at_once(read: Read) -> None:
    said = refused(
        read,
        *("model.d_model=32", "model.norm=post", "model.size=tiny", "model.droput=0.1", "model.heads=2"),
        *("tokenizer.vocabulary_size=99999", "tokenizer.dropout=0.1", "training.lerning_rate=1"),
        *("model.positions=learned", "tuning.directions=['de-en']"),
    )
    assert "model.d_model = 32, but the model to tune has 16; accepted: only changes of dropout" in said
    assert "model.norm = 'post', but the model to tune has 'pre'" in said
    assert "model.size = 'tiny', but tuning keeps the size" in said
    assert "model.droput is unknown (did you mean dropout?)" in said
    assert "model.heads" not in said, "it is what the model has"
    assert "model.positions is unknown" in said, "only imported models have other positions"
    assert "tuning.directions is read from the directory of the model to tune; remove it" in said
    assert "tokenizer.vocabulary_size is set, but the model to tune has a tokenizer; accepted: only tokenizer.d" in said
    assert "training.lerning_rate is unknown" in said


def test_what_the_model_cannot_do_is_refused_at_once(read: Read, tmp_path: Path) -> None:
    frozen = 'tuning.frozen=["encoder.layer.*", "decoder.norm.weight"]'
    said = refused(read, 'data.directions=["en-de", "de-en"]', frozen, "model.d_ff=7")
    assert "data.directions: de-en; accepted: the model's directions, en-de" in said
    assert "tuning.frozen: 'encoder.layer.*' matches no parameter (did you mean encoder.layers.*?)" in said
    assert "decoder.norm.weight" not in said
    assert "model.d_ff = 7, but the model to tune has 24" in said
    assert "but no parameter is left to train" in refused(read, 'tuning.frozen=["*"]')
    said = refused(read, 'tuning.frozen=["encoder.*", "decoder.*"]', "training.optimizer=muon")
    assert "training.optimizer = 'muon', but tuning.frozen leaves no layer matrix to train; accepted: 'adam'" in said
    said = refused(read, f"tuning.model='{tmp_path}'", "training.max_updates=0")
    assert "tuning.model: " in said and "no model here: the folder has no config.json" in said
    assert "training.max_updates = 0" in said


def test_a_tagged_model_learns_another_direction_and_keeps_its_own(read: Read, make: Make, tmp_path: Path) -> None:
    write_old(tmp_path / "tagged", ("en-de", "en-fr"))
    trainer = make("run", f"tuning.model='{tmp_path / 'tagged'}'", 'data.directions=["de-en"]')
    assert trainer.batches.tags == [[trainer.data.tokenizer.tag_id("en")]], "as it reads sources of several directions"
    description = trainer.describe()
    assert isinstance(description, Description)
    assert description.directions.to_config() == ["en-de", "en-fr", "de-en"]
    assert not description.normalised_text, "the text of the model to tune was not normalised"
    assert description.source_length == COVERED_LENGTH, "the model to tune was trained on longer sources"
    said = refused(read, f"tuning.model='{tmp_path / 'tagged'}'", 'data.directions=["de-cs"]')
    languages = "en-de, en-fr, or directions into de, en, fr, for which its tokenizer has tags"
    assert f"de-cs; accepted: the model's directions, {languages}" in said


def test_a_mark_is_one_that_the_model_has(read: Read, make: Make, tmp_path: Path) -> None:
    tagged = "{path='valid.{language}', source_tag='bt'}, {path='test.{language}', source_tag='mt'}"
    back = f"data.train=['train.{{language}}', {tagged}]"
    said = refused(read, back)
    assert "data.train: source_tag bt, mt, which the model's tokenizer lacks; accepted: none" in said
    write_old(tmp_path / "marked", ("en-de",), ("bt", "noised"))
    said = refused(read, back, f"tuning.model='{tmp_path / 'marked'}'")
    assert "data.train: source_tag mt, which the model's tokenizer lacks; accepted: source tags of the model to" in said
    trainer = make("run", back.replace("'mt'", "'noised'"), f"tuning.model='{tmp_path / 'marked'}'")
    bt, noised = map(trainer.data.tokenizer.source_tag_id, ("bt", "noised"))
    assert trainer.batches.source_tags == [[], [bt], [noised]]
    said = refused(read, "tuning.monitor=[{path='test.{language}', weight=2}]")
    assert "tuning.monitor: test.{language}: weight, source_tag, variants and directions can be set only in" in said


def test_text_is_encoded_by_the_models_tokenizer(read: Read, place: Path, tmp_path: Path) -> None:
    recipe = read()
    data = prepared(recipe, place)
    own = load_model(place / "old").tokenizer
    assert data.tokenizer.digest == own.digest
    assert data.train.source[3].tolist() == own.encode(data.train.texts("source", [3])[0])
    assert list(data.monitor) == ["test.{language}"]
    assert len(data.monitor["test.{language}"]) == 40
    write_old(tmp_path / "other", ("en-de", "de-en"))  # its tags make it another tokenizer
    other = read(f"tuning.model='{tmp_path / 'other'}'")
    assert prepared_folder(other, tmp_path) != prepared_folder(recipe, tmp_path)


def test_training_begins_with_the_model_and_leaves_alone_what_is_frozen(make: Make, place: Path) -> None:
    frozen = 'tuning.frozen=["encoder.*", "embedding.*"]'
    trainer = make("run", frozen, "model.dropout=0.2")
    old = load_weights(place / "old" / "model.safetensors")
    assert equal(weights_of(trainer), old)
    assert train(trainer)
    now = weights_of(trainer)
    changed = {name for name in old if not torch.equal(now[name], old[name])}
    assert changed, "something is trained"
    assert all(name.startswith("decoder.") for name in changed)
    same = {name for name in old if name.startswith("decoder.")} - changed
    assert all(name.endswith("key.bias") for name in same), "a key's bias changes no softmax"

    newest = trainer.checkpoints / "00000004"
    assert load_weights(newest / "model.safetensors").keys() == old.keys()
    kept = {name.split(".", 1)[1] for name in load_weights(newest / "optimizer.safetensors")}
    assert kept == trained(trainer.model).keys() == {name for name in old if name.startswith("decoder.")}
    assert finish(trainer)[0].keys() == old.keys()


def test_forgetting_is_shown_and_recorded(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    trainer = make("run")
    assert train(trainer)
    before = trainer.progress.before
    name = "monitor_loss:test.{language}"
    records = metrics(trainer.run)
    assert [record["update"] for record in records] == [0, 4]
    assert all([*record] == ["update", "valid_loss", "valid_bleu", name] for record in records)
    assert trainer.progress.before == {key: value for key, value in records[0].items() if key != "update"}
    assert records[0][name] != records[1][name]
    assert f"monitored loss: test.{{language}} {records[1][name]:.3f}" in capsys.readouterr().err

    for shift, worse in ((-9, ["valid_loss", name]), (9, ["valid_bleu"])):
        trainer.progress.before = {key: value + shift for key, value in before.items()}
        finish(trainer)
        (said,) = [line for line in capsys.readouterr().err.splitlines() if "worse than before tuning: " in line]
        assert [key for key in before if f"{key} " in said] == worse
    trainer.progress.before = before
    card = write_card(trainer.recipe, trainer.data, trainer.progress, Published("mean", before, "cpu"), {})
    assert card.endswith("\n## The card of the first model\n\n### old\n\n#### Sources\n\nTatoeba: CC-BY 2.0.\n")

    data = trainer.data
    there = data.monitor["test.{language}"]
    tokens = int((there.target.lengths + 1).sum())
    for pair in range(len(there)):
        batch = load_batch(there, [[]], torch.tensor([pair]).numpy())
        with torch.inference_mode():
            records[1][name] -= float(batch_loss(trainer.model.eval(), batch, 0.0)) / tokens
    assert records[1][name] == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize(
    ("directions", "overrides", "expected"),
    [
        (("en-de",), [], ""),
        (("en-de",), ["tuning.monitor=[]"], "without tuning.monitor, nothing shows what the model forgot"),
        (("en-de", "de-en", "en-fr"), [], "only en-de was trained: de-en, en-fr may be worse now"),
    ],
)
def test_what_a_model_may_forget(
    read: Read, tmp_path: Path, directions: tuple[str, ...], overrides: list[str], expected: str
) -> None:
    write_old(tmp_path / "model", directions)
    assert forgetting_warning(read(f"tuning.model='{tmp_path / 'model'}'", *overrides)) == expected


def test_an_imported_model_with_two_vocabularies_and_one_with_tags(read: Read, place: Path, tmp_path: Path) -> None:
    """Its target is encoded by its own tokenizer, and smoothing leaves out what it never writes."""
    for name, opus, tagged in (("two", Opus(two_vocabularies=True), 0), ("tags", Opus(tags=[">>de<<", ">>fr<<"]), 1)):
        import_model(str(opus.write(tmp_path / name / "opus")), tmp_path / name / "model", ["en-de"])
        recipe = read(f"tuning.model='{tmp_path / name / 'model'}'", "training.max_updates=2")
        data = load_prepared(prepare(recipe, tmp_path / "prepared"))
        trainer = Trainer(recipe, data, tmp_path / name, torch.device("cpu"), World())
        assert data.train.target[3].tolist() == data.tokenizer.target.encode(data.train.texts("target", [3])[0])
        assert [len(tag) for tag in trainer.batches.tags] == [tagged]
        before = weights_of(trainer)
        assert train(trainer)
        weights, _, _ = finish(trainer)
        assert weights.keys() == before.keys()
        silent = before["embedding.bias"] == NEVER
        assert silent.any()
        assert torch.equal(weights["embedding.bias"][silent], before["embedding.bias"][silent])
        description = trainer.describe()
        assert isinstance(description, Description)
        assert description.source_vocabulary_size == (len(data.tokenizer) if name == "two" else None)
    said = refused(read, f"tuning.model='{tmp_path / 'two' / 'model'}'", "tokenizer.dropout=0.1")
    assert "tokenizer.dropout = 0.1, but the model's tokenizer is not BPE; accepted: 0" in said
