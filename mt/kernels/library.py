"""Python bindings of the compiled encoder-decoder for CPUs (cpu/*.hpp), with weights in float32 or int8.

The library implements mt/model and the searches of mt/decoding. Long calls release Python's interpreter lock, so that
several threads can decode batches of one model in parallel. A batch is not synchronized: only one thread at a time may
use it.

Shapes: L decoder layers, H heads, S source length, T target length, R rows of a batch, V vocabulary.
"""

import ctypes
import logging
import math
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_void_p
from functools import lru_cache
from itertools import chain
from mmap import mmap
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mt.arrays import Arrays
from mt.config import ModelConfig
from mt.decoding.hypothesis import Hypothesis
from mt.kernels.build import cache_folder, find_libraries
from mt.kernels.packed import digest, private_memory, shared_memory
from mt.kernels.quantization import SCALE
from mt.kernels.shortlist import Shortlist
from mt.kernels.structs import TABLE_TYPES, KernelConfig, SearchParams, TermTables

INTERFACE = 16
QUICK = ("mt_batch_new", "mt_batch_free", "mt_batch_extend", "mt_batch_select", "mt_batch_results", "mt_batch_require")
"""Names of short functions. While they run, Python's interpreter lock is kept."""
INT32, FLOAT, UINT8 = "i", "f", "B"
"""Type codes of array.array. Its objects are created faster than ctypes arrays, which need a class for each length."""
ACTIVATIONS = {"relu": 0, "gelu": 1, "swish": 2}

logger = logging.getLogger(__name__)


SIGNATURES: dict[str, tuple[type | None, list[type]]] = {
    "mt_interface": (c_int, []),
    "mt_problem": (c_char_p, []),
    "mt_keep_memory": (None, []),
    "mt_tensors_new": (c_void_p, []),
    "mt_tensors_free": (None, [c_void_p]),
    "mt_tensors_add": (c_int, [c_void_p, c_char_p, c_void_p, c_void_p, c_void_p, c_int64, c_int64]),
    "mt_model_size": (c_int64, [POINTER(KernelConfig), c_void_p]),
    "mt_model_new": (c_void_p, [POINTER(KernelConfig), c_void_p, c_void_p, c_int]),
    "mt_model_free": (None, [c_void_p]),
    "mt_model_help": (c_int, [c_void_p, c_int]),
    "mt_cross_attention": (c_int, [c_void_p, c_int, *[c_void_p] * 5]),
    "mt_shortlist_new": (c_void_p, [c_void_p, c_int, *[c_void_p] * 3, c_int, c_void_p]),
    "mt_shortlist_free": (None, [c_void_p]),
    "mt_batch_new": (c_void_p, [c_void_p, c_void_p]),
    "mt_batch_free": (None, [c_void_p]),
    "mt_batch_join": (c_int, [c_void_p, c_int, c_void_p, c_void_p, POINTER(SearchParams), c_void_p]),
    "mt_batch_require": (c_int, [c_void_p, c_int, POINTER(TermTables)]),
    "mt_batch_extend": (c_int, [c_void_p, c_void_p]),
    "mt_batch_select": (c_int, [c_void_p, c_int, c_void_p]),
    "mt_batch_logits": (c_int, [c_void_p, c_void_p, c_void_p]),
    "mt_batch_reorder": (c_int, [c_void_p, c_void_p]),
    "mt_batch_advance": (c_int, [c_void_p, c_int, c_void_p]),
    "mt_batch_results": (c_int, [c_void_p, c_int, c_int, *[c_void_p] * 6]),
}


@lru_cache(maxsize=1)
def load_library() -> ctypes.CDLL | None:
    """Return the library for this processor, and build it if necessary.

    If that fails, log the reason and return None.
    """
    for path in find_libraries():
        if (library := open_library(path)) is not None:
            library.mt_keep_memory()
            return library
    logger.warning(
        "No compiled kernels could be built or loaded for this CPU: models decode in plain torch, which is slower. "
        "The kernels need a C++ compiler (c++, or the one that CXX names)."
    )
    return None


