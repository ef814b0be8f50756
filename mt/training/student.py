"""Initialisation of a student model with a part of the layers of a trained teacher (Shleifer and Rush 2020, 3.2).

The student is then trained. With pre-norm, each layer adds its output to the output of the layers before it. A model
without some of its layers, or with additional layers whose output is zero, is therefore a good starting point.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from mt.checkpoint import LoadedModel
from mt.description import Description
from mt.errors import ModelError, problems
from mt.model.transformer import Transformer
from mt.tokenizer import Tokenizer
from mt.vocabulary import VocabularyTokenizer

OUTPUT_WEIGHTS = (".output.", ".outer.")  # in names of projections whose output a layer adds to its input


def shrink(
    teacher: LoadedModel, encoder_layers: int, decoder_layers: int, vocabulary_size: int
) -> tuple[dict[str, Tensor], Tokenizer, Description]:
    """Return (weights, tokenizer, description) of a student with the given sizes, which must then be trained.

    The student gets evenly spaced layers of the teacher, including the last layer. If the student has more encoder
    layers than the teacher, the output of the additional layers is zero. The vocabulary of the student is built from
    the first BPE merges of the teacher. Raises: ModelError that lists all sizes that are not possible for the teacher.
    """
    config, tokenizer = teacher.description.model, teacher.tokenizer
    faults = [
        f"{name} is {size}; accepted: {accepted}"
        for name, size, minimum, maximum, accepted in (
            ("encoder_layers", encoder_layers, 1, math.inf, "at least 1"),
            ("decoder_layers", decoder_layers, 1, config.decoder_layers, f"1 to {config.decoder_layers}"),
            ("vocabulary_size", vocabulary_size, 1, len(tokenizer), f"at most {len(tokenizer)}"),
        )
        if not minimum <= size <= maximum
    ]
    if isinstance(tokenizer, VocabularyTokenizer) or not tokenizer.is_bpe:
        faults.append("the model's tokenizer was imported; accepted: a model that `mt-service train` trained")
    if config.norm != "pre" and encoder_layers > config.encoder_layers:
        faults.append(
            f"encoder_layers is {encoder_layers} and model.norm {config.norm!r}; accepted with this norm: at most "
            f"{config.encoder_layers}"
        )
    if faults:
        raise ModelError(problems("the model cannot be shrunk to these sizes", faults))
    smaller = tokenizer.truncated(vocabulary_size)
    shape = config.model_copy(update={"encoder_layers": encoder_layers, "decoder_layers": decoder_layers})
    sizes = {"vocabulary_size": len(smaller)}
    if teacher.description.source_vocabulary_size is not None:
        sizes["source_vocabulary_size"] = len(smaller)
    description = teacher.description.with_weights("float32").model_copy(update={**sizes, "model": shape})
    kept = {
        "encoder": evenly_spaced(config.encoder_layers, encoder_layers),
        "decoder": evenly_spaced(config.decoder_layers, decoder_layers),
    }
    rows = torch.tensor(kept_tokens(tokenizer, smaller))
    return _weights(teacher, description, kept, rows), smaller, description


def kept_tokens(tokenizer: Tokenizer, smaller: Tokenizer) -> list[int]:
    """Return the id in `tokenizer` of each piece of `smaller`."""
    ids = {piece: id for id, piece in enumerate(tokenizer.pieces(range(len(tokenizer))))}
    return [ids[piece] for piece in smaller.pieces(range(len(smaller)))]


def evenly_spaced(layers: int, count: int) -> list[int]:
    """Return `count` evenly spaced layer numbers from 0 to `layers - 1`.

    They include the last layer and, if `count` is at least 2, the first layer. If `count` is at least `layers`, return
    the numbers of all layers.
    """
    if count >= layers:
        return list(range(layers))
    return [round(layers - 1 - place * (layers - 1) / max(count - 1, 1)) for place in reversed(range(count))]


def _weights(
    teacher: LoadedModel, description: Description, kept: Mapping[str, Sequence[int]], rows: Tensor
) -> dict[str, Tensor]:
    model = Transformer(
        description.model, description.vocabulary_size, source_vocabulary_size=description.source_vocabulary_size
    )
    theirs = teacher.model.state_dict()
    weights = {}
    for name, parameter in model.state_dict().items():
        side, _, rest = name.partition(".layers.")
        number, _, inner = rest.partition(".")
        if not rest:
            weights[name] = theirs[name] if theirs[name].shape == parameter.shape else theirs[name][rows]
        else:
            further = int(number) >= len(kept[side])  # an added layer: a copy of the last one whose output is zero
            weights[name] = theirs[f"{side}.layers.{kept[side][-1 if further else int(number)]}.{inner}"]
            if further and any(part in name for part in OUTPUT_WEIGHTS):
                weights[name] = torch.zeros_like(parameter)
    return {name: tensor.clone() for name, tensor in weights.items()}
