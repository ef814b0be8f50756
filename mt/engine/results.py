"""What a translation is. Nothing here needs torch, for those who only pass it on."""

from dataclasses import dataclass

from mt.text.linking import Link, Range


@dataclass(frozen=True)
class Insight:
    """What is to be told of each sentence beside its translation. It costs a forced pass of the model."""

    alignment: bool = False
    attention: bool = False

    def __bool__(self) -> bool:
        return self.alignment or self.attention


@dataclass(frozen=True)
class Alternative:
    """One translation of an n-best list; `score` is its log-probability divided by the length penalty.

    That of a text of several sentences puts theirs together: the sum of their log-probabilities, the mean of their
    scores weighted by tokens, and their pieces one after another. The pieces are those that the model wrote: `text` may
    also hold what was left out of its source, and be in capitals.
    """

    text: str
    score: float
    log_probability: float
    pieces: tuple[str, ...]
    piece_log_probabilities: tuple[float, ...]  # one a piece, and a last one for the end; of each sentence


@dataclass(frozen=True)
class AttentionMap:
    """Cross-attention: `weights` [layer][head][T][S] of each target piece on each source piece.

    Pieces are as SentencePiece writes them; those of the source begin with the tag of the target language, if the model
    has tags, and both end with `</s>`. In a row, weights add up to one, but for rounding.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: tuple[tuple[tuple[tuple[float, ...], ...], ...], ...]


@dataclass(frozen=True)
class SentenceTranslation:
    """A sentence of a text, or a part of one that was too long, without the white space around it.

    `source_range` and `target_range` are where it and its best translation stand, in characters of the whole text and
    of the whole translation; so are the ranges of `links`, in order of the translation. `confidence`, from 0 to 1, is
    the sentence chrF to expect of the translation (confidence.py); None if the model was not fitted to tell. Links and
    attention are there where an Insight asked for them.
    """

    source: str
    text: str
    score: float
    alternatives: tuple[Alternative, ...]
    source_range: Range
    target_range: Range
    confidence: float | None = None
    links: tuple[Link, ...] = ()
    attention: AttentionMap | None = None


@dataclass(frozen=True)
class Translation:
    """The best translation of a text, and the whole n-best list, of which it is the first.

    The n-th alternative of a text of several sentences puts together their n-th ones, or the last that one has.
    `sentences` leaves out those that hold nothing to translate. `confidence` is the mean of theirs, weighted by the
    characters of their sources.
    """

    text: str
    score: float
    alternatives: tuple[Alternative, ...]
    sentences: tuple[SentenceTranslation, ...]

    @property
    def confidence(self) -> float | None:
        known = [(each.confidence, len(each.source)) for each in self.sentences if each.confidence is not None]
        return sum(value * length for value, length in known) / sum(length for _, length in known) if known else None


@dataclass(frozen=True)
class Failure:
    """Stands in a stream for the translation of a text that the model fails on."""

    source: str
    problem: str
