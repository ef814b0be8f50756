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
from tests.interop.opus import pieces, unigram

Build = Callable[..., Path]
Write = Callable[..., Path]


def enlarge(model: torch.nn.Module) -> None:
    """Random weights a little larger, so that translations differ, and biases and norms that matter."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.mul_(2 if "cross" in name or "encoder_attn" in name else 1.2)
            if parameter.dim() == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))


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
        description = Description(
            name=name, directions=DirectionSet.parse(directions), vocabulary_size=len(tokenizer), model=config
        )
        save_model(tmp_path / name, LoadedModel(model, tokenizer, description), "# tiny\n")
        return tmp_path / name

    return write


def reversed_text(count: int) -> list[str]:
    return [text[::-1].lower() for text in sentences(count)]


@pytest.fixture(scope="module")
def models() -> tuple[bytes, bytes]:
    """SentencePiece models of source and target."""
    return unigram(sentences(300)), unigram(reversed_text(300))


def vocabulary_of(*sides: tuple[bytes, list[str]]) -> dict[str, int]:
    """As OPUS-MT makes them: the end, the unknown, what occurs in the text, padding."""
    found = sorted({piece for model, texts in sides for text in texts for piece in pieces(model, text)})
    return {piece: id for id, piece in enumerate(["</s>", "<unk>", *found, "<dummy>", "<pad>"])}


@pytest.fixture
def write(tmp_path: Path, models: tuple[bytes, bytes]) -> Write:
    """Writes a MarianMT directory with random weights."""

    transformers = pytest.importorskip("transformers", reason="transformers is not installed (extra: interop)")

    def write_marian(start: str = "<pad>", two: bool = False, tags: Sequence[str] = (), **changes: Any) -> Path:
        torch.manual_seed(1)
        sides = list(zip(models, (sentences(300), reversed_text(300)), strict=True))
        source, target = (vocabulary_of(side) for side in sides) if two else [vocabulary_of(*sides)] * 2
        source |= {tag: len(source) + number for number, tag in enumerate(tags)}
        if two:  # what pads has one id for both
            listed = [piece for piece in target if piece != "<pad>"]
            listed += [f"<{number}>" for number in range(len(source) - 1 - len(listed))]
            listed.insert(source["<pad>"], "<pad>")
            target = {piece: id for id, piece in enumerate([*listed, "<more>"])}
        sizes = {"encoder_layers": 2, "decoder_layers": 3, "d_model": 32, "max_position_embeddings": 64}
        sizes |= {"encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "encoder_attention_heads": 4}
        ids: dict[str, int | None] = {
            "pad_token_id": source["<pad>"],
            "decoder_start_token_id": source[start],
            "eos_token_id": 0,
        }
        ids |= {"forced_eos_token_id": None}  # which would count as certain
        options = {"activation_function": "relu", "scale_embedding": True, "decoder_attention_heads": 4}
        vocabularies = {"vocab_size": len(source), "decoder_vocab_size": len(target)}
        config = transformers.MarianConfig(**{**sizes, **ids, **options, **vocabularies, "init_std": 0.2, **changes})
        model = transformers.MarianMTModel(config).eval()
        enlarge(model)
        model.final_logits_bias = torch.randn_like(model.final_logits_bias)
        model.final_logits_bias[0, 0] = 2  # so that most translations end before their longest length
        folder = tmp_path / "marian"
        model.save_pretrained(folder)
        for name, content in zip(("source.spm", "target.spm"), models, strict=True):
            (folder / name).write_bytes(content)
        (folder / "vocab.json").write_text(json.dumps(source), encoding="utf-8")
        if two:
            (folder / "target_vocab.json").write_text(json.dumps(target), encoding="utf-8")
        said = {"source_lang": "en", "target_lang": "de", "separate_vocabs": two}
        (folder / "tokenizer_config.json").write_text(json.dumps(said), encoding="utf-8")
        return folder

    return write_marian