def open_library(path: Path) -> ctypes.CDLL | None:
    """Load a library, and make its functions raise RuntimeError when they fail.

    If the file is damaged or has another interface version, log the reason and return None.
    """
    try:
        library, quick = ctypes.CDLL(str(path)), ctypes.PyDLL(str(path))
        if (interface := library.mt_interface()) != INTERFACE:
            logger.warning("%s has interface version %d, not %d", path, interface, INTERFACE)
            return None
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(quick if name in QUICK else library, name)
            setattr(library, name, function)
            function.restype, function.argtypes = result, arguments
            if result in (c_int, c_int64, c_void_p):
                function.errcheck = _raising(library)
    except (OSError, AttributeError) as error:  # not a library, or a function is missing
        logger.warning("%s cannot be loaded: %s", path, error)
        return None
    return library


def _raising(library: ctypes.CDLL) -> Callable[[Any, Any, Any], Any]:
    def check(result: Any, function: Any, arguments: Any) -> Any:
        if result is None or result < 0:
            raise RuntimeError(library.mt_problem().decode())
        return result

    return check


class CpuModel:
    """Packed weights of a model. Any number of batches can use them."""

    def __init__(
        self, library: ctypes.CDLL, config: ModelConfig, weights: Arrays, special: Sequence[int], int8: bool
    ) -> None:
        """Pack the weights of a model. `special` are the ids of PAD, UNK, BOS and EOS.

        Unless positions are learned, `weights` must contain sinusoidal positions as `embedding.positions`. Matrices are
        floats, or int8 with scales (quantization.py). Packed int8 weights are shared with other processes if possible.
        """
        self.library = library
        self.d_model, self.heads, self.decoder_layers = config.d_model, config.heads, config.decoder_layers
        self.bos = special[2]
        self.vocabulary_size = weights["embedding.tokens.weight"].shape[0]
        pad, unk, bos, eos = special
        kernel_config = KernelConfig(
            d_model=config.d_model,
            d_ff=config.d_ff,
            heads=config.heads,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
            vocabulary=self.vocabulary_size,
            positions=config.max_length,
            pre_norm=config.norm == "pre",
            activation=ACTIVATIONS[config.activation],
            int8=int8,
            pad=pad,
            unk=unk,
            bos=bos,
            eos=eos,
            scale=config.d_model**0.5 if config.scale_embedding else 1.0,
            norm_epsilon=config.norm_epsilon,
        )
        stored = {
            name: np.ascontiguousarray(array, None if array.dtype == np.int8 else np.float32)
            for name, array in weights.items()
        }
        with _tensors(library, stored) as tensors:
            size = library.mt_model_size(byref(kernel_config), tensors)

            def build(memory: mmap, ready: bool) -> int:
                begin = np.frombuffer(memory, np.uint8).ctypes.data
                handle: int = library.mt_model_new(byref(kernel_config), tensors, begin, ready)
                return handle

            def fill(memory: mmap) -> None:
                library.mt_model_free(build(memory, ready=False))

            cache = cache_folder() if int8 else None
            name = f"{digest(stored, bytes(kernel_config))}.{Path(library._name).stem}" if cache else ""
            shared = shared_memory(cache / "weights", name, size, fill) if cache else None
            self._memory = shared or private_memory(size)
            self.handle = build(self._memory, ready=shared is not None)

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self.library.mt_model_free(self.handle)

    def use_threads(self, threads: int) -> None:
        """Set the number of threads that decode. The model must have no batch.

        While the model has one batch, the thread that decodes it is helped by threads - 1 threads of the library, so
        that a single sentence is translated faster. With more batches, each thread works alone.
        """
        self.library.mt_model_help(self.handle, threads - 1)

    def cross_attention(self, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[NDArray[np.float32]]:
        """Return the cross-attention weights of each pair, each [L, H, T + 1, S].

        A pair is a source of S ids, with EOS, and a target of T ids, without BOS and EOS. Row t of the weights belongs
        to the prediction of target token t, and the last row to that of EOS.
        """
        sources, targets = [list(source) for source, _ in pairs], [[self.bos, *target] for _, target in pairs]
        shapes = [(self.decoder_layers, self.heads, len(t), len(s)) for s, t in zip(sources, targets, strict=True)]
        ends = np.cumsum([0, *map(math.prod, shapes)])
        weights = np.empty(ends[-1], np.float32)
        arrays = [*_packed(sources), *_packed(targets)]
        self.library.mt_cross_attention(self.handle, len(pairs), *map(_address, arrays), weights.ctypes.data)
        return [weights[ends[n] : ends[n + 1]].reshape(shape) for n, shape in enumerate(shapes)]


@contextmanager
def _tensors(library: ctypes.CDLL, stored: Arrays) -> Iterator[int]:
    """Yield a handle to the library's list of these arrays."""
    tensors = library.mt_tensors_new()
    try:
        for name, array in stored.items():
            data, scales = array.ctypes.data, stored.get(name + SCALE)
            pointers = (data, None, None) if scales is None else (None, data, scales.ctypes.data)
            rows = array.shape[0] if array.ndim > 1 else 1
            library.mt_tensors_add(tensors, name.encode(), *pointers, rows, array.shape[-1])
        yield tensors
    finally:
        library.mt_tensors_free(tensors)


def _packed(sentences: Sequence[Sequence[int]]) -> "tuple[array[int], array[int]]":
    """Return the concatenated ids of all sentences, and the lengths of the sentences, both as int32."""
    return array(INT32, chain.from_iterable(sentences)), array(INT32, map(len, sentences))


def _zeros(code: str, number: int) -> "array[Any]":
    """Return an array of zeros. `code` is its type: INT32 or FLOAT."""
    return array(code, bytes(4 * number))


def _rows(values: "array[float]", width: int) -> "memoryview[float]":
    """Return a view of the values in rows of `width`."""
    return memoryview(values).cast("B").cast("f", (len(values) // width, width))


def _address(values: "array[Any]") -> int:
    """Return the address of the first value. The array must stay alive while the address is used."""
    return values.buffer_info()[0]


class CpuShortlist:
    """Shortlist of a model for the library, with a copy of the output weights. Any number of batches can use it."""

    def __init__(self, model: CpuModel, shortlist: Shortlist) -> None:
        assert shortlist.vocabulary_size == model.vocabulary_size
        self.model = model
        always, offsets, allowed, rare = (np.ascontiguousarray(array) for array in shortlist.arrays().values())
        lists = (array.ctypes.data for array in (always, offsets, allowed))
        self.handle = model.library.mt_shortlist_new(model.handle, len(always), *lists, len(rare), rare.ctypes.data)

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self.model.library.mt_shortlist_free(self.handle)


class Sentence(NamedTuple):
    """Numbers of a sentence in a batch: rows, longest allowed translation, `n_best`, and source tokens."""

    beams: int
    longest: int
    n_best: int
    source_length: int


class CpuBatch:
    """Batch of sentences, each with its own number of rows and its own search.

    To search in the library, call `advance`. For a search outside of the library, call `logits` and `reorder`. With a
    shortlist, `advance` uses only the tokens of the shortlist and normalizes log-probabilities over these tokens.
    """

    def __init__(self, model: CpuModel, shortlist: CpuShortlist | None = None) -> None:
        self.model = model
        self.shortlist = shortlist
        self.steps = 0  # decoder steps so far
        self._sentences: list[Sentence] = []
        self._handle = model.library.mt_batch_new(model.handle, shortlist and shortlist.handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.model.library.mt_batch_free(self._handle)

    @property
    def sentences(self) -> int:
        return len(self._sentences)

    @property
    def rows(self) -> int:
        return sum(sentence.beams for sentence in self._sentences)

    def join(
        self,
        sources: Sequence[Sequence[int]],
        params: Sequence[SearchParams],
        prefixes: Sequence[Sequence[int]] = (),
    ) -> None:
        """Encode sources, each a list of ids that ends with EOS, and append their sentences to the batch.

        Every hypothesis of sentence n begins with prefixes[n], which has params[n].prefix ids.
        """
        forced, _ = _packed(prefixes)
        assert len(forced) == sum(sentence.prefix for sentence in params)
        ids, lengths = _packed(sources)
        self.model.library.mt_batch_join(
            self._handle,
            len(sources),
            _address(ids),
            _address(lengths),
            (SearchParams * len(params))(*params),
            _address(forced),
        )
        self._sentences += (Sentence(p.beams, p.longest, p.n_best, n) for p, n in zip(params, lengths, strict=True))

    def require(self, index: int, tables: Mapping[str, Any], patience: int, threshold: float) -> None:
        """Set the required and forbidden words of the sentence at `index`, which must have just joined.

        `tables` are the fields of TermConstraints by name, as are `patience` and `threshold`.
        """
        typed = {name: np.ascontiguousarray(tables[name], dtype) for name, dtype in TABLE_TYPES.items()}
        assert len(typed["columns"]) == self.model.vocabulary_size
        nodes, columns = typed["following"].shape
        structure = TermTables(
            automata=len(typed["starts"]),
            nodes=nodes,
            columns=columns,
            proposals=typed["proposals"].shape[1],
            completions=typed["completions"].shape[1],
            begins=typed["begins"].shape[1],
            cues=typed["cues"].shape[1],
            patience=patience,
            threshold=threshold,
            **{f"{name}_data": array.ctypes.data for name, array in typed.items()},
        )
        self.model.library.mt_batch_require(self._handle, index, byref(structure))

    def extend(self, other: "CpuBatch") -> None:
        """Move the sentences of `other` to the end of this batch. `other` is empty afterwards."""
        assert (self.model, self.shortlist) == (other.model, other.shortlist)
        self.model.library.mt_batch_extend(self._handle, other._handle)
        self._sentences += other._sentences
        other._sentences = []

    def select(self, indices: Sequence[int]) -> None:
        """Keep only the sentences at these indices, in this order."""
        chosen = array(INT32, indices)
        self.model.library.mt_batch_select(self._handle, len(indices), _address(chosen))
        self._sentences = [self._sentences[index] for index in indices]

    def advance(self, steps: int = 1) -> list[int]:
        """Take at most `steps` decoder steps, but stop when a sentence finishes.

        Return the indices of the finished sentences.
        """
        finished = array(UINT8, bytes(len(self._sentences)))
        self.steps += self.model.library.mt_batch_advance(self._handle, steps, _address(finished))
        return [index for index, over in enumerate(finished) if over]

    def results(self, indices: Sequence[int]) -> list[list[Hypothesis]]:
        """Return the hypotheses of each of these finished sentences, best first.

        A sentence has none if its scores were not finite or if no hypothesis meets the search options.
        """
        return [self._hypotheses(index) for index in indices]

    def _hypotheses(self, index: int) -> list[Hypothesis]:
        _, max_tokens, count, width = self._sentences[index]
        size = count * max_tokens
        integers = _zeros(INT32, count + size)  # lengths and tokens
        floats = _zeros(FLOAT, 2 * count + size)  # scores, log-probabilities, and those of the tokens
        attention = _zeros(FLOAT, size * width)
        lengths, scores, hypotheses = _address(integers), _address(floats), list[Hypothesis]()
        tokens, totals, token_log_probs = lengths + 4 * count, scores + 4 * count, scores + 8 * count
        addresses = lengths, tokens, token_log_probs, scores, totals, _address(attention)
        for rank in range(self.model.library.mt_batch_results(self._handle, index, max_tokens, *addresses)):
            start = rank * max_tokens
            end = start + integers[rank]
            hypotheses.append(
                Hypothesis(
                    tuple(integers[count + start : count + end]),
                    floats[rank],
                    floats[count + rank],
                    tuple(floats[2 * count + start : 2 * count + end + 1]),
                    _rows(attention[start * width : (end + 1) * width], width),
                )
            )
        return hypotheses

    def logits(self, tokens: Sequence[int] | NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """Append the newest token of each row, `tokens` [R]. Return the logits [R, V] of the next tokens."""
        assert len(tokens) == self.rows
        ids = np.ascontiguousarray(tokens, np.int32)
        logits = np.empty((len(ids), self.model.vocabulary_size), np.float32)
        self.model.library.mt_batch_logits(self._handle, ids.ctypes.data, logits.ctypes.data)
        return logits

    def reorder(self, rows: NDArray[np.integer[Any]]) -> None:
        """Replace the state of each row r by the state of row rows[r], a row of the same sentence. `rows` is [R]."""
        assert len(rows) == self.rows
        rows = np.ascontiguousarray(rows, np.int64)
        self.model.library.mt_batch_reorder(self._handle, rows.ctypes.data)
