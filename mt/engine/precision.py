"""In which numbers a model decodes, and on what: chosen when it is loaded, checked where it could cost quality."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

import torch

from mt.checkpoint import CalibrationPair, LoadedModel
from mt.decoding.options import SpecialIds
from mt.decoding.scorer import ModelScorer, Scorer
from mt.engine.batches import Batch, Decoder, SearchDecoder
from mt.engine.compiled import CompiledDecoder, CompiledScorer
from mt.engine.graphs import GraphDecoder
from mt.errors import ModelError
from mt.kernels.library import CpuModel, load_library
from mt.tokenizer import EOS

WORST_LOSS = 0.01
"""Nats a token by which int8 weights may make the calibration text less probable; models lose about 0.001."""


class Dtype(StrEnum):
    """Of the weights. On a GPU `auto` is bfloat16; on a CPU int8, if that is shown to lose nothing, else float32."""

    AUTO = "auto"
    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    INT8 = "int8"


def choose_decoder(loaded: LoadedModel, device: torch.device, dtype: Dtype) -> tuple[Decoder[Batch], Dtype]:
    """What decodes, and in which numbers. Raises ModelError where that cannot be had.

    int8 is compared with float32 on the pairs that the model brings along; without any, `auto` does not risk it.
    """
    if device.type != "cpu":
        if dtype is Dtype.INT8:
            raise ModelError(f"dtype int8 is for CPUs, and this is {device}; accepted: auto, bfloat16, float32")
        if dtype is not Dtype.FLOAT32:
            loaded.model.bfloat16()
        chosen = Dtype.FLOAT32 if dtype is Dtype.FLOAT32 else Dtype.BFLOAT16
        return GraphDecoder(loaded.model, SpecialIds(), device), chosen
    if dtype is Dtype.BFLOAT16 or load_library() is None:
        if dtype is Dtype.INT8:
            raise ModelError("dtype int8 needs the compiled kernels, and there is no C++ compiler to make them (CXX)")
        if dtype is Dtype.BFLOAT16:
            loaded.model.bfloat16()
        return SearchDecoder(ModelScorer(loaded.model)), Dtype.BFLOAT16 if dtype is Dtype.BFLOAT16 else Dtype.FLOAT32
    if dtype is Dtype.FLOAT32 or (dtype is Dtype.AUTO and not loaded.calibration):
        return CompiledDecoder(compiled(loaded, int8=False)), Dtype.FLOAT32
    quantised = compiled(loaded, int8=True)
    if loaded.calibration:
        exact = compiled(loaded, int8=False)
        before, after = (mean_log_probability(CompiledScorer(each), loaded) for each in (exact, quantised))
        if not before - after <= WORST_LOSS:
            if dtype is Dtype.AUTO:
                return CompiledDecoder(exact), Dtype.FLOAT32
            raise ModelError(
                f"int8 weights make this model's calibration text {before - after:.3f} nats a token less probable; "
                f"accepted: at most {WORST_LOSS}; use float32 or auto"
            )
    return CompiledDecoder(quantised), Dtype.INT8


def compiled(loaded: LoadedModel, int8: bool) -> CpuModel:
    """The model in the compiled kernels, which must be there."""
    library = load_library()
    assert library is not None
    weights = {**loaded.model.state_dict(), "embedding.positions": loaded.model.embedding.positions}
    special = SpecialIds()
    ids = (special.pad, special.unk, special.bos, special.eos)
    return CpuModel(library, loaded.description.model, weights, ids, int8)


@torch.inference_mode()
def mean_log_probability(scorer: Scorer[Any], loaded: LoadedModel) -> float:
    """Of a token of the calibration pairs' targets, EOS counted, when they are forced step by step."""
    pairs = sorted((_encoded(loaded, pair) for pair in loaded.calibration), key=lambda pair: -len(pair[1]))
    state = scorer.start([source for source, _ in pairs], 1)
    total, fed = 0.0, [scorer.special.bos] * len(pairs)
    for step in range(len(pairs[0][1])):
        left = sum(step < len(target) for _, target in pairs)  # the longest come first
        if left < len(fed):
            state.select(torch.arange(left, device=scorer.device))
        log_probs = scorer.step(state, torch.tensor(fed[:left], device=scorer.device)).float().log_softmax(1)
        fed = [target[step] for _, target in pairs[:left]]
        total += float(log_probs[range(left), fed].sum())
    return total / sum(len(target) for _, target in pairs)


def _encoded(loaded: LoadedModel, pair: CalibrationPair) -> tuple[Sequence[int], Sequence[int]]:
    """Source and target, with EOS each, cut to the model's length."""
    tokenizer, limit = loaded.tokenizer, loaded.description.model.max_length
    tag = tokenizer.opening(pair.direction.split("-")[1], loaded.description.directions)
    source = [*tag, *tokenizer.encode(pair.source.strip())][: limit - 1]
    return (*source, EOS), (*tokenizer.target.encode(pair.target.strip())[: limit - 1], EOS)
