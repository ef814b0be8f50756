"""The names and shapes of the weights are those of the modules in torch."""

from typing import Any

import pytest

from mt.config import ModelConfig
from mt.model.shapes import transformer_shapes
from mt.model.transformer import Transformer
from tests.kernels.conftest import FOREIGN, ODD


@pytest.mark.parametrize("source_size", [None, 50])
@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"norm": "post"},
        {"positions": "learned", "embedding_norm": True},
        {"encoder_layers": 3, "decoder_layers": 1},
        *({name: value} for name, value in FOREIGN.items()),
        FOREIGN,
    ],
    ids=str,
)
def test_shapes_are_those_of_the_modules(changed: dict[str, Any], source_size: int | None) -> None:
    config = ModelConfig.model_validate({**ODD, **changed, **({} if source_size is None else {"tie_source": False})})
    model = Transformer(config, 77, source_vocabulary_size=source_size)
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    assert transformer_shapes(config, 77, source_size) == expected
