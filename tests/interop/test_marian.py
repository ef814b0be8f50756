"""Marian's folders, imported: equal to what transformers' own conversion makes of the same files."""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import yaml

from mt.checkpoint import load_model
from mt.interop.importer import import_model
from mt.interop.origin import ImportOptions
from mt.tokenizer import EOS
from tests.conftest import sentences
from tests.interop.opus import OPTIONS, Opus
from tests.interop.parity import Pair, card, loaded_pair, refusal

TAGS = (">>deu<<", ">>fra<<", ">>pt_BR<<")


def pair_of(opus: Opus, folder: Path, out: Path, directions: Sequence[str] = ()) -> Pair:
    import_model(str(opus.write(folder)), out, directions)
    return loaded_pair(opus.model, load_model(out), opus.vocabularies)


@pytest.mark.parametrize(
    ("opus", "directions"),
    [
        (Opus(), []),
        (Opus(two_vocabularies=True), []),
        (Opus(two_vocabularies=True, output="Wt"), []),
        (Opus(two_vocabularies=True, output="W"), []),
        (Opus(tags=TAGS), ["en-de", "en-pt-BR"]),
    ],
    ids=["one vocabulary", "two vocabularies", "output of its own", "output of its own, once", "tags"],
)
def test_equal_to_the_conversion_of_transformers(opus: Opus, directions: list[str], tmp_path: Path) -> None:
    pair = pair_of(opus, tmp_path / "opus-mt-en-de", tmp_path / "out", directions)
    tokenizer = pair.ours.tokenizer
    tag = tokenizer.source_prefix("en", "de", pair.ours.description.directions)
    assert tokenizer.pieces(tag) == ([">>deu<<"] if opus.tags else [])
    for text in sentences(6):
        source, target = [*tag, *tokenizer.encode(text), EOS], tokenizer.target.encode(text[::-1].lower())
        pair.assert_equal(source, target)


def test_pieces_are_looked_up_as_they_are_written(tmp_path: Path) -> None:
    pair = pair_of(Opus(tags=TAGS), tmp_path / "m", tmp_path / "out", ["en-fr"])
    tokenizer = pair.ours.tokenizer
    assert tokenizer.pieces(tokenizer.encode("dog 漢 Ж")) == ["▁dog", "▁", "漢", "▁", "<unk>"]
    assert tokenizer.pieces(tokenizer.encode(">>fra<<")) != [">>fra<<"]  # no text asks for a language
    assert {"no", "~", '"', "'"} <= set(tokenizer.pieces(range(len(tokenizer))))  # YAML would read a boolean and null
    prefix = tokenizer.source_prefix("en", "fr", ["en-fr"])
    assert tokenizer.target.decode([*prefix, *tokenizer.target.encode("god eht"), EOS]) == "god eht"
    assert tokenizer.digest == load_model(tmp_path / "out").tokenizer.digest
    assert "Licence: Attribution 4.0 International." in card(tmp_path / "out")


def test_as_marian_computes(tmp_path: Path) -> None:
    """pymarian 1.12.42 gave sums of log-probabilities equal to those of this reading within 1e-4, on 60 sentences."""
    opus = Opus()
    import_model(str(opus.write(tmp_path / "en-de")), tmp_path / "out", options=ImportOptions(as_marian=True))
    config = load_model(tmp_path / "out").model.config
    assert (config.positions, config.norm_epsilon) == ("tensor2tensor", 1e-6)


def test_everything_that_does_not_fit_is_listed_at_once(tmp_path: Path) -> None:
    opus = Opus(tags=TAGS)
    folder = opus.write(tmp_path / "model")
    del opus.arrays["encoder_l1_ffn_b1"]
    opus.arrays["decoder_l2_ffn_W2"] = np.zeros((3, 4), np.float32)
    opus.arrays["decoder_l1_adapter_W"] = np.zeros((4, 4), np.float32)
    size = len(opus.vocabularies[0])
    options = {"ffn-activation": "gelu", "preprocess": "n", "tied-layers": [1, 1, 1]}
    changed = {f"transformer-{name}": value for name, value in options.items()}
    opus.save(folder, {**OPTIONS, "dim-vocabs": [size + 1, size + 1], **changed})
    search = yaml.safe_load((folder / "decoder.yml").read_text(encoding="utf-8"))
    (folder / "decoder.yml").write_text(yaml.safe_dump({**search, "word-penalty": 0.5}), encoding="utf-8")
    told = refusal(folder, tmp_path / "out", ["en-de", "en-it"])
    for line in (
        "encoder_l1_ffn_b1 is missing in the source model",
        "decoder_l2_ffn_W2 has the shape [4, 3]; accepted: [32, 48]",
        "decoder_l1_adapter_W of the source model has no counterpart",
        f"the source vocabulary has {size} pieces, but dim-vocabs says {size + 1}",
        "transformer-ffn-activation is 'gelu'; accepted: 'relu', 'swish'",
        "transformer-preprocess is 'n'; accepted: ''",
        "transformer-tied-layers is [1, 1, 1]; accepted: []",
        "word-penalty is 0.5; accepted: 0",
        "it has no tag for 'it'; accepted: one of >>deu<<, >>fra<<, >>pt_BR<<",
    ):
        assert line in told


