"""CPU backend: beam search and greedy search in the compiled kernels, also with terms; other searches in torch.

Only these other searches import torch.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from importlib import import_module
from typing import Self

import numpy as np

from mt.arrays import Arrays
from mt.checkpoint import LoadedModel
from mt.config import ModelConfig
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import Normalization, SearchOptions, SpecialIds
from mt.decoding.prefixes import check_prefixes
from mt.decoding.term_constraints import TermConstraints
from mt.engine.backends.calibration import (
    LARGEST_DECILE,
    LARGEST_DIVERGENCE,
    LARGEST_LOSS,
    accepts,
    mean_log_probability,
)
from mt.engine.backends.protocol import Backend, Batch, Dtype
from mt.engine.requests import Request
from mt.engine.scheduler import BatchKind, Limits
from mt.errors import ModelError, RequestError
from mt.kernels.library import NO_TOKEN, CpuBatch, CpuModel, CpuShortlist, SearchParams, load_library
from mt.model.positions import positions_of

logger = logging.getLogger(__name__)

TORCH_COST = 8
"""Time of a row's step of a search in torch, relative to the kernels: 4 to 18 with d_model 32 to 128."""


TERMS_COST = 2
"""Time of a row's step of a search with terms in the kernels, relative to a search without terms."""


def search_params(options: SearchOptions, source_length: int, prefix: Sequence[int] = ()) -> SearchParams:
    """Return the options of one sentence with a prefix of at most one token in the form of the kernels."""
    return SearchParams(
        longest=options.longest(source_length, len(prefix)),
        shortest=options.shortest(source_length),
        n_best=options.n_best,
        gnmt=options.normalization is Normalization.GNMT,
        length_penalty=options.length_penalty,
        first=prefix[0] if prefix else NO_TOKEN,
        ngram=options.no_repeat_ngram,
    )


SUPPORTED_OPTIONS = {
    *("beam_size", "n_best", "length_penalty", "normalization", "max_length_factor", "max_length_offset"),
    *("max_length", "min_length_factor", "min_length", "no_repeat_ngram", "temperature", "top_k", "top_p", "seed"),
}
"""Fields of SearchOptions that the kernels implement or that affect only sampling."""

OPTION_DEFAULTS = {f.name: f.default for f in fields(SearchOptions) if f.name not in SUPPORTED_OPTIONS}
SUPPORTED_FIELDS = {"id", "source", "options", "caller", "prefix", "constraints"}
REQUEST_DEFAULTS = {f.name: f.default for f in fields(Request) if f.name not in SUPPORTED_FIELDS}


def is_supported(request: Request) -> bool:
    """Return whether the kernels implement the search of a request.

    This is true if the prefix has at most one token, such as that of the target language, and every field that the
    kernels do not implement has its default value. A field that is added to SearchOptions or Request therefore makes
    torch search, without a change here.
    """
    if len(request.prefix) > 1 or (request.constraints is not None and request.options.no_repeat_ngram):
        return False
    return _are_defaults(request, REQUEST_DEFAULTS) and _are_supported(request.options)


@lru_cache(maxsize=256)  # many requests share their options
def _are_supported(options: SearchOptions) -> bool:
    return _are_defaults(options, OPTION_DEFAULTS)


def _are_defaults(part: object, defaults: Mapping[str, object]) -> bool:
    return all(getattr(part, name) == default for name, default in defaults.items())


@dataclass
class CompiledBatch:
    """Beam or greedy search inside the kernels, equal to `SearchBatch`."""

    batch: CpuBatch

    def advance(self) -> list[int]:
        return self.batch.advance(1)[1]

    def results(self, indices: Sequence[int]) -> list[list[Hypothesis]]:
        return [[Hypothesis(*fields) for fields in self.batch.results(index)] for index in indices]

    def select(self, indices: Sequence[int]) -> None:
        self.batch.select(indices)

    def extend(self, other: Self) -> None:
        self.batch.extend(other.batch)


@dataclass(frozen=True)
class CompiledDecoder:
    """Factory of `CompiledBatch`, or of `SearchBatch` for searches that the kernels do not implement.

    The shortlist applies to the kernels' own searches only.
    """

    model: CpuModel
    shortlist: CpuShortlist | None = None

    def kind(self, request: Request) -> BatchKind:
        if is_supported(request):
            kind = BatchKind.of(request)
            return replace(kind, compiled=True, cost=TERMS_COST if kind.constrained else 1)
        return replace(BatchKind.of(request), cost=TORCH_COST)

    def begin(self, requests: Sequence[Request]) -> Batch:
        if not is_supported(requests[0]):
            return _begin_in_torch(self.model, requests)
        prefixes = [request.prefix for request in requests]
        check_prefixes(prefixes, [request.options for request in requests], SpecialIds())
        batch = CpuBatch(self.model, requests[0].options.rows, self.shortlist)
        batch.join(
            [request.source for request in requests],
            [search_params(request.options, len(request.source), request.prefix) for request in requests],
        )
        for index, request in enumerate(requests):
            if request.constraints is not None:
                batch.require(index, _tables(request.constraints), request.constraints.patience)
        return CompiledBatch(batch)


