"""CPU backend: greedy and beam search in the compiled kernels, without torch."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mt.arrays import Arrays
from mt.checkpoint import LoadedModel, load_model, save_int8_check
from mt.config import ModelConfig
from mt.decoding.options import SpecialIds
from mt.decoding.prefixes import check_prefixes
from mt.description import CalibrationLoss, Int8Check
from mt.engine.backends.calibration import (
    LARGEST_DECILE,
    LARGEST_DIVERGENCE,
    LARGEST_LOSS,
    accepts,
    mean_log_probability,
)
from mt.engine.backends.protocol import Backend, Dtype
from mt.engine.requests import Request
from mt.engine.scheduler import Limits
from mt.errors import ModelError, RequestError
from mt.kernels.library import CpuBatch, CpuModel, CpuShortlist, load_library
from mt.kernels.quantization import Int8Weights, quantize_weights
from mt.kernels.structs import search_params
from mt.model.positions import positions_of

logger = logging.getLogger(__name__)

LOGITS_COST = 2
"""Time of one step of one row in a search with term constraints, which needs the logits of all tokens, relative to
other searches."""


@dataclass(frozen=True)
class CompiledDecoder:
    """Decoder that creates `CpuBatch` objects. Their results equal those of `SearchBatch`.

    Searches with term constraints do not use the shortlist. Requests of all kinds share a batch.
    """

    model: CpuModel
    shortlist: CpuShortlist | None = None

    def kind(self, request: Request) -> None:
        return None

    def cost(self, request: Request) -> int:
        return 1 if request.constraints is None else LOGITS_COST

    def begin(self, requests: Sequence[Request]) -> CpuBatch:
        if any(request.options.sample for request in requests):
            raise RequestError("sample is true; accepted by the backend cpu: false. The backend torch can draw samples")
        prefixes = [request.prefix for request in requests]
        check_prefixes(prefixes, [request.options for request in requests], SpecialIds())
        batch = CpuBatch(self.model, self.shortlist)
        batch.join(
            [request.source for request in requests],
            [search_params(request.options, len(request.source), len(request.prefix)) for request in requests],
            prefixes,
        )
        for index, request in enumerate(requests):
            if (words := request.constraints) is not None:
                batch.require(index, vars(words), words.patience, words.threshold)
        return batch


def with_positions(weights: Arrays, config: ModelConfig) -> Arrays:
    """Return `weights`. Unless positions are learned, add the table of sinusoidal positions, `embedding.positions`."""
    if config.positions == "learned":
        return weights
    return {**weights, "embedding.positions": positions_of(config, config.max_length)}


def compile_model(loaded: LoadedModel, int8: bool) -> CpuModel:
    """Pack a model for the compiled kernels, in int8 or float32. The kernels must be available."""
    library = load_library()
    assert library is not None
    special = SpecialIds()
    ids = (special.pad, special.unk, special.bos, special.eos)
    weights, config = loaded.arrays(), loaded.description.model
    stored = weights.stored if isinstance(weights, Int8Weights) else weights
    if int8 and stored is weights:  # same int8 values as in a directory with int8 weights, so both share packed weights
        exact = ((name, array.astype(np.float32, copy=False)) for name, array in weights.items())
        stored = dict(quantize_weights(exact))
    return CpuModel(library, config, with_positions(stored, config), ids, int8)


def load_backend(models: Sequence[LoadedModel], device: str, dtype: Dtype) -> Backend:
    """Return the backend that decodes one model in the compiled kernels.

    If the model has a shortlist, translations contain only tokens of the shortlist.

    If the model's directory has int8 weights, `auto` uses int8. Otherwise `auto` uses int8 only if int8 was compared
    with float32 when the model was trained, calibrated or imported, and `accepts` is true for the result.

    Raises:
        ModelError: The device or dtype is not supported, there are several models, the kernels are not available, or
            the loss of int8 weights is too large.
    """
    if device != "cpu":
        raise ModelError(f"device is {device}; accepted: cpu")
    if len(models) > 1:
        raise ModelError(f"the ensemble has {len(models)} models; accepted: 1")
    if dtype is Dtype.BFLOAT16:
        raise ModelError("dtype is bfloat16; accepted: auto, float32, int8")
    if load_library() is None:
        raise ModelError("the compiled kernels are not available (the log says why). They need a C++ compiler (CXX)")
    (loaded,) = models
    model, dtype = _choose_weights(loaded, dtype)
    tokens = CpuShortlist(model, loaded.shortlist) if loaded.shortlist is not None else None
    limits = Limits.compiled(model.decoder_layers * model.d_model)
    return Backend(
        CompiledDecoder(model, tokens),
        dtype,
        limits,
        multithreaded=True,
        shortlist=tokens is not None,
        attend=model.cross_attention,
        use_threads=model.use_threads,
    )


def _calibration_loss(loaded: LoadedModel, exact: CpuModel, rounded: CpuModel) -> CalibrationLoss:
    """Compare the packed weights of a model, `exact` in float32 and `rounded` in int8, on its calibration text."""
    pairs = [loaded.encode_pair(pair) for pair in loaded.calibration]
    before, after = (mean_log_probability(model, pairs) for model in (exact, rounded))
    return CalibrationLoss(sentences=len(pairs), loss=before - after)


def store_loss(folder: Path) -> None:
    """Measure what int8 loses on the calibration text of a model directory, and write the result to `int8.json`.

    Processes that load the model then need not measure it. Do nothing if the model has no calibration text, if its
    weights are int8 already, or if the kernels are not available. Raises: ModelError if a file cannot be used.
    """
    loaded = load_model(folder)
    if loaded.calibration and loaded.description.weights != "int8" and load_library() is not None:
        exact, rounded = (compile_model(loaded, int8) for int8 in (False, True))
        save_int8_check(folder, _calibration_loss(loaded, exact, rounded))


def _log_check(name: str, check: CalibrationLoss | Int8Check) -> None:
    selected = "int8" if accepts(check) else "float32"
    if isinstance(check, CalibrationLoss):
        result = f"int8 lowers the log-probability of its calibration text by {check.loss:.5f} nats per token"
        logger.info("%s uses %s: %s (accepted: at most %s)", name, selected, result, LARGEST_LOSS)
    else:
        logger.info(
            "%s uses %s: int8 diverges from float32 by %.5f nats per token (accepted: at most %s), and in the worst "
            "tenth of sentences by %.5f (accepted: at most %s)",
            *(name, selected, check.divergence, LARGEST_DIVERGENCE, check.worst_decile, LARGEST_DECILE),
        )


def _choose_weights(loaded: LoadedModel, dtype: Dtype) -> tuple[CpuModel, Dtype]:
    """Pack the weights of the model in the format that `dtype` selects. Return the packed model and its dtype.

    A model with calibration text whose directory has no `int8.json` was trained by an earlier release: its loss is
    measured now.

    Raises:
        ModelError: `dtype` is int8, and the loss of int8 weights is too large.
    """
    if dtype is not Dtype.FLOAT32 and loaded.description.weights == "int8":
        return compile_model(loaded, int8=True), Dtype.INT8
    if dtype is Dtype.FLOAT32:
        return compile_model(loaded, int8=False), Dtype.FLOAT32
    check, packed = loaded.int8_check, dict[bool, CpuModel]()
    if loaded.calibration and not isinstance(check, CalibrationLoss):
        packed = {int8: compile_model(loaded, int8) for int8 in (False, True)}
        check = _calibration_loss(loaded, packed[False], packed[True])
    if isinstance(check, CalibrationLoss) and dtype is Dtype.INT8 and not accepts(check):
        raise ModelError(
            f"int8 weights lower the log-probability of this model's calibration text by {check.loss:.3f} nats a "
            f"token; accepted: at most {LARGEST_LOSS}. Use float32 or auto"
        )
    if dtype is Dtype.AUTO and check is None:
        name = loaded.description.name
        logger.info("%s uses float32, because int8 was not compared with float32 (run mt-service calibrate)", name)
    elif dtype is Dtype.AUTO and check is not None:
        _log_check(loaded.description.name, check)
    int8 = dtype is Dtype.INT8 or (check is not None and accepts(check))
    return packed.get(int8) or compile_model(loaded, int8), Dtype.INT8 if int8 else Dtype.FLOAT32
