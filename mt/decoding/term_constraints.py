"""Lexical constraints of one translation, as automata over ids. This module does not import torch."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

UNLIMITED = 10_000  # more than the occurrences or steps of any translation


@dataclass(frozen=True, eq=False)
class TermConstraints:
    """Words that a translation must or must not contain: A automata with N nodes and M columns in total.

    An automaton accepts one word in all its forms and spellings. A column is a class of ids that the automata treat
    alike. Node 0, column 0 and id 0 are padding. A word is complete in a node for which `full` is True. An occurrence
    is counted when the next id shows that the word ends. P, F and E are the lengths of lists of ids.
    """

    columns: npt.NDArray[np.int16]  # [V] the column of each id
    following: npt.NDArray[np.int32]  # [N, M] the next node
    counts: npt.NDArray[np.bool_]  # [N, M] whether a word ends before an id of this column
    proposals: npt.NDArray[np.int32]  # [N, P] ids that continue a word in its usual spelling
    completions: npt.NDArray[np.int32]  # [N, F] ids that would complete a word
    full: npt.NDArray[np.bool_]  # [N] whether the word is complete
    begins: npt.NDArray[np.int32]  # [A, P] first ids of a word in its usual spelling
    costs: npt.NDArray[np.float32]  # [A, P] added to the log-probabilities of `begins`
    cues: npt.NDArray[np.int32]  # [A, E] first ids of the words that the required word replaces
    starts: tuple[int, ...]  # [A] nodes at the start of a word; node starts[a] + 1 is inside of another word
    needed: tuple[int, ...]  # [A] minimum number of occurrences
    allowed: tuple[int, ...]  # [A] maximum number of occurrences
    endings: tuple[float, ...]  # [A] added to the log-probability of continuing a complete word
    patience: int = (
        UNLIMITED  # steps after which hypotheses that lack a word cannot delay the end, if one with all words exists
    )
    threshold: float = math.inf  # difference of log-probabilities at which hypotheses are dropped
