"""Untrained models in the format of each contender, for measurements of a model size without training.

A model with random weights does not end its translations at a realistic length. Therefore, all contenders must write
translations of the same given lengths.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import torch

from mt.checkpoint import LoadedModel, save_model
from mt.config import ModelConfig
from mt.description import Description
from mt.languages import DirectionSet
from mt.model.transformer import Transformer
from mt.tokenizer import BOS, EOS, PAD, Tokenizer, train_tokenizer

from .contenders import Models, export, installed

VOCABULARY = 32_000
SYLLABLES = [first + second for first in "bdfghjklmnprstvwz" for second in ("a", "e", "i", "o", "u", "ei", "au", "an")]


def untrained_models(size: str, lines: Sequence[str], source: Path, folder: Path, device: str) -> Models:
    """Write an untrained model for each contender into `folder`, and return the models.

    The result includes the required number of target tokens for each of `lines`.
    """
    ours, tokenizer = untrained_model(size, lines, folder)
    theirs = None
    if installed("transformers"):
        theirs = folder / f"untrained-{size}-marian"
        theirs.mkdir(parents=True, exist_ok=True)
        (theirs / "config.json").write_text(json.dumps(marian(size_of(size), len(tokenizer))), encoding="utf-8")
        (theirs / "tokenizer.model").write_bytes(tokenizer.serialised)
    lengths = tuple(forced_length(len(tokenizer.encode(line))) for line in lines)
    return Models(source, ours, export(ours, folder, device), theirs, lengths=lengths, device=device)


def untrained_model(size: str, lines: Sequence[str], folder: Path) -> tuple[Path, Tokenizer]:
    """Write an untrained model of ours into `folder`. Return (model directory, tokenizer).

    The tokenizer is trained on `lines` and on invented words.
    """
    torch.manual_seed(0)
    tokenizer = Tokenizer(train_tokenizer(_text(lines), vocabulary_size=VOCABULARY))
    name, config = f"untrained-{size}", size_of(size)
    directions = DirectionSet.parse(["en-de"])
    description = Description(name=name, directions=directions, vocabulary_size=len(tokenizer), model=config)
    model = LoadedModel(Transformer(config, len(tokenizer)), tokenizer, description)
    save_model(folder / name, model, f"# {size}, untrained\n")
    return folder / name, tokenizer


def size_of(size: str) -> ModelConfig:
    """Return the model configuration for a size that recipes can name, such as "base"."""
    return ModelConfig.model_validate({"size": size})


def forced_length(source_tokens: int) -> int:
    """Return the number of target tokens, with EOS, for a source of `source_tokens` tokens.

    It is `source_tokens` + 1, rounded to a multiple of 4, so that batches have several sentences of equal lengths.
    """
    return 4 * max(1, round((source_tokens + 1) / 4))


def marian(config: ModelConfig, vocabulary: int) -> dict[str, str | int | float | bool]:
    """Return the configuration of a MarianMT model of transformers that has the same size as `config`."""
    return {
        "model_type": "marian",
        "vocab_size": vocabulary,
        "decoder_vocab_size": vocabulary,
        "d_model": config.d_model,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        "encoder_ffn_dim": config.d_ff,
        "decoder_ffn_dim": config.d_ff,
        "encoder_attention_heads": config.heads,
        "decoder_attention_heads": config.heads,
        "activation_function": config.activation,
        "scale_embedding": True,
        "share_encoder_decoder_embeddings": True,
        "max_position_embeddings": config.max_length,
        "pad_token_id": PAD,
        "bos_token_id": BOS,
        "eos_token_id": EOS,
        "decoder_start_token_id": BOS,
    }


def _text(lines: Sequence[str]) -> Iterator[str]:
    """Yield text to train the tokenizer: `lines` 20 times, then invented words, which give most of the pieces."""
    for _ in range(20):
        yield from lines
    random = Random(0)
    for _ in range(30_000):
        yield " ".join("".join(random.choices(SYLLABLES, k=random.randint(2, 5))) for _ in range(3))
