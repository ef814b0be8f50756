"""Untrained models, for measurements of a model size without training.

A model with random weights does not end its translations at a realistic length. Therefore, all contenders must write
translations of the same given lengths.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import torch

from mt.checkpoint import LoadedModel, save_model
from mt.config import ModelConfig
from mt.description import Description
from mt.languages import DirectionSet
from mt.model.transformer import Transformer
from mt.tokenizer import Tokenizer, train_tokenizer

VOCABULARY = 32_000
SYLLABLES = [first + second for first in "bdfghjklmnprstvwz" for second in ("a", "e", "i", "o", "u", "ei", "au", "an")]


def untrained_model(size: str, lines: Sequence[str], folder: Path) -> None:
    """Write an untrained model, of a size that recipes can name, into `folder`.

    The tokenizer is trained on `lines` and on invented words.
    """
    torch.manual_seed(0)
    tokenizer = Tokenizer(train_tokenizer(_text(lines), vocabulary_size=VOCABULARY))
    config, directions = ModelConfig.model_validate({"size": size}), DirectionSet.parse(["en-de"])
    description = Description(name=folder.name, directions=directions, vocabulary_size=len(tokenizer), model=config)
    model = LoadedModel(Transformer(config, len(tokenizer)), tokenizer, description)
    save_model(folder, model, f"# {size}, untrained\n")


def forced_length(source_tokens: int) -> int:
    """Return the number of target tokens, with EOS, for a source of `source_tokens` tokens with EOS.

    It is `source_tokens`, rounded to a multiple of 4, so that batches have several sentences of equal lengths.
    """
    return 4 * max(1, round(source_tokens / 4))


def _text(lines: Sequence[str]) -> Iterator[str]:
    """Yield text to train the tokenizer: `lines` 20 times, then invented words, which give most of the pieces."""
    for _ in range(20):
        yield from lines
    random = Random(0)
    for _ in range(30_000):
        yield " ".join("".join(random.choices(SYLLABLES, k=random.randint(2, 5))) for _ in range(3))
