"""A smaller model that begins with parts of a trained one: shrink, then tune (Shleifer and Rush 2020, section 3.2).

With pre-norm, a layer adds to what the layers before it made, so that a model without some of them, or with more that
add nothing yet, is a fair beginning.
"""

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from mt.checkpoint import Description, LoadedModel
from mt.errors import ModelError, problems
from mt.model.transformer import Transformer
from mt.tokenizer import Tokenizer, VocabularyTokenizer

ADDS = (".output.", ".outer.")  # in the names of what a layer adds to what it is given


def shrink(
    teacher: LoadedModel, encoder_layers: int, decoder_layers: int, vocabulary_size: int
) -> tuple[dict[str, Tensor], Tokenizer, Description]:
    """Weights, tokenizer and description of a student, which is of no use before it has been trained.

    Of the layers it has the last and others evenly spaced; an encoder with more than the teacher's has further ones
    that change nothing yet. Of the vocabulary it has the first merges. Raises ModelError with all that cannot be.
    """
    config, tokenizer = teacher.description.model, teacher.tokenizer
    found = [
        f"{name} is {asked}; accepted: {accepted}"
        for name, asked, least, most, accepted in (
            ("encoder_layers", encoder_layers, 1, math.inf, "at least 1"),
            ("decoder_layers", decoder_layers, 1, config.decoder_layers, f"1 to {config.decoder_layers}"),
            ("vocabulary_size", vocabulary_size, 1, len(tokenizer), f"at most {len(tokenizer)}"),
        )
        if not least <= asked <= most
    ]
    if isinstance(tokenizer, VocabularyTokenizer) or not tokenizer.merges:
        found.append("its vocabulary is not one of our BPE; accepted: a model that scripts/train.py trained")
    if config.norm != "pre" and encoder_layers > config.encoder_layers:
        found.append(f"more encoder layers than {config.encoder_layers} need model.norm 'pre'; it has {config.norm!r}")
    if found:
        raise ModelError(problems("the model cannot be shrunk so", found))
    smaller = tokenizer.shortened(vocabulary_size)
    shape = config.model_copy(update={"encoder_layers": encoder_layers, "decoder_layers": decoder_layers})
    sizes = {"vocabulary_size": len(smaller)}
    if teacher.description.source_vocabulary_size is not None:
        sizes["source_vocabulary_size"] = len(smaller)
    description = teacher.description.model_copy(update={**sizes, "model": shape})
    kept = {
        "encoder": evenly_spaced(config.encoder_layers, encoder_layers),
        "decoder": evenly_spaced(config.decoder_layers, decoder_layers),
    }
    ids = {piece: id for id, piece in enumerate(tokenizer.pieces(range(len(tokenizer))))}
    rows = torch.tensor([ids[piece] for piece in smaller.pieces(range(len(smaller)))])
    return _weights(teacher, description, kept, rows), smaller, description


def evenly_spaced(there: int, wanted: int) -> list[int]:
    """Which layers stay: the last, the first if there is room for two, and others between them; or all."""
    if wanted >= there:
        return list(range(there))
    return [round(there - 1 - place * (there - 1) / max(wanted - 1, 1)) for place in reversed(range(wanted))]


def _weights(
    teacher: LoadedModel, description: Description, kept: Mapping[str, Sequence[int]], rows: Tensor
) -> dict[str, Tensor]:
    model = Transformer(
        description.model, description.vocabulary_size, source_vocabulary_size=description.source_vocabulary_size
    )
    theirs = teacher.model.state_dict()
    weights = {}
    for name, own in model.state_dict().items():
        side, _, rest = name.partition(".layers.")
        number, _, inner = rest.partition(".")
        if not rest:
            weights[name] = theirs[name] if theirs[name].shape == own.shape else theirs[name][rows]
        else:
            further = int(number) >= len(kept[side])  # like the last one, but that it adds nothing
            weights[name] = theirs[f"{side}.layers.{kept[side][-1 if further else int(number)]}.{inner}"]
            if further and any(part in name for part in ADDS):
                weights[name] = torch.zeros_like(own)
    return {name: tensor.clone() for name, tensor in weights.items()}
