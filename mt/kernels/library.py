"""The compiled encoder-decoder for CPUs (cpu/*.hpp): weights in float32 or int8, one thread a batch.

It is a fast twin of mt/model, mt/decoding/beam.py and their cache. Long calls leave the interpreter's lock, so batches
of one model decode in as many threads at once. Nothing here synchronises: a batch belongs to one thread at a time.
"""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from ctypes import POINTER, byref, c_char_p, c_double, c_float, c_int, c_int32, c_int64, c_uint8, c_void_p
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mt.config import ModelConfig
from mt.kernels.build import find_libraries
from mt.kernels.shortlist import Shortlist

INTERFACE = 4
QUICK = ("mt_batch_new", "mt_batch_free", "mt_batch_extend", "mt_batch_select", "mt_batch_results")
"""Calls that are over before another thread could take the interpreter's lock, so that they keep it."""
ACTIVATIONS = {"relu": 0, "gelu": 1, "swish": 2}


class Config(ctypes.Structure):
    """As in cpu/model.hpp."""

    _fields_ = [
        *((name, c_int32) for name in ("d_model", "d_ff", "heads", "encoder_layers", "decoder_layers", "vocabulary")),
        *((name, c_int32) for name in ("positions", "pre_norm", "activation", "int8", "pad", "unk", "bos", "eos")),
        *((name, c_float) for name in ("scale", "norm_epsilon")),
    ]


class Wish(ctypes.Structure):
    """What a caller asks of a sentence, as in cpu/search.hpp. Lengths count tokens with EOS."""

    _fields_ = [
        *((name, c_int32) for name in ("longest", "shortest", "n_best", "gnmt")),
        ("length_penalty", c_double),
    ]


@dataclass(frozen=True)
class Found:
    """A hypothesis: ids without BOS and EOS, its score, and log-probabilities, the last of them that of EOS."""

    tokens: tuple[int, ...]
    score: float
    log_probability: float
    each: tuple[float, ...]


SIGNATURES: dict[str, tuple[type | None, list[type]]] = {
    "mt_interface": (c_int, []),
    "mt_problem": (c_char_p, []),
    "mt_keep_memory": (None, []),
    "mt_tensors_new": (c_void_p, []),
    "mt_tensors_free": (None, [c_void_p]),
    "mt_tensors_add": (c_int, [c_void_p, c_char_p, c_void_p, c_int64, c_int64]),
    "mt_model_new": (c_void_p, [POINTER(Config), c_void_p]),
    "mt_model_free": (None, [c_void_p]),
    "mt_shortlist_new": (c_void_p, [c_void_p, c_int, *[c_void_p] * 3]),
    "mt_shortlist_free": (None, [c_void_p]),
    "mt_batch_new": (c_void_p, [c_void_p, c_int, c_void_p]),
    "mt_batch_free": (None, [c_void_p]),
    "mt_batch_join": (c_int, [c_void_p, c_int, c_void_p, c_void_p, POINTER(Wish)]),
    "mt_batch_extend": (c_int, [c_void_p, c_void_p]),
    "mt_batch_select": (c_int, [c_void_p, c_int, c_void_p]),
    "mt_batch_logits": (c_int, [c_void_p, c_void_p, c_void_p]),
    "mt_batch_reorder": (c_int, [c_void_p, c_void_p]),
    "mt_batch_advance": (c_int, [c_void_p, c_int, c_void_p]),
    "mt_batch_results": (c_int, [c_void_p, c_int, c_int, *[c_void_p] * 5]),
}


@lru_cache(maxsize=1)
def load_library() -> ctypes.CDLL | None:
    """The library for this processor, or None where there is none and no compiler to make it."""
    for path in find_libraries():
        if (library := open_library(path)) is not None:
            library.mt_keep_memory()
            return library
    return None


def open_library(path: Path) -> ctypes.CDLL | None:
    """A library whose calls raise RuntimeError where they fail; None if it is damaged or has another interface."""
    try:
        library, quick = ctypes.CDLL(str(path)), ctypes.PyDLL(str(path))
        if library.mt_interface() != INTERFACE:
            return None
        for name, (result, arguments) in SIGNATURES.items():
            function = getattr(quick if name in QUICK else library, name)
            setattr(library, name, function)
            function.restype, function.argtypes = result, arguments
            if result in (c_int, c_void_p):
                function.errcheck = _raising(library)
    except (OSError, AttributeError):  # no library at all, or one that lacks a function
        return None
    return library


def _raising(library: ctypes.CDLL) -> Callable[[Any, Any, Any], Any]:
    def check(result: Any, function: Any, arguments: Any) -> Any:
        if result is None or result < 0:
            raise RuntimeError(library.mt_problem().decode())
        return result

    return check


