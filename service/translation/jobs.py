"""What the service is asked and answers, whatever dialect the client speaks."""

from dataclasses import dataclass, field
from enum import StrEnum

from mt.engine.results import AttentionMap
from mt.text.markup import Link, MarkupOptions, Range
from mt.text.terms import Terms


class Format(StrEnum):
    """What the texts are written in."""

    TEXT = "text"
    HTML = "html"
    XML = "xml"


@dataclass(frozen=True)
class Wants:
    """What a client asks for beside the translation, for it costs something."""

    alternatives: int = 0
    alignment: bool = False
    attention: bool = False


@dataclass(frozen=True)
class Job:
    """Texts to translate. Without `source`, the language of each is detected."""

    texts: tuple[str, ...]
    source: str | None
    target: str
    format: Format = Format.TEXT
    markup: MarkupOptions = field(default_factory=MarkupOptions)  # for HTML and XML
    sentences: bool = False  # each text is one sentence already
    beam_size: int | None = None  # the model's own
    terms: Terms = field(default_factory=Terms)
    wants: Wants = field(default_factory=Wants)
    caller: str = ""  # whose turn it is
    deadline: float | None = None  # by time.monotonic()


@dataclass(frozen=True)
class Detected:
    language: str
    confidence: float  # 0 to 1


@dataclass(frozen=True)
class Sentence:
    """A sentence of an answer: where it stands in both texts, in characters."""

    source: Range
    target: Range
    confidence: float | None  # 0 to 1: how good the translation is likely to be
    alternatives: tuple[str, ...] = ()
    alignment: tuple[Link, ...] = ()  # (range of the source text, range of the translation)
    attention: AttentionMap | None = None


@dataclass(frozen=True)
class Answer:
    """The translation of one text. `sentences` is empty where the text was markup."""

    text: str
    source: str
    detected: Detected | None = None
    bridge: str = ""  # the language that it went through, if there is no direct model
    alternatives: tuple[str, ...] = ()
    confidence: float | None = None
    sentences: tuple[Sentence, ...] = ()


@dataclass(frozen=True)
class StreamedSentence:
    """A sentence that is ready. Those of a text come in order: their ranges join to the source, their texts to the
    translation, for what stands before a sentence, and after the last, is given with it."""

    text: int  # its number in the job
    index: int  # of the sentence, in the text
    source: Range
    translation: str
    confidence: float | None


@dataclass(frozen=True)
class StreamEnd:
    """What `translate` would have answered."""

    answers: tuple[Answer, ...]
