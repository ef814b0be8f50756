"""Construction of modules from the arrays of a model directory."""

from collections.abc import Callable
from typing import TypeVar

import torch

from mt.arrays import Arrays
from mt.config import ModelConfig
from mt.model.skip_initialization import SkipInitialization
from mt.model.transformer import AnyModel, LanguageModel, Transformer

M = TypeVar("M", bound=AnyModel)


def load_transformer(
    weights: Arrays, config: ModelConfig, vocabulary_size: int, source_vocabulary_size: int | None, device: str
) -> Transformer:
    """Return a Transformer with these weights as float32, in evaluation mode on `device`.

    It may share memory with `weights`.
    """
    return _load(
        lambda: Transformer(config, vocabulary_size, source_vocabulary_size=source_vocabulary_size), weights, device
    )


def load_language_model(weights: Arrays, config: ModelConfig, vocabulary_size: int, device: str) -> LanguageModel:
    """Return a LanguageModel with these weights as float32, in evaluation mode on `device`.

    It may share memory with `weights`.
    """
    return _load(lambda: LanguageModel(config, vocabulary_size), weights, device)


def _load(build: Callable[[], M], weights: Arrays, device: str) -> M:
    model: M
    with torch.device("cpu"), SkipInitialization():
        model = build()
    model.load_state_dict({name: torch.from_numpy(array).float() for name, array in weights.items()}, assign=True)
    model.to(torch.device(device))
    model.eval()
    return model
