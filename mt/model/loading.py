"""Construction of a module from the arrays of a model directory."""

import torch

from mt.arrays import Arrays
from mt.config import ModelConfig
from mt.model.skip_initialization import SkipInitialization
from mt.model.transformer import Transformer


def load_transformer(
    weights: Arrays, config: ModelConfig, vocabulary_size: int, source_vocabulary_size: int | None, device: str
) -> Transformer:
    """Return a Transformer with these weights as float32, in evaluation mode on `device`.

    It may share memory with `weights`.
    """
    with torch.device("cpu"), SkipInitialization():
        model = Transformer(config, vocabulary_size, source_vocabulary_size=source_vocabulary_size)
    model.load_state_dict({name: torch.from_numpy(array).float() for name, array in weights.items()}, assign=True)
    return model.to(torch.device(device)).eval()
