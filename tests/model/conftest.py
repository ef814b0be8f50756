from typing import Any

from mt.config import ModelConfig


def small_config(**changes: Any) -> ModelConfig:
    numbers = {"encoder_layers": 2, "decoder_layers": 3, "d_model": 16, "d_ff": 24, "heads": 4}
    return ModelConfig.model_validate({**numbers, "dropout": 0.0, "max_length": 64, **changes})
