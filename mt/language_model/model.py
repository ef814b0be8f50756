"""A decoder-only Transformer of bytes (Radford et al. 2018): a stack of encoder layers with a causal mask.

This is the Transformer's decoder without cross-attention. Its folder has the weights in `model.safetensors` and the
sizes in `config.json`.

Shapes: B texts, T bytes, D d_model, V = 256 different bytes.
"""

import json
from pathlib import Path

import torch
from pydantic import Field, ValidationError
from torch import Tensor

from mt.arrays import check_arrays, load_arrays, save_arrays
from mt.config import ModelConfig
from mt.errors import ModelError, problems
from mt.files import atomic_folder
from mt.model.attention import causal_mask
from mt.model.embedding import Embedding, InputLayer, SinusoidalPositions
from mt.model.layers import EncoderLayer
from mt.model.module import Module, module_list
from mt.model.transformer import closing_norm, initialise
from mt.section import Section

BYTES = 256
WEIGHTS, CONFIG = "model.safetensors", "config.json"
ACCEPTED = "accepted: a folder that `mt-service train-lm` wrote"


class LanguageModelConfig(Section):
    """Sizes of a language model of bytes."""

    kind: str = Field("language model of bytes", pattern="^language model of bytes$")
    layers: int = Field(4, ge=1, le=1000)
    """Number of layers."""
    d_model: int = Field(128, ge=2, multiple_of=2)
    """Size of embeddings and of each layer's output."""
    heads: int = Field(4, ge=1)
    """Number of attention heads, a divisor of `d_model`."""
    block: int = Field(128, ge=8, le=1_000_000)
    """Number of bytes that the model reads at most: the length of a training example."""
    dropout: float = Field(0.0, ge=0, lt=1)
    """Dropout rate of each sublayer's output and of the embeddings."""

    @property
    def layer(self) -> ModelConfig:
        """Configuration of the layers. Feed-forward networks are four times as wide as `d_model`."""
        sizes = {"d_model": self.d_model, "d_ff": 4 * self.d_model, "heads": self.heads, "max_length": self.block}
        return ModelConfig(encoder_layers=self.layers, decoder_layers=1, dropout=self.dropout, **sizes)


class LanguageModel(Module):
    """Model that predicts each byte of a text from the bytes before it."""

    def __init__(self, config: LanguageModelConfig) -> None:
        super().__init__()
        self.config = config
        layer = config.layer
        self.embedding = Embedding(BYTES, layer)
        self.input = InputLayer(layer, SinusoidalPositions(layer))
        self.layers = module_list(EncoderLayer(layer) for _ in range(config.layers))
        self.norm = closing_norm(layer)
        initialise(self)

    def forward(self, text: Tensor) -> Tensor:
        """Return logits [B, T, V]: those at position t predict the byte that follows the first t + 1 of text [B, T]."""
        mask = causal_mask(text.shape[1], text.device)
        x = self.input(self.embedding(text))
        for layer in self.layers:
            x = layer(x, mask)
        return self.embedding.project(self.norm(x))


def save_language_model(folder: Path, model: LanguageModel) -> None:
    """Write the folder of a model. An existing folder of a language model is replaced.

    Raises: ModelError if `folder` exists and is not the folder of a language model.
    """
    if folder.exists():
        read_config(folder)
    with atomic_folder(folder) as temporary:
        save_arrays(temporary / WEIGHTS, {name: t.float().cpu().numpy() for name, t in model.state_dict().items()})
        (temporary / CONFIG).write_text(model.config.model_dump_json(indent=2), encoding="utf-8")


def load_language_model(folder: Path, device: str) -> LanguageModel:
    """Return the model in a folder, in evaluation mode on `device`. Raises: ModelError if a file cannot be used."""
    model = LanguageModel(read_config(folder))
    stored = load_arrays(folder / WEIGHTS)
    check_arrays(stored, {name: tuple(t.shape) for name, t in model.state_dict().items()}, folder / WEIGHTS)
    model.load_state_dict({name: torch.from_numpy(array).float() for name, array in stored.items()})
    return model.to(device).eval()


def read_config(folder: Path) -> LanguageModelConfig:
    """Return the content of `config.json`. Raises: ModelError if `folder` is not the folder of a language model."""
    path = folder / CONFIG
    try:
        return LanguageModelConfig.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        listed = (f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors())
        raise ModelError(problems(f"{path} does not describe a language model of bytes; {ACCEPTED}", listed)) from error
    except (OSError, ValueError) as error:
        raise ModelError(f"{folder}: no language model here ({error}); {ACCEPTED}") from error
