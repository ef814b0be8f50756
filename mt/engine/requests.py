"""Requests and results of the engine: plain data."""

from dataclasses import dataclass

from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions
from mt.decoding.term_constraints import TermConstraints


@dataclass(frozen=True)
class Request:
    """One sentence to decode.

    `source` ends with EOS. Every hypothesis begins with the ids of `prefix`, which have the log-probability 0.
    `constraints` are words that every hypothesis must or must not contain; they require beam search. Requests of the
    same `caller` run in order, and callers take turns.
    """

    id: int
    source: tuple[int, ...]
    options: SearchOptions
    prefix: tuple[int, ...] = ()
    caller: int = 0
    constraints: TermConstraints | None = None


@dataclass(frozen=True)
class Result:
    """Hypotheses of the request with this `id`, best first. If there are none, `problem` is the reason."""

    id: int
    hypotheses: tuple[Hypothesis, ...]
    problem: str = ""
