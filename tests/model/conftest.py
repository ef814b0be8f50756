from collections.abc import Callable
from typing import Any

import pytest

from mt.config import ModelConfig


@pytest.fixture(scope="session")
def small_config() -> Callable[..., ModelConfig]:
    """A model of a few thousand parameters, of different depths on its two sides; without dropout unless asked for."""

    def build(**changes: Any) -> ModelConfig:
        numbers = {"encoder_layers": 2, "decoder_layers": 3, "d_model": 16, "d_ff": 24, "heads": 4}
        return ModelConfig.model_validate({**numbers, "dropout": 0.0, "max_length": 64, **changes})

    return build