class CpuModel:
    """Packed weights, shared by any number of batches."""

    def __init__(
        self,
        library: ctypes.CDLL,
        config: ModelConfig,
        weights: Mapping[str, Tensor],
        special: Sequence[int],
        int8: bool,
    ) -> None:
        """`weights` is a Transformer's state_dict with its `embedding.positions`; `special` are pad, unk, bos, eos."""
        self.library = library
        self.d_model, self.decoder_layers = config.d_model, config.decoder_layers
        self.vocabulary_size = weights["embedding.tokens.weight"].shape[0]
        tensors = {name: tensor.detach().float().contiguous() for name, tensor in weights.items()}
        pad, unk, bos, eos = special
        described = Config(
            d_model=config.d_model,
            d_ff=config.d_ff,
            heads=config.heads,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
            vocabulary=self.vocabulary_size,
            positions=tensors["embedding.positions"].shape[0],
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
        listed = library.mt_tensors_new()
        try:
            for name, tensor in tensors.items():
                rows = tensor.shape[0] if tensor.dim() > 1 else 1
                library.mt_tensors_add(listed, name.encode(), tensor.data_ptr(), rows, tensor.shape[-1])
            self.handle = library.mt_model_new(byref(described), listed)
        finally:
            library.mt_tensors_free(listed)

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self.library.mt_model_free(self.handle)


class CpuShortlist:
    """A shortlist for a model, shared by any number of batches; it holds the output weights once more."""

    def __init__(self, model: CpuModel, shortlist: Shortlist) -> None:
        assert shortlist.vocabulary_size == model.vocabulary_size
        self.model = model
        always, offsets, allowed = (each.contiguous() for each in shortlist.tensors().values())
        self.handle = model.library.mt_shortlist_new(
            model.handle, len(always), always.data_ptr(), offsets.data_ptr(), allowed.data_ptr()
        )

    def __del__(self) -> None:
        if getattr(self, "handle", None):
            self.model.library.mt_shortlist_free(self.handle)


class CpuBatch:
    """Sentences in flight with `beams` rows each. Drive it by `advance`, or by `logits` and `reorder`, not by both.

    With a shortlist, `advance` finds translations of its tokens, with log-probabilities as if there were no others.
    """

    def __init__(self, model: CpuModel, beams: int, shortlist: CpuShortlist | None = None) -> None:
        self.model = model
        self.shortlist = shortlist
        self.beams = beams
        self._longest: list[int] = []  # tokens that a translation may have, by sentence
        self._n_best: list[int] = []
        self._handle = model.library.mt_batch_new(model.handle, beams, shortlist and shortlist.handle)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.model.library.mt_batch_free(self._handle)

    @property
    def sentences(self) -> int:
        return len(self._longest)

    def join(self, sources: Sequence[Sequence[int]], wishes: Sequence[Wish]) -> None:
        """Encode sources, ids that end with EOS, and append their sentences."""
        ids = [id for source in sources for id in source]
        self.model.library.mt_batch_join(
            self._handle,
            len(sources),
            (c_int32 * len(ids))(*ids),
            (c_int32 * len(sources))(*map(len, sources)),
            (Wish * len(wishes))(*wishes),
        )
        self._longest += [wish.longest for wish in wishes]
        self._n_best += [wish.n_best for wish in wishes]

    def extend(self, other: "CpuBatch") -> None:
        """Append another batch's sentences; it is empty then."""
        assert (self.beams, self.model, self.shortlist) == (other.beams, other.model, other.shortlist)
        self.model.library.mt_batch_extend(self._handle, other._handle)
        self._longest += other._longest
        self._n_best += other._n_best
        other._longest, other._n_best = [], []

    def select(self, places: Sequence[int]) -> None:
        """Keep these sentences, in this order."""
        self.model.library.mt_batch_select(self._handle, len(places), (c_int32 * len(places))(*places))
        self._longest = [self._longest[place] for place in places]
        self._n_best = [self._n_best[place] for place in places]

    def advance(self, steps: int) -> tuple[int, list[int]]:
        """Up to so many steps, until one of them finishes a sentence: steps taken, places of all that are finished."""
        finished = (c_uint8 * self.sentences)()
        taken = self.model.library.mt_batch_advance(self._handle, steps, finished)
        return taken, [place for place, over in enumerate(bytes(finished)) if over]

    def results(self, place: int) -> list[Found]:
        """The hypotheses of a finished sentence, best first; none if its scores were not numbers."""
        count, room = self._n_best[place], self._longest[place]
        lengths, tokens = (c_int32 * count)(), (c_int32 * (count * room))()
        each = (c_float * (count * room))()
        scores, totals = (c_float * count)(), (c_float * count)()
        found = self.model.library.mt_batch_results(self._handle, place, room, lengths, tokens, each, scores, totals)
        return [
            Found(
                tuple(tokens[i * room : i * room + lengths[i]]),
                scores[i],
                totals[i],
                tuple(each[i * room : i * room + lengths[i] + 1]),
            )
            for i in range(found)
        ]

    def logits(self, tokens: Tensor) -> Tensor:
        """Append tokens, int64 [R], to the rows: logits of the next ones, [R, V]."""
        assert len(tokens) == self.sentences * self.beams
        fed = tokens.to(torch.int32).contiguous()
        out = torch.empty(len(fed), self.model.vocabulary_size)
        self.model.library.mt_batch_logits(self._handle, fed.data_ptr(), out.data_ptr())
        return out

    def reorder(self, rows: Tensor) -> None:
        """Row r goes on from row rows[r], of the same sentence: int64 [R]."""
        assert len(rows) == self.sentences * self.beams
        rows = rows.contiguous()  # held by a name until the call returns
        self.model.library.mt_batch_reorder(self._handle, rows.data_ptr())
