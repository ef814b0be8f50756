"""Small random models, and what the compiled kernels make of them."""

import ctypes
import shutil
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
import torch

from mt.checkpoint import to_arrays
from mt.config import ModelConfig
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions, SpecialIds
from mt.engine.backends.cpu import CompiledDecoder, with_positions
from mt.engine.engine import Engine
from mt.engine.requests import Request
from mt.engine.scheduler import Limits
from mt.kernels.build import cache_folder, compile_library, fitting_targets
from mt.kernels.library import CpuModel, CpuShortlist, load_library, open_library
from mt.kernels.shortlist import Shortlist
from mt.model.transformer import Transformer
from tests.decoding.reference import drain

Ids = tuple[int, ...]
EOS = 3
BEAM = SearchOptions(beam_size=4, n_best=4, max_length_factor=1.0, max_length_offset=6)
ODD: dict[str, Any] = {  # sizes that do not fill vectors
    "encoder_layers": 2,
    "decoder_layers": 2,
    "d_model": 24,
    "d_ff": 40,
    "heads": 2,
    "max_length": 64,
    "dropout": 0.0,
}
KINDS = [(norm, activation) for norm in ("pre", "post") for activation in ("relu", "gelu", "swish")]
FOREIGN: dict[str, Any] = {  # what other toolkits' models have
    "norm": "post",
    "norm_epsilon": 1e-2,
    "activation": "swish",
    "positions": "concatenated",
    "first_position": 2,
    "scale_embedding": False,
    "tie_source": False,
    "tie_output": False,
    "logits_bias": True,
}


def odd_model(vocabulary: int = 77, seed: int = 0, source_vocabulary: int | None = None, **changes: Any) -> Transformer:
    """A random model whose translations differ from sentence to sentence, in length too."""
    torch.manual_seed(seed)
    config = ModelConfig.model_validate({**ODD, **changes})
    model = Transformer(config, vocabulary, source_vocabulary_size=source_vocabulary).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.2)
            elif "cross" in name:
                parameter.mul_(3)
    return model


def compile_model(library: ctypes.CDLL, model: Transformer, int8: bool = False) -> CpuModel:
    special = SpecialIds()
    weights = with_positions(to_arrays(model.state_dict()), model.config)
    return CpuModel(library, model.config, weights, (special.pad, special.unk, special.bos, special.eos), int8)


def some_sources(count: int, vocabulary: int = 77, longest: int = 20, seed: int = 1) -> list[Ids]:
    """With EOS, which may be all."""
    random = Random(seed)
    return [(*(random.randrange(4, vocabulary) for _ in range(random.randint(0, longest))), EOS) for _ in range(count)]


def translate(
    model: CpuModel,
    sources: Sequence[Ids],
    options: SearchOptions = BEAM,
    limits: Limits | None = None,
    prefixes: Sequence[Ids] | None = None,
    shortlist: Shortlist | None = None,
) -> list[list[Hypothesis]]:
    """Translate all sources by one engine."""
    decoder = CompiledDecoder(model, CpuShortlist(model, shortlist) if shortlist else None)
    wanted = zip(sources, prefixes or [()] * len(sources), strict=True)
    requests = [Request(id, source, options, prefix) for id, (source, prefix) in enumerate(wanted)]
    results = drain(Engine(decoder, limits), requests)
    return [list(results[request.id].hypotheses) for request in requests]


def checked(library: ctypes.CDLL | None) -> ctypes.CDLL:
    """Skip the test if no library can be made here; one that the compiler makes must load."""
    if library is None:
        assert shutil.which("c++") is None, "there is a C++ compiler, but no library of the kernels is loaded"
        pytest.skip("there is no C++ compiler to make the kernels, and no library that was made before")
    return library


@pytest.fixture(scope="session")
def library() -> ctypes.CDLL:
    return checked(load_library())


@pytest.fixture(scope="session", params=fitting_targets(), ids=lambda target: target.name)
def target_library(request: pytest.FixtureRequest) -> ctypes.CDLL:
    folder = cache_folder()
    assert folder is not None, "there is no home directory"
    path = compile_library(request.param, folder)
    return checked(open_library(path) if path else None)
