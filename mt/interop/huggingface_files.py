"""Files of a model in the format of transformers: JSON objects, and weights in one or several safetensors files."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mt.arrays import BFLOAT16, map_arrays
from mt.config import ModelConfig
from mt.errors import ModelError, problems
from mt.interop.mapping import drop_tied_copies
from mt.interop.origin import ALLOWED_PICKLE, load_pickle, named_tensors, shown
from mt.model.embedding import position_table

BIAS, SHARED, OUTPUT = "final_logits_bias", "model.shared.weight", "lm_head.weight"
SOURCE, TARGET = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
SAFE, PICKLE, INDEX = "model.safetensors", "pytorch_model.bin", "model.safetensors.index.json"

ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}
"""Our name of each activation, by its name in transformers."""

EQUAL = (("encoder_attention_heads", "decoder_attention_heads"), ("encoder_ffn_dim", "decoder_ffn_dim"))
SIZES = {
    "d_ff": "encoder_ffn_dim",
    "heads": "encoder_attention_heads",
    "max_length": "max_position_embeddings",
    **{name: name for name in ("encoder_layers", "decoder_layers", "d_model")},
    **{name: name for name in ("dropout", "attention_dropout", "activation_dropout")},
}
"""Fields of our ModelConfig, each with its name in config.json."""

SEARCH = {"beam_size": "num_beams", "length_penalty": "length_penalty", "no_repeat_ngram": "no_repeat_ngram_size"}

Options = Mapping[str, tuple[Any, tuple[Any, ...]]]
"""Type of a table of options in config.json: for each, the default of transformers and the supported values."""


def option_problems(config: Mapping[str, Any], options: Options) -> Iterator[str]:
    """Yield a message for each option in config.json with an unsupported value."""
    for name, (default, accepted) in options.items():
        value = config.get(name, default)
        if value not in accepted:
            yield f"{name} is {shown(value)}; accepted: {', '.join(map(repr, accepted))}"
    for first, second in EQUAL:
        if config.get(first) != config.get(second):
            yield f"{first} is {config.get(first)} and {second} is {config.get(second)}; accepted: equal values"


def search_options(config: Mapping[str, Any], generation: Mapping[str, Any]) -> dict[str, Any]:
    """Return those values of our DecodingConfig that config.json or generation_config.json sets."""
    values = {**config, **generation}
    return {ours: values[key] for ours, key in SEARCH.items() if values.get(key) is not None}


def weight_files(folder: Path, allow_pickle: bool) -> list[str]:
    """Return the names of the weight files. A file may be missing.

    These are one safetensors file, or an index and then its safetensors files, or one pickle. A pickle is chosen only
    if `allow_pickle` is true and the folder contains neither a single safetensors file nor an index.

    Raises:
        ModelError: The index cannot be used.
    """
    if (folder / SAFE).is_file() or not (folder / INDEX).is_file():
        pickled = allow_pickle and not (folder / SAFE).is_file() and (folder / PICKLE).is_file()
        return [PICKLE if pickled else SAFE]
    return [INDEX, *dict.fromkeys(_weight_map(folder).values())]


def read_weights(folder: Path, allow_pickle: bool) -> dict[str, Tensor]:
    """Return the weights in a folder by name.

    Raises:
        ModelError: A file cannot be read or does not fit its index.
    """
    names = weight_files(folder, allow_pickle)
    if names == [PICKLE]:
        return named_tensors(load_pickle(folder / PICKLE), folder / PICKLE)
    if names == [SAFE]:
        return _tensors(folder / SAFE)
    weight_map, weights, wrong = _weight_map(folder), {}, []
    for name in names[1:]:
        part = _tensors(folder / name)
        wrong += [
            f"{name} holds {key}, which the index assigns to {weight_map.get(key, 'no file')}"
            for key in part
            if weight_map.get(key) != name
        ]
        weights.update(part)
    wrong += [f"{name} lacks {key}" for key, name in weight_map.items() if key not in weights]
    if wrong:
        raise ModelError(problems(f"{folder / INDEX} does not fit its files; accepted: each weight in one file", wrong))
    return weights


def _tensors(path: Path) -> dict[str, Tensor]:
    """Return the tensors in a safetensors file by name. They are memory-mapped.

    Raises:
        ModelError: The file cannot be read.
    """
    return {
        name: torch.from_numpy(array).view(torch.bfloat16) if kind == BFLOAT16 else torch.from_numpy(array)
        for name, (kind, array) in map_arrays(path).items()
    }


def _weight_map(folder: Path) -> dict[str, str]:
    """Return the file name of each weight, as the index states it.

    Raises:
        ModelError: The index cannot be used.
    """
    weight_map = read_json(folder / INDEX).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise ModelError(f"{folder / INDEX}: weight_map is {shown(weight_map)}; accepted: a file name for each weight")
    wrong = {name for name in weight_map.values() if not (isinstance(name, str) and name == Path(name).name)}
    if wrong:
        raise ModelError(f"{folder / INDEX} names the file {shown(wrong.pop())}; accepted: files in the same folder")
    return weight_map


def missing_files(folder: Path, names: list[str]) -> list[str]:
    """Return a message for each of the files `names` that is not in the folder."""
    return [f"{name} is missing" + _hint(folder, name) for name in names if not (folder / name).is_file()]


def _hint(folder: Path, name: str) -> str:
    if name == SAFE and (folder / PICKLE).exists():
        return f" ({PICKLE} is a pickle; accepted: {SAFE}, or {ALLOWED_PICKLE})"
    return ""


def read_json(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file, or an empty dictionary if the file does not exist.

    Raises:
        ModelError: The file contains anything else.
    """
    if not path.exists():
        return {}
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: not a JSON file ({error})") from error
    if not isinstance(values, dict):
        raise ModelError(f"{path}: holds a JSON value of type {type(values).__name__}; accepted: a JSON object")
    return values


