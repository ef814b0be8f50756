"""What goes into the engine and what comes out: small and picklable, so that it can live in a thread or a process."""

from dataclasses import dataclass

from mt.decoding.options import SearchOptions
from mt.decoding.rows import Hypothesis
from mt.decoding.wording import Wording


@dataclass(frozen=True)
class Request:
    """One sentence to translate. `source` ends with EOS; `prefix` is what its translation must begin with.
    A `wording`, for which `options` must ask for a beam search, says which words it must hold.

    Requests of one caller are served in order; callers take turns.
    """

    id: int
    source: tuple[int, ...]
    options: SearchOptions
    prefix: tuple[int, ...] = ()
    caller: int = 0
    wording: Wording | None = None


@dataclass(frozen=True)
class Result:
    """The hypotheses of a request, best first; or, if there are none, the problem that it alone met."""

    id: int
    hypotheses: tuple[Hypothesis, ...]
    problem: str = ""