def test_directions_are_stated_in_codes_of_languages_or_given(tmp_path: Path) -> None:
    opus = Opus()
    import_model(str(opus.write(tmp_path / "opus-mt-eng-deu")), tmp_path / "out")
    assert load_model(tmp_path / "out").description.directions.to_config() == ["eng-deu"]
    for name in ("nmt-old-run", "opus-en-xx"):
        told = refusal(opus.write(tmp_path / name), tmp_path / "none")
        assert "its files state no direction. Give one with --direction" in told
    told = refusal(tmp_path / "opus-mt-eng-deu", tmp_path / "none", ["en-de", "en-fr"])
    assert "it has no language tags, so it can have only one target language, not de, fr" in told
    told = refusal(Opus(tags=TAGS).write(tmp_path / "model"), tmp_path / "none")
    assert "Give one with --direction; its tags are for >>deu<<, >>fra<<" in told


def array(folder: Path, values: np.ndarray) -> None:
    np.savez_compressed(folder / "model.npz", values=values)


def flagged(folder: Path) -> None:
    """Say of the first entry that it is "compressed patched data"."""
    content = bytearray((folder / "model.npz").read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 0x20
    content[6] |= 0x20
    (folder / "model.npz").write_bytes(content)


def sentencepiece_vocabulary(folder: Path) -> None:
    """Marian can take text as it is: then the pieces of the model are the vocabulary, in its order."""
    (folder / "source.spm").rename(folder / "vocab.spm")
    search = {"models": ["model.npz"], "vocabs": ["vocab.spm", "vocab.spm"]}
    (folder / "decoder.yml").write_text(yaml.safe_dump(search), encoding="utf-8")


NOT_NPZ = "model.npz: damaged, or not an .npz file"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda folder: (folder / "target.spm").unlink(), "target.spm is missing"),
        (lambda folder: (folder / "opus.vocab.yml").unlink(), "opus.vocab.yml is missing"),
        (lambda folder: (folder / "model.npz").write_bytes(b"PK nothing"), NOT_NPZ),
        (lambda folder: array(folder, np.array([{}], dtype=object)), "allow_pickle"),
        (lambda folder: array(folder, np.zeros(1_000_000)), "unpack to 8000128; accepted: at most 20 times as many"),
        (lambda folder: np.save((folder / "model.npz").open("wb"), np.zeros(3)), NOT_NPZ),
        (flagged, NOT_NPZ),
        (lambda folder: os.truncate(folder / "model.npz", (folder / "model.npz").stat().st_size // 2), NOT_NPZ),
        (shutil.rmtree, "no such folder exists; accepted: a folder of Marian"),
        (lambda folder: [path.unlink() for path in folder.iterdir()], "has no model in a known format"),
        (lambda folder: (folder / "config.json").write_text('{"format_version": 1}'), "is a model directory already"),
        (sentencepiece_vocabulary, "pieces, but dim-vocabs says"),
    ],
)
def test_files_that_are_missing_or_damaged(tmp_path: Path, change: Callable[[Path], object], problem: str) -> None:
    folder = Opus().write(tmp_path / "en-de")
    change(folder)
    assert problem in refusal(folder, tmp_path / "out")


def test_the_imported_directory_holds_what_the_readme_says(tmp_path: Path) -> None:
    folder = Opus(two_vocabularies=True).write(tmp_path / "en-de")
    (folder / "decoder.yml").unlink()  # without it, the only files of their kind are taken
    import_model(str(folder), tmp_path / "out")
    tokenizer = {"tokenizer.model", "tokenizer.target.model", "vocabulary.json"}
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {"config.json", "model.safetensors", "README.md"} | tokenizer
    described_vocabulary = json.loads((tmp_path / "out" / "vocabulary.json").read_text(encoding="utf-8"))
    description = load_model(tmp_path / "out").description
    assert description.source_vocabulary_size == len(described_vocabulary["pieces"])
    assert description.vocabulary_size == len(described_vocabulary["target_pieces"])
