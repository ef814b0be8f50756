"""What a caller may ask of a search: one frozen object a sentence, which checks itself."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self
from zlib import crc32

from mt.errors import RequestError, problems

LEAST = 1e-3
"""Of what scores are divided by: float32 must hold the result."""


class Normalization(StrEnum):
    """What the log-probability of a hypothesis of n tokens is divided by; alpha is the length penalty."""

    LENGTH = "length"  # n ** alpha
    GNMT = "gnmt"  # ((5 + n) / 6) ** alpha: Wu et al. 2016, equation 14


@dataclass(frozen=True)
class SpecialIds:
    """The ids that a search must know. None of them but `eos` is ever produced."""

    pad: int = 0
    unk: int = 1
    bos: int = 2
    eos: int = 3


@dataclass(frozen=True)
class SearchOptions:
    """How to search. Every length counts target tokens with the final EOS, as the probability of a sentence does.

    A hypothesis has at most `max_length_factor * S + max_length_offset` tokens for a source of S ids (its EOS and
    language tag counted), never more than `max_length`; at least `min_length_factor * S` and `min_length`.
    `beam_size` 1 is greedy search. With `sample`, `n_best` translations are drawn and `beam_size` has no meaning.
    `top_k` 0, `top_p` 1, `no_repeat_ngram` 0 and `repetition_penalty` 1 are off.

    Raises RequestError, which lists every value that cannot be used.
    """

    beam_size: int = 5
    n_best: int = 1
    length_penalty: float = 1.0
    normalization: Normalization = Normalization.LENGTH
    max_length_factor: float = 2.0
    max_length_offset: int = 10
    max_length: int = 512
    min_length_factor: float = 0.0
    min_length: int = 0
    no_repeat_ngram: int = 0
    repetition_penalty: float = 1.0
    sample: bool = False
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 0

    def of(self, source: Sequence[int]) -> Self:
        """These for a sentence. If it samples, with a seed of its own: else all sentences would be drawn by the same
        numbers, and those of a corpus begin alike."""
        own = crc32(repr(tuple(source)).encode()) >> 1  # a seed has 63 bits
        return replace(self, seed=self.seed ^ own << 32) if self.sample else self

    def __post_init__(self) -> None:
        found = [*self._length_problems(), *self._search_problems(), *self._sampling_problems()]
        if found:
            raise RequestError(problems("the search options cannot be used", found))

    def _length_problems(self) -> Iterator[str]:
        if not 0 <= self.max_length_factor < math.inf:
            yield f"max_length_factor is {self.max_length_factor}: a number of at least 0"
        if self.max_length_offset < 0:
            yield f"max_length_offset is {self.max_length_offset}: at least 0"
        if self.max_length < 1:
            yield f"max_length is {self.max_length}: at least 1, for the end of the sentence counts"
        if not 0 <= self.min_length_factor <= self.max_length_factor:
            yield f"min_length_factor is {self.min_length_factor}: from 0 to max_length_factor"
        if not 0 <= self.min_length <= self.max_length:
            yield f"min_length is {self.min_length}: from 0 to max_length, {self.max_length}"

    def _search_problems(self) -> Iterator[str]:
        if self.beam_size < 1:
            yield f"beam_size is {self.beam_size}: at least 1"
        if self.n_best < 1 or (self.n_best > self.beam_size and not self.sample):
            yield f"n_best is {self.n_best}: from 1 to beam_size, {self.beam_size}, unless sample is on"
        if not 0 <= self.length_penalty < math.inf:
            yield f"length_penalty is {self.length_penalty}: a number of at least 0"
        if self.no_repeat_ngram < 0:
            yield f"no_repeat_ngram is {self.no_repeat_ngram}: at least 0"
        if not LEAST <= self.repetition_penalty < math.inf:
            yield f"repetition_penalty is {self.repetition_penalty}: a number of at least {LEAST}"

    def _sampling_problems(self) -> Iterator[str]:
        if not LEAST <= self.temperature < math.inf:
            yield f"temperature is {self.temperature}: a number of at least {LEAST}"
        if self.top_k < 0:
            yield f"top_k is {self.top_k}: at least 0"
        if not 0 < self.top_p <= 1:
            yield f"top_p is {self.top_p}: above 0, at most 1"
        if not 0 <= self.seed < 2**63:
            yield f"seed is {self.seed}: from 0 to 2**63 - 1"
        if not self.sample and (self.temperature, self.top_k, self.top_p) != (1.0, 0, 1.0):
            yield "temperature, top_k and top_p act on samples only: set sample"

    @property
    def beams(self) -> bool:
        """Whether this asks for beam search, rather than greedy search or samples."""
        return not self.sample and self.beam_size > 1

    @property
    def rows(self) -> int:
        """Rows that one sentence takes in a batch."""
        return self.n_best if self.sample else self.beam_size

    def longest(self, source_length: int, prefix_length: int = 0) -> int:
        """The most tokens that a translation may have. A prefix that is forced always fits."""
        wanted = int(self.max_length_factor * source_length) + self.max_length_offset
        return min(max(wanted, prefix_length + 1), self.max_length)

    def shortest(self, source_length: int) -> int:
        """The fewest tokens that a translation may have; the longest comes first where the two disagree."""
        return max(int(self.min_length_factor * source_length), self.min_length)
