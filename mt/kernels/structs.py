"""The structures that the compiled kernels read, equal to the structs in cpu/*.hpp."""

import ctypes
from ctypes import c_double, c_float, c_int32, c_void_p

import numpy as np

from mt.decoding.options import Normalization, SearchOptions


class KernelConfig(ctypes.Structure):
    """Sizes and options of a model: struct Config of cpu/model.hpp."""

    _fields_ = [
        *((name, c_int32) for name in ("d_model", "d_ff", "heads", "encoder_layers", "decoder_layers", "vocabulary")),
        *((name, c_int32) for name in ("positions", "pre_norm", "activation", "int8", "pad", "unk", "bos", "eos")),
        *((name, c_float) for name in ("scale", "norm_epsilon")),
    ]


class SearchParams(ctypes.Structure):
    """Search options of one sentence: struct SearchParams of cpu/search.hpp. Lengths include EOS.

    `beams` is the number of rows. `prefix` is the number of forced tokens. `longest` and `shortest` are the limits of
    the length. The other fields are those of SearchOptions.
    """

    _fields_ = [
        *((name, c_int32) for name in ("beams", "longest", "shortest", "n_best", "gnmt", "prefix", "ngram")),
        ("length_penalty", c_double),
        ("margin", c_double),
    ]


def search_params(options: SearchOptions, source_length: int, prefix_length: int = 0) -> SearchParams:
    """Convert the search options of one sentence into the struct that the kernels read."""
    return SearchParams(
        beams=options.rows,
        longest=options.longest(source_length, prefix_length),
        shortest=options.min_length,
        n_best=options.n_best,
        gnmt=options.normalization is Normalization.GNMT,
        length_penalty=options.length_penalty,
        margin=options.margin,
        prefix=prefix_length,
        ngram=options.no_repeat_ngram,
    )


def scores_only(beams: int) -> SearchParams:
    """Return search options of a sentence in a batch that only returns logits."""
    return SearchParams(beams=beams, longest=1, shortest=1, n_best=1)


TABLE_TYPES = {
    "columns": np.int16,
    "following": np.int32,
    "counts": np.uint8,
    "proposals": np.int32,
    "completions": np.int32,
    "full": np.uint8,
    "begins": np.int32,
    "costs": np.float32,
    "cues": np.int32,
    "starts": np.int32,
    "needed": np.int32,
    "allowed": np.int32,
    "endings": np.float32,
}
"""Types of the tables of TermConstraints in the kernels, in the order of the fields of TermTables."""


class TermTables(ctypes.Structure):
    """Words that a translation must or must not contain: struct TermTables of cpu/terms.hpp."""

    _fields_ = [
        *((name, c_int32) for name in ("automata", "nodes", "columns", "proposals", "completions", "begins", "cues")),
        ("patience", c_int32),
        *((f"{name}_data", c_void_p) for name in TABLE_TYPES),
        ("threshold", c_float),
    ]
