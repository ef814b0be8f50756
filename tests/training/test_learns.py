"""The scripts on a language that they must learn."""

import pytest

from mt import evaluation
from mt.cli.prepare import main as prepare
from mt.cli.train import main as train
from mt.pipeline.translator import Translator
from tests.training.conftest import Place

pytestmark = pytest.mark.system

RECIPE = (
    *("model.d_model=64", "model.d_ff=128", "model.heads=4", "model.dropout=0", "tokenizer.vocabulary_size=360"),
    *("training.batch_tokens=1024", "training.update_tokens=1024", "training.max_updates=350"),
    *("training.learning_rate=4e-3", "training.warmup_updates=60"),
    *("training.validate_every=175", "training.save_every=175", "training.keep_checkpoints=1"),
)


def test_it_learns_to_reverse_sentences(place: Place) -> None:
    seed = 5  # with others it was 79 to 95 BLEU
    place.write_corpora(pairs=3000, seed=seed)
    said = place.here(prepare, *RECIPE)
    assert "training and 40 validation pairs" in said
    said = place.here(train, *RECIPE, f"seed={seed}", "--run", "run", "--threads", "1")
    print(said)
    assert "en-de test: BLEU" in said

    model = place.folder / "run" / "model"
    assert sorted(file.name for file in model.iterdir()) == [
        *("README.md", "calibration.json", "confidence.json", "config.json", "int8.json", "model.safetensors"),
        *("source_bigrams.safetensors", "tokenizer.model"),
    ]
    texts, references = (
        (place.folder / "corpora" / f"test.{language}").read_text().splitlines() for language in ("en", "de")
    )
    translations = Translator.load(model, device="cpu", dtype="float32").translate_many(texts)  # as the card was scored
    bleu = evaluation.bleu([t.text for t in translations], references, target_language="de")
    assert bleu.value > 70
    assert f"{bleu.value:.2f} | `{bleu.signature}`" in (model / "README.md").read_text()
