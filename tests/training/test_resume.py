"""The scripts as a user types them: a killed run goes on (acceptance 6), and a language is learnt."""

import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from mt import evaluation
from mt.cli.prepare import main as prepare
from mt.cli.train import main as train
from mt.pipeline.translator import Translator
from tests.training.conftest import Place, metrics, newest

pytestmark = pytest.mark.system

UPDATES = 120
RECIPE = (
    *("model.dropout=0.2", "tokenizer.dropout=0.1"),
    *(f"training.max_updates={UPDATES}", "training.save_every=9", "training.validate_every=40"),
)


def final_files(run: Path) -> dict[str, bytes]:
    names = (f"checkpoints/{UPDATES:08d}/model", f"checkpoints/{UPDATES:08d}/optimizer", "model/model")
    return {name: (run / f"{name}.safetensors").read_bytes() for name in names}


def updates_recorded(run: Path) -> list[float]:
    return [record["update"] for record in metrics(run) if "train_loss" in record]


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_kill_9_at_three_random_moments_changes_no_bit(place: Place, precision: str) -> None:
    recipe = (*RECIPE, f"training.precision={precision}")
    place.here(train, *recipe, "--run", "whole", "--threads", "1")
    seed = random.SystemRandom().randrange(1 << 16)
    chance = random.Random(seed)
    moments = sorted(chance.sample(range(1, UPDATES * 3 // 4), 3))
    print(f"seed {seed}: killed once there is a checkpoint of update {moments} or later")
    killed = place.folder / "killed"
    resuming = (*recipe, "--run", "killed", "--threads", "1", "--resume")
    for moment in moments:
        process = place.start(place.command("train.py", *resuming))
        while newest(killed) < moment and process.poll() is None:
            time.sleep(0.01)
        time.sleep(chance.uniform(0, 0.1))
        process.kill()
        _, said = process.communicate()
        assert process.returncode == -signal.SIGKILL, said
    said = place.here(train, *resuming)
    assert "resumed at update" in said
    assert final_files(killed) == final_files(place.folder / "whole")
    assert updates_recorded(killed) == updates_recorded(place.folder / "whole")


def test_a_corpus_that_changed_meanwhile_is_refused_and_a_copy_of_it_is_not(place: Place) -> None:
    begun = ("training.max_updates=20", "--run", "run", "--threads", "1", "--resume")
    assert "training begins at update 1: there is no checkpoint yet\n" in place.here(train, *begun)
    published = (place.folder / "run/model/model.safetensors").read_bytes()
    corpus = place.folder / "corpora/train.de"
    text = corpus.read_text()
    corpus.write_text(text + "so\n")
    (place.folder / "corpora/train.en").open("a").write("so\n")
    said = place.here(train, *begun, status=2)
    assert "run/checkpoints/00000020 was trained on other text" in said and "with [tuning], it can begin with" in said
    assert (place.folder / "run/model/model.safetensors").read_bytes() == published
    place.write_corpora(400, seed=1)  # the same again, at another time
    said = place.here(train, "training.learning_rate=1e-3", "training.max_updates=22", *begun[1:])
    keys = ("learning_rate: 0.003 -> 0.001", "max_updates: 20 -> 22")
    changes = [f"from update 21 on: training.{key}" for key in keys]
    assert "resumed at update 20" in said and all(f"changed {change}\n" in said for change in changes)
    card = (place.folder / "run/model/README.md").read_text()
    assert all(f"\n  - {change}\n" in card for change in changes)


def test_a_run_without_checkpoint_cannot_be_continued(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr("mt.cli.training.train", interrupt)
    said = place.here(train, "--run", "run", "--threads", "1", status=130)
    assert "stopped; no checkpoint exists; start the run again" in said


@pytest.mark.parametrize("number", [pytest.param(signal.SIGINT, marks=pytest.mark.slow), signal.SIGTERM])
def test_ctrl_c_and_a_polite_kill_lose_nothing(place: Place, number: signal.Signals) -> None:
    overrides = ("training.max_updates=100000", "training.save_every=10")
    process = place.start(place.command("train.py", *overrides, "--run", "run", "--threads", "1"))
    while not newest(place.folder / "run") and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(number)
    _, said = process.communicate()
    assert process.returncode == 130, said
    assert "--resume continues from the last checkpoint" in said
    assert "Traceback" not in said
    reached = newest(place.folder / "run")
    resumed = (f"training.max_updates={reached + 1}", "--run", "run", "--threads", "1", "--resume")
    said = place.here(train, *resumed)
    assert f"resumed at update {reached:,}" in said

    said = place.here(train, *resumed)  # a run that is done is published again
    assert f"resumed at update {reached + 1:,}" in said
    assert newest(place.folder / "run") == reached + 1
    assert "the model is in run/model and translates en-de\n" in said
    assert "BLEU on the validation set the model is not useful" in said

    (last,) = (place.folder / "run" / "checkpoints").iterdir()
    earlier = last.with_name("00000001")
    shutil.copytree(last, earlier)
    (last / "optimizer.safetensors").write_bytes(b"damaged")
    said = place.here(train, *resumed, status=2)
    assert f"To resume from {earlier.name}, delete run/checkpoints/{last.name}" in " ".join(said.split())


LEARNING = (
    *("model.d_model=64", "model.d_ff=128", "model.heads=4", "model.dropout=0", "tokenizer.vocabulary_size=360"),
    *("training.batch_tokens=1024", "training.update_tokens=1024", "training.max_updates=350"),
    *("training.learning_rate=4e-3", "training.warmup_updates=60"),
    *("training.validate_every=175", "training.save_every=175", "training.keep_checkpoints=1"),
)


def test_it_learns_to_reverse_sentences(place: Place) -> None:
    seed = 5  # with others it was 79 to 95 BLEU
    place.write_corpora(pairs=3000, seed=seed)
    said = place.here(prepare, *LEARNING)
    assert "training and 40 validation pairs" in said
    said = place.here(train, *LEARNING, f"seed={seed}", "--run", "run", "--threads", "1")
    print(said)
    assert "en-de test: BLEU" in said

    model = place.folder / "run" / "model"
    assert sorted(file.name for file in model.iterdir()) == [
        *("README.md", "calibration.json", "confidence.json", "config.json", "int8.json", "model.safetensors"),
        *("source_bigrams.safetensors", "tokenizer.model"),
    ]
    corpora = place.folder / "corpora"
    texts, references = ((corpora / f"test.{language}").read_text().splitlines() for language in ("en", "de"))
    translations = Translator.load(model, device="cpu", dtype="float32").translate_many(texts)  # as the card was scored
    bleu = evaluation.bleu([t.text for t in translations], references, target_language="de")
    assert bleu.value > 70
    assert f"{bleu.value:.2f} | `{bleu.signature}`" in (model / "README.md").read_text()
