"""Results of the Python API. This module does not import torch."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mt.scoring.confidence import DOUBTFUL
from mt.text.alignment import Link, Range


@dataclass(frozen=True)
class ExplainOptions:
    """Explanations to compute for each sentence. They cost one teacher-forced pass of the model per sentence."""

    alignment: bool = False
    attention: int = 0  # maximum number of weights in the attention maps of one text

    def __bool__(self) -> bool:
        return self.alignment or self.attention > 0


@dataclass(frozen=True, repr=False)
class Alternative:
    """One translation of an n-best list.

    `score` is the log-probability divided by the length penalty. For a text of several sentences, `log_probability` is
    the sum over the sentences, `score` the mean weighted by tokens. `pieces` are the model's output, from which `text`
    may differ, as by restored spans. If `text` comes from a translation memory, `match` is the score of the match.
    Known for the best translation only: `omitted`, the words of the source that are probably missing, and `copied`,
    the words of the source that the model does not know and that `text` contains unchanged.
    """

    text: str
    score: float
    log_probability: float
    pieces: tuple[str, ...]
    piece_log_probabilities: tuple[float, ...]  # for each sentence, one per piece and one for EOS
    match: float | None = None
    omitted: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Alternative({self.text!r}, score={self.score:.2f})"


def with_text(alternative: Alternative, text: str) -> Alternative:
    """Return `alternative` with another text, or itself if it has this text."""
    return alternative if text == alternative.text else replace(alternative, text=text)


@dataclass(frozen=True)
class AttentionMap:
    """Cross-attention of one sentence, from its T target pieces to its S source pieces.

    `weights` has the shape [L][H][T][S], with L layers and H heads. Both piece lists are SentencePiece pieces that end
    with `</s>`. If the model has tags, the source begins with the tag of the target language. Each row of `weights`
    sums to 1, except for rounding.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    weights: list[list[list[list[float]]]]


@dataclass(frozen=True, repr=False)
class SentenceTranslation:
    """A sentence of a text, or a part of a long sentence, without surrounding white space.

    `alternatives` is the n-best list, best first. `text`, `score` and `match` are those of the best alternative. All
    ranges, including those in `links`, count characters of the whole source text or the whole translation. `links` are
    in target order. `confidence` is the expected sentence chrF from 0 to 1, or None if the model has no confidence
    data. It is also None if the source is unlike the training text of the model; `unfamiliar` is true then. `links` and
    `attention` are set only if ExplainOptions request them. If the model wrote nothing, or knows no letter of the
    sentence, `untranslated` is true and `text` is the source. `omitted` and `copied` are those of the best alternative.
    """

    source: str
    alternatives: tuple[Alternative, ...]
    source_range: Range
    target_range: Range
    confidence: float | None = None
    links: tuple[Link, ...] = ()
    attention: AttentionMap | None = None
    untranslated: bool = False
    unfamiliar: bool = False
    omitted: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()

    @property
    def doubt(self) -> str:
        """The reason for which a reader should check the sentence, or ""."""
        if self.untranslated or self.unfamiliar:
            return "not translated" if self.untranslated else "unlike the training text"
        quality = round(100 * (1 if self.confidence is None else self.confidence), 1)
        return f"quality {quality:.0f}" if quality < DOUBTFUL else ""

    @property
    def text(self) -> str:
        return self.alternatives[0].text

    @property
    def score(self) -> float:
        return self.alternatives[0].score

    @property
    def match(self) -> float | None:
        return self.alternatives[0].match

    def __repr__(self) -> str:
        return f"SentenceTranslation({self.source!r} -> {self.text!r}{_metrics(self)})"


def _metrics(translated: "SentenceTranslation | Translation") -> str:
    confidence = "" if translated.confidence is None else f", confidence={translated.confidence:.2f}"
    others = f", {len(translated.alternatives)} alternatives" if len(translated.alternatives) > 1 else ""
    return f", score={translated.score:.2f}{confidence}{others}"


def joint_confidence(one: float | None, other: float | None) -> float | None:
    """Return the confidence of a translation by two models in turn: the product, as if errors were independent."""
    return None if one is None or other is None else one * other


def translated_again(first: SentenceTranslation, second: Sequence[SentenceTranslation]) -> SentenceTranslation:
    """Return the sentence `first`, whose translation a second model has translated into the sentences `second`.

    The alternatives, the range in the target and the links are those of `second[0]`. The attention is None, because the
    second model has not read the source.
    """
    return replace(
        second[0],
        source=first.source,
        source_range=first.source_range,
        confidence=joint_confidence(first.confidence, mean_confidence(second)),
        attention=None,
        unfamiliar=first.unfamiliar or second[0].unfamiliar,
        untranslated=first.untranslated or any(sentence.untranslated for sentence in second),
        omitted=(first.source,) if any(sentence.omitted for sentence in second) else first.omitted,
        copied=first.copied,
    )


def mean_confidence(sentences: Iterable[SentenceTranslation]) -> float | None:
    """Return the mean confidence of sentences, weighted by source characters; None if no sentence has a confidence."""
    known = [(sentence.confidence, len(sentence.source)) for sentence in sentences if sentence.confidence is not None]
    return sum(value * length for value, length in known) / sum(length for _, length in known) if known else None


def mean_match(sentences: Iterable[SentenceTranslation]) -> float | None:
    """Return the mean translation memory score (`match`) of sentences, weighted by source characters.

    The score of a sentence without a match is 0. Return None if no sentence has a match.
    """
    scores = [(sentence.match, len(sentence.source)) for sentence in sentences]
    if all(score is None for score, _ in scores):
        return None
    return sum((score or 0.0) * size for score, size in scores) / sum(size for _, size in scores)


@dataclass(frozen=True)
class SentenceReport:
    """A finished sentence of a text. Other sentences of the text may be unfinished.

    `text` is the translation of the sentence. `before` is the text of the translation between the previous sentence and
    this sentence. `after` is the text of the translation after the last sentence; it is empty in all reports except the
    last. The concatenation of `before + text + after` of all reports is the translation of the text.
    """

    source_range: Range
    target_range: Range
    before: str
    text: str
    after: str
    confidence: float | None = None


@dataclass(frozen=True, repr=False)
class Translation:
    """The translation of a text: its n-best list, best first. `text` and `score` are those of the best alternative.

    Alternative n of a text of several sentences consists of alternative n of each sentence. A sentence with fewer
    alternatives contributes its last alternative. `sentences` omits sentences that contain nothing to translate.
    """

    alternatives: tuple[Alternative, ...]
    sentences: Sequence[SentenceTranslation]

    @property
    def text(self) -> str:
        return self.alternatives[0].text

    @property
    def score(self) -> float:
        return self.alternatives[0].score

    @property
    def confidence(self) -> float | None:
        """Mean confidence of the sentences (`mean_confidence`)."""
        return mean_confidence(self.sentences)

    def __repr__(self) -> str:
        several = f", {len(self.sentences)} sentences" if len(self.sentences) > 1 else ""
        return f"Translation({self.text!r}{_metrics(self)}{several})"


@dataclass(frozen=True)
class Failure:
    """Result of a stream for a text that could not be translated. `problem` is the reason."""

    source: str
    problem: str
