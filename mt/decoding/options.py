"""Search options of one sentence. This module does not import torch."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Self
from zlib import crc32

from mt.errors import RequestError, problems

MIN_TEMPERATURE = 1e-3
"""Lower bound of `temperature`, so that float32 can represent the resulting scores."""


PRUNING_MARGIN = 2.5
"""Nats by which a live hypothesis may be worse than the best one of its step, if one translation is wanted (Freitag and
Al-Onaizan 2017, section 3). docs/experiments/search.md has what it saves."""


class Normalization(StrEnum):
    """Divisor of the log-probability of a hypothesis with n tokens; alpha is the option `length_penalty`."""

    LENGTH = "length"  # n ** alpha
    GNMT = "gnmt"  # ((5 + n) / 6) ** alpha: Wu et al. 2016, equation 14


@dataclass(frozen=True)
class SpecialIds:
    """Ids of the special tokens. Of these, a search produces only `eos`."""

    pad: int = 0
    unk: int = 1
    bos: int = 2
    eos: int = 3


@dataclass(frozen=True)
class SearchOptions:
    """Search options of one sentence. All lengths are numbers of target tokens and include the final EOS.

    For a source of S ids, including EOS and language tag, the maximum length of a hypothesis is
        min(`max_length_factor` * S + `max_length_offset`, `max_length`)
    If `min_length` exceeds it, the maximum takes precedence.

    `beam_size` 1 is greedy search. With `sample`, `n_best` translations are drawn and `beam_size` is ignored; only
    searches in torch can draw. `no_repeat_ngram` 0 has no effect.

    Raises:
        RequestError: A value is not accepted. The message lists all such values.
    """

    beam_size: int = 5
    n_best: int = 1
    length_penalty: float = 1.0
    normalization: Normalization = Normalization.LENGTH
    max_length_factor: float = 2.0
    max_length_offset: int = 10
    max_length: int = 512
    min_length: int = 0
    no_repeat_ngram: int = 0
    sample: bool = False
    temperature: float = 1.0
    seed: int = 0

    def of(self, source: Sequence[int]) -> Self:
        """Return the options to use for `source`. Without `sample`, they are unchanged.

        With `sample`, `seed` is combined with a hash of `source`. If all sentences had the same seed, they would be
        drawn with the same random numbers and would begin with similar tokens.
        """
        if not self.sample:
            return self
        return replace(self, seed=self.seed ^ crc32(repr(tuple(source)).encode()))

    def __post_init__(self) -> None:
        invalid = list(self._type_problems())
        invalid = invalid or [*self._length_problems(), *self._search_problems(), *self._sampling_problems()]
        if invalid:
            raise RequestError(problems("the search options cannot be used", invalid))

    def _type_problems(self) -> Iterator[str]:
        for field in fields(self):
            value, default = getattr(self, field.name), field.default
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if isinstance(default, bool | str):
                if not isinstance(value, type(default)):
                    yield f"{field.name} is {value!r}; accepted: {type(default).__name__}"
            elif not number or (isinstance(default, int) and value != int(value)):
                yield f"{field.name} is {value!r}; accepted: a {'whole ' if isinstance(default, int) else ''}number"

    def _length_problems(self) -> Iterator[str]:
        if not 0 <= self.max_length_factor < math.inf:
            yield f"max_length_factor is {self.max_length_factor}; accepted: a number of at least 0"
        if self.max_length_offset < 0:
            yield f"max_length_offset is {self.max_length_offset}; accepted: at least 0"
        if self.max_length < 1:
            yield f"max_length is {self.max_length}; accepted: at least 1, since EOS counts"
        if not 0 <= self.min_length <= self.max_length:
            yield f"min_length is {self.min_length}; accepted: from 0 to max_length, {self.max_length}"

    def _search_problems(self) -> Iterator[str]:
        if self.beam_size < 1:
            yield f"beam_size is {self.beam_size}; accepted: at least 1"
        if self.n_best < 1 or (self.n_best > max(1, self.beam_size) and not self.sample):
            yield f"n_best is {self.n_best}; accepted: from 1 to beam_size, {self.beam_size} (any number with sample)"
        if not 0 <= self.length_penalty < math.inf:
            yield f"length_penalty is {self.length_penalty}; accepted: a number of at least 0"
        if self.no_repeat_ngram < 0:
            yield f"no_repeat_ngram is {self.no_repeat_ngram}; accepted: at least 0"

    def _sampling_problems(self) -> Iterator[str]:
        if not MIN_TEMPERATURE <= self.temperature < math.inf:
            yield f"temperature is {self.temperature}; accepted: a number of at least {MIN_TEMPERATURE}"
        if not 0 <= self.seed < 2**32:
            yield f"seed is {self.seed}; accepted: from 0 to 2**32 - 1"
        if not self.sample and self.temperature != 1:
            yield f"temperature is {self.temperature} and sample is false; accepted: 1, or sample"

    @property
    def beams(self) -> bool:
        """True if the search is a beam search, False for greedy search and sampling."""
        return not self.sample and self.beam_size > 1

    @property
    def rows(self) -> int:
        """Number of rows that one sentence has in a batch."""
        return self.n_best if self.sample else self.beam_size

    @property
    def margin(self) -> float:
        """PRUNING_MARGIN, or infinity if several translations are wanted, which would have few rivals."""
        return PRUNING_MARGIN if self.n_best == 1 else math.inf

    def longest(self, source_length: int, prefix_length: int = 0) -> int:
        """Return the maximum number of tokens of a translation, with EOS.

        It is large enough for a forced prefix of `prefix_length` tokens and EOS, but never above `max_length`.
        """
        limit = int(self.max_length_factor * source_length) + self.max_length_offset
        return min(max(limit, prefix_length + 1), self.max_length)
