"""Small random models, and what the compiled kernels make of them."""

import ctypes
from random import Random
from typing import Any

import pytest
import torch

from mt.checkpoint import to_arrays
from mt.config import ModelConfig
from mt.decoding.options import SpecialIds
from mt.engine.backends.cpu import with_positions
from mt.kernels.library import CpuModel, load_library
from mt.model.transformer import Transformer

Ids = tuple[int, ...]
EOS = 3
ODD: dict[str, Any] = {  # sizes that do not fill vectors
    "encoder_layers": 2,
    "decoder_layers": 2,
    "d_model": 24,
    "d_ff": 40,
    "heads": 2,
    "max_length": 64,
    "dropout": 0.0,
}
KINDS = [(norm, activation) for norm in ("pre", "post") for activation in ("relu", "gelu", "swish")]
FOREIGN: dict[str, Any] = {  # what other toolkits' models have
    "norm": "post",
    "norm_epsilon": 1e-2,
    "activation": "swish",
    "positions": "concatenated",
    "first_position": 2,
    "scale_embedding": False,
    "tie_source": False,
    "tie_output": False,
    "logits_bias": True,
}


def odd_model(vocabulary: int = 77, seed: int = 0, source_vocabulary: int | None = None, **changes: Any) -> Transformer:
    """A random model whose translations differ from sentence to sentence, in length too."""
    torch.manual_seed(seed)
    config = ModelConfig.model_validate({**ODD, **changes})
    model = Transformer(config, vocabulary, source_vocabulary_size=source_vocabulary).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
            elif "cross" in name:
                parameter.mul_(3)
    return model


def compile_model(library: ctypes.CDLL, model: Transformer, int8: bool = False) -> CpuModel:
    special = SpecialIds()
    weights = with_positions(to_arrays(model.state_dict()), model.config)
    return CpuModel(library, model.config, weights, (special.pad, special.unk, special.bos, special.eos), int8)


def some_sources(count: int, vocabulary: int = 77, longest: int = 20, seed: int = 1) -> list[Ids]:
    """With EOS, which may be all."""
    random = Random(seed)
    return [(*(random.randrange(4, vocabulary) for _ in range(random.randint(0, longest))), EOS) for _ in range(count)]


@pytest.fixture(scope="session")
def library() -> ctypes.CDLL:
    """The compiled kernels for this processor."""
    found = load_library()
    if found is None:
        pytest.skip("there is no C++ compiler to make the kernels, and no library that was made before")
    return found