def _tables(constraints: TermConstraints) -> Arrays:
    """Return the arrays of constraints under their names in the kernels."""
    return {
        "column": constraints.columns,
        "following": constraints.following,
        "counts": constraints.counts,
        "proposed": constraints.proposals,
        "completing": constraints.completions,
        "full": constraints.full,
        "begin": constraints.begins,
        "cost": constraints.costs,
        "cue": constraints.cues,
        "start": np.asarray(constraints.starts),
        "needed": np.asarray(constraints.needed),
        "allowed": np.asarray(constraints.allowed),
        "ending": np.asarray(constraints.endings),
    }


def _begin_in_torch(model: CpuModel, requests: Sequence[Request]) -> Batch:
    """Return the batch of a search that the kernels do not implement. Raises: RequestError without torch."""
    try:
        batch: Batch = import_module("mt.engine.backends.compiled_scorer").begin(model, requests)
    except ModuleNotFoundError as error:
        raise RequestError(
            f"sampling, long prefixes and repetition penalties need {error.name}, which is not "
            "installed; accepted: beam search and greedy search"
        ) from error
    return batch


def with_positions(weights: Arrays, config: ModelConfig) -> Arrays:
    """Return the weights of a model, with the sinusoidal positions as `embedding.positions` if it has them."""
    if config.positions == "learned":
        return weights
    return {**weights, "embedding.positions": positions_of(config, config.max_length)}


def compile_model(loaded: LoadedModel, int8: bool) -> CpuModel:
    """Return the packed model. The compiled kernels must be available."""
    library = load_library()
    assert library is not None
    special = SpecialIds()
    ids = (special.pad, special.unk, special.bos, special.eos)
    return CpuModel(
        library, loaded.description.model, with_positions(loaded.arrays(), loaded.description.model), ids, int8
    )


def load_backend(models: Sequence[LoadedModel], device: str, dtype: Dtype, shortlist: bool) -> Backend:
    """Return the compiled backend of one model. `shortlist` limits target tokens to the model's shortlist, if any.

    If the model's directory has int8 weights, `auto` uses int8. Otherwise int8 weights are compared with float32
    weights on the model's calibration text, and `auto` uses int8 only if the loss on this text is at most
    `LARGEST_LOSS`. Without calibration text, `auto` uses int8 only if the comparison at the model's import allows it.

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
        raise ModelError("the compiled kernels are not available (see the log). They need a C++ compiler (CXX)")
    (loaded,) = models
    model, dtype = _choose_weights(loaded, dtype)
    tokens = CpuShortlist(model, loaded.shortlist) if shortlist and loaded.shortlist is not None else None
    limits = Limits.compiled(model.decoder_layers * model.d_model)
    return Backend(
        CompiledDecoder(model, tokens),
        dtype,
        limits,
        multithreaded=True,
        shortlist=tokens is not None,
        attend=model.cross_attention,
    )


def _passed_check(loaded: LoadedModel) -> bool:
    """Return whether int8 was compared with float32 when the model was imported, and is close enough."""
    check, name = loaded.int8_check, loaded.description.name
    if check is None:
        logger.info("%s: float32, for int8 was not compared with float32 (mt-service calibrate)", name)
        return False
    passed = accepts(check)
    selected = "int8" if passed else "float32"
    logger.info(
        "%s: %s, for int8 diverges by %.5f nats per token (largest accepted %s), in the worst tenth of sentences by "
        "%.5f (largest accepted %s)",
        *(name, selected, check.divergence, LARGEST_DIVERGENCE, check.worst_decile, LARGEST_DECILE),
    )
    return passed


def _choose_weights(loaded: LoadedModel, dtype: Dtype) -> tuple[CpuModel, Dtype]:
    """Return the packed model and its dtype, float32 or int8."""
    if dtype is not Dtype.FLOAT32 and loaded.description.weights == "int8":
        return compile_model(loaded, int8=True), Dtype.INT8
    if dtype is Dtype.FLOAT32 or (dtype is Dtype.AUTO and not loaded.calibration and not _passed_check(loaded)):
        return compile_model(loaded, int8=False), Dtype.FLOAT32
    quantized = compile_model(loaded, int8=True)
    if not loaded.calibration:
        return quantized, Dtype.INT8
    exact = compile_model(loaded, int8=False)
    before, after = (mean_log_probability(model, loaded) for model in (exact, quantized))
    if before - after <= LARGEST_LOSS:
        return quantized, Dtype.INT8
    if dtype is Dtype.AUTO:
        return exact, Dtype.FLOAT32
    raise ModelError(
        f"int8 weights lower the log-probability of this model's calibration text by {before - after:.3f} nats a "
        f"token; accepted: at most {LARGEST_LOSS}. Use float32 or auto"
    )
