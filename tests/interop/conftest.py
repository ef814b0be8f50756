"""Tiny models with random weights, in every form that our architecture takes, and of MarianMT."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from mt.checkpoint import LoadedModel, save_model
from mt.config import ModelConfig
from mt.description import Description
from mt.languages import DirectionSet
from mt.model.transformer import Transformer
from mt.tokenizer import Tokenizer, train_tokenizer
from tests.conftest import sentences
from tests.interop.random_models import enlarge, opus_sides, random_model

Build = Callable[..., Path]
Write = Callable[..., Path]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Writes a model directory; its sides have different depths."""

    def write(name: str = "model", directions: Sequence[str] = ("en-de",), **changes: Any) -> Path:
        torch.manual_seed(1)
        tokenizer = Tokenizer(train_tokenizer(sentences(300), vocabulary_size=330, languages=("en", "de", "fr")))
        sizes = {"encoder_layers": 2, "decoder_layers": 3, "d_model": 32, "d_ff": 48, "heads": 4, "max_length": 64}
        config = ModelConfig.model_validate({**sizes, **changes})
        model = Transformer(config, len(tokenizer))
        enlarge(model)
        parsed = DirectionSet.parse(directions)
        description = Description(name=name, directions=parsed, vocabulary_size=len(tokenizer), model=config)
        save_model(tmp_path / name, LoadedModel(model, tokenizer, description), "# tiny\n")
        return tmp_path / name

    return write


def vocabulary_of(*sides: tuple[bytes, tuple[str, ...]]) -> dict[str, int]:
    """As OPUS-MT makes them: the end, the unknown, what occurs in the text, padding."""
    pieces = sorted({piece for _, occurring in sides for piece in occurring})
    return {piece: id for id, piece in enumerate(["</s>", "<unk>", *pieces, "<dummy>", "<pad>"])}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a MarianMT directory with random weights."""

    def write_marian(start: str = "<pad>", two: bool = False, tags: Sequence[str] = (), **changes: Any) -> Path:
        sides = opus_sides()
        source, target = (vocabulary_of(side) for side in sides) if two else [vocabulary_of(*sides)] * 2
        source |= {tag: len(source) + number for number, tag in enumerate(tags)}
        if two:  # what pads has one id for both
            listed = [piece for piece in target if piece != "<pad>"]
            listed += [f"<{number}>" for number in range(len(source) - 1 - len(listed))]
            listed.insert(source["<pad>"], "<pad>")
            target = {piece: id for id, piece in enumerate([*listed, "<more>"])}
        ids = {"pad_token_id": source["<pad>"], "decoder_start_token_id": source[start], "eos_token_id": 0}
        options = {"forced_eos_token_id": None, "activation_function": "relu"}  # a forced end would count as certain
        vocabularies = {"vocab_size": len(source), "decoder_vocab_size": len(target)}
        folder = tmp_path / "marian"
        random_model("MarianMTModel", **{**ids, **options, **vocabularies, **changes}).save_pretrained(folder)
        for name, (content, _) in zip(("source.spm", "target.spm"), sides, strict=True):
            (folder / name).write_bytes(content)
        (folder / "vocab.json").write_text(json.dumps(source), encoding="utf-8")
        if two:
            (folder / "target_vocab.json").write_text(json.dumps(target), encoding="utf-8")
        said = {"source_lang": "en", "target_lang": "de", "separate_vocabs": two}
        (folder / "tokenizer_config.json").write_text(json.dumps(said), encoding="utf-8")
        return folder

    return write_marian