def read_vocabulary(path: Path) -> dict[str, int]:
    """Return the id of each piece in a JSON file.

    Raises:
        ModelError: The file contains anything else.
    """
    values = read_json(path)
    if not all(isinstance(number, int) for number in values.values()):
        raise ModelError(f"{path}: an id is not an integer; accepted: a JSON object from pieces to integer ids")
    return values


def learned_weights(
    weights: Mapping[str, Tensor],
    ties: Sequence[tuple[str, str]],
    positions: Mapping[str, Any],
    sinusoids: Sequence[str],
) -> tuple[dict[str, Tensor], list[str]]:
    """Return the weights without constants and tied copies, and a message for each wrong constant or copy.

    Args:
        weights: All weights of a file.
        ties: Pairs of names of equal weights; the second of each is removed.
        positions: The values `d_model`, `positions` and `first_position` of our ModelConfig.
        sinusoids: Names of tables of sinusoidal positions, which are removed.
    """
    learned, wrong = drop_tied_copies(weights, ties)
    for name in sinusoids:
        if name in learned and not _is_sinusoidal(learned.pop(name), positions):
            wrong.append(f"{name} is not the sinusoidal table; accepted: sinusoidal positions")
    return learned, wrong


def _is_sinusoidal(stored: Tensor, positions: Mapping[str, Any]) -> bool:
    """Return whether `stored` [length, d_model] has sinusoidal positions. Rows before the first one are for padding."""
    d_model, first = positions.get("d_model"), positions.get("first_position", 0)
    if stored.dim() != 2 or stored.shape[1] != d_model or not d_model or d_model % 2 or len(stored) <= first:
        return False
    sizes = {"encoder_layers": 1, "decoder_layers": 1, "d_ff": 1, "heads": 1, "d_model": d_model}
    config = ModelConfig.model_validate({**sizes, "positions": positions["positions"], "first_position": first})
    return torch.allclose(stored[first:].float(), position_table(config, len(stored) - first), atol=1e-3)


def final_bias(weights: Mapping[str, Tensor], vocabulary_size: int) -> Tensor:
    """Return the bias of the output layer as a vector, which is zero if the file has none."""
    return weights[BIAS].flatten() if BIAS in weights else torch.zeros(vocabulary_size)
