"""Tiny models with random weights, in every form that our architecture takes."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from mt.checkpoint import LoadedModel, load_model, save_model
from mt.config import ModelConfig
from mt.description import Description
from mt.languages import DirectionSet
from mt.model.transformer import Transformer
from mt.tokenizer import Tokenizer, train_tokenizer
from tests.conftest import sentences

Build = Callable[..., Path]


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


def loaded(folder: Path) -> LoadedModel:
    return load_model(folder)
