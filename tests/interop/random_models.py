"""Models of transformers with random weights, and SentencePiece models of little text."""

import io
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest
import sentencepiece
import torch

from tests.conftest import sentences

SIZES = {"encoder_layers": 2, "decoder_layers": 3, "d_model": 32, "max_position_embeddings": 64, "init_std": 0.2}
SIZES |= {"encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "encoder_attention_heads": 4, "decoder_attention_heads": 4}


def enlarge(model: torch.nn.Module) -> None:
    """Random weights a little larger, so that translations differ, and biases and norms that matter."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not parameter.requires_grad:  # sinusoidal positions
                continue
            parameter.mul_(2 if "cross" in name or "encoder_attn" in name else 1.2)
            if parameter.dim() == 1:
                parameter.add_(0.2 * torch.randn_like(parameter))


def random_model(kind: str, **options: Any) -> Any:
    """A model of this class of transformers. Most of its translations end before their longest length."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed (extra: interop)")
    torch.manual_seed(1)
    config = getattr(transformers, kind).config_class(**{"scale_embedding": True, **SIZES, **options})
    model = getattr(transformers, kind)(config).eval()
    enlarge(model)
    with torch.no_grad():
        if hasattr(model, "final_logits_bias"):
            model.final_logits_bias = torch.randn_like(model.final_logits_bias)
            model.final_logits_bias[0, config.eos_token_id] = 2
        if hasattr(model.model.decoder, "layer_norm"):
            end = model.model.shared.weight[config.eos_token_id]
            model.model.decoder.layer_norm.bias.add_(4 * end / end.norm() ** 2)
    return model


def reversed_text(count: int) -> list[str]:
    return [text[::-1].lower() for text in sentences(count)]


def sentencepiece_model(lines: Sequence[str], vocab_size: int = 90, **options: Any) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_writer=model,
        vocab_size=vocab_size,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    return model.getvalue()


@cache
def opus_sides() -> tuple[tuple[bytes, tuple[str, ...]], ...]:
    """SentencePiece models of source and target as OPUS-MT trains them, and their pieces that occur in the text."""
    sides = []
    for texts in (sentences(300), reversed_text(300)):
        model = sentencepiece_model(texts)
        encode = sentencepiece.SentencePieceProcessor(model_proto=model).encode
        sides.append((model, tuple(sorted({piece for text in texts for piece in encode(text, out_type=str)}))))
    return tuple(sides)
