"""Jobs and answers of the translation service, common to the LibreTranslate and DeepL routes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from mt.languages import Direction, full_tag
from mt.pipeline.results import SentenceTranslation, mean_confidence, mean_match
from mt.text.alignment import Range, without_objects
from mt.text.formality import Formality
from mt.text.markup import MarkupOptions
from mt.text.terms import Terms
from service.glossaries.store import glossary_direction
from service.workers.messages import NO_TERMS


class Format(StrEnum):
    """Format of the texts of a job."""

    TEXT = "text"
    HTML = "html"
    XML = "xml"


@dataclass
class Job:
    """Texts to translate, with options. If `source` is None, the language of each text is detected.

    A job does not change once it is complete.
    """

    texts: tuple[str, ...]
    source: str | None
    target: str
    format: Format = Format.TEXT
    markup: MarkupOptions = field(default_factory=MarkupOptions)  # for HTML and XML
    split_sentences: bool = True  # False: each text is one sentence
    beam_size: int | None = None  # None: the default of the model
    terms: Terms = NO_TERMS
    terms_of: Mapping[Direction, Terms] = field(default_factory=dict)  # in place of `terms`, for some languages
    formality: Formality | None = None
    memory: str = ""  # id of a translation memory
    memory_score: float = 1.0  # smallest score of a match of the memory that is used; 1: exact matches only
    model: str = ""  # name of a model; "" stands for the default models of the languages
    alternatives: int = 0  # number of alternatives beside each translation
    alignment: bool = False
    attention: int = 0  # maximum number of weights in the attention maps of one text
    caller: str = ""  # the engine serves callers in turn
    deadline: float | None = None  # a time of time.monotonic()
    waits: bool = False  # whether a stream waits while the queue is full
    repeated_after: float = math.inf  # time from which on a client that leaves is expected to send the job again

    def terms_from(self, source: str) -> Terms:
        """Return the terms for a text in the language `source`, which may have been detected."""
        if not self.terms_of:
            return self.terms
        return self.terms_of.get(glossary_direction(source, self.target), self.terms)

    @property
    def markup_options(self) -> MarkupOptions:
        """The options for markup, with the languages."""
        return replace(self.markup, languages=(self.source or "", full_tag(self.target)))


@dataclass(frozen=True)
class DetectedSource:
    """A detected language with its confidence from 0 to 1."""

    language: str
    confidence: float


@dataclass(frozen=True)
class Answer:
    """Translation of one text, markup included. `source` is the language of the text.

    If no models translate from this language to the target, `served` is False, and the text stays unchanged.

    The ranges in `sentences` are character offsets in the text and in its translation. If the text has markup,
    `sentences` is empty, and `segments` has the sentences.
    """

    text: str
    source: str
    detected: DetectedSource | None = None
    bridge: str = ""  # the language between two models, if no model translates directly
    models: tuple[str, ...] = ()  # names of the models that translated the text
    alternatives: tuple[str, ...] = ()
    sentences: Sequence[SentenceTranslation] = ()
    segments: tuple["Answer", ...] = ()  # answers for the segments of markup
    served: bool = True

    @property
    def confidence(self) -> float | None:
        """Expected quality from 0 to 1: 1 if the text needed no translation, None if the model cannot estimate it."""
        sentences = self.all_sentences
        return mean_confidence(sentences) if sentences else 1.0

    @property
    def untranslated(self) -> tuple[str, ...]:
        """Source sentences and unknown words that the translation contains unchanged, and clauses that it lacks."""
        return tuple(text for sentence in self.all_sentences for text in untranslated_parts(sentence))

    @property
    def match(self) -> float | None:
        """Mean score of the memory matches that the translation uses; None if it uses none."""
        return mean_match(self.all_sentences)

    @property
    def all_sentences(self) -> list[SentenceTranslation]:
        """The sentences of the text, or those of its segments. Their ranges count characters of their segment."""
        return [*self.sentences, *(sentence for segment in self.segments for sentence in segment.sentences)]


def untranslated_parts(sentence: SentenceTranslation) -> tuple[str, ...]:
    """Return the whole sentence if it stays unchanged, or else its missing clauses and its unknown words."""
    parts = (sentence.source,) if sentence.untranslated else (*sentence.omitted, *sentence.copied)
    return tuple(without_objects(part) for part in parts)


def percent(confidence: float | None) -> float | None:
    """Convert a confidence from 0 to 1 to LibreTranslate's scale from 0 to 100; None stays None."""
    return None if confidence is None else round(100 * confidence, 1)


def free_characters(answers: Iterable[Answer]) -> int:
    """Return the number of characters of the texts whose language is not served. They are not charged."""
    return sum(len(answer.text) for answer in answers if not answer.served)


@dataclass(frozen=True)
class StreamedSentence:
    """A finished sentence of a stream.

    The sentences of a text come in order. Their source ranges cover the whole text, and the concatenation of their
    translations is the whole translation: white space before a sentence belongs to that sentence, and white space at
    the end of the text belongs to the last sentence.
    """

    text: int  # index of the text in the job
    index: int  # index of the sentence in the text
    source: Range
    translation: str
    confidence: float | None
