"""Messages between the service and its worker processes, which are sent as pickles of lists of messages."""

import pickle
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from hashlib import blake2b
from operator import add, sub
from pathlib import Path

from cachetools import LRUCache

from mt.decoding.options import SearchOptions
from mt.languages import Direction, DirectionSet
from mt.pipeline.results import Alternative, SentenceReport, SentenceTranslation, Translation
from mt.text.alignment import Range
from mt.text.formality import Formality
from mt.text.fuzzy_match import MemoryMatch
from mt.text.terms import Terms

CHARACTERS_PER_SENTENCE = 80  # average of typical texts
MAX_KNOWN_BYTES = 64_000_000  # of the options that a worker keeps; the latest options are always kept
TERM_BYTES = 1300  # of a term and its entry in the index of terms, which the options keep once it is built
NO_TERMS = Terms()
PART_CHARACTERS = 500_000  # of all alternatives of a translation in one pickle
PART_SENTENCES = 50  # sentences of a translation in one pickle; the service takes about 1 ms to read them


@dataclass(frozen=True)
class ModelSetup:
    """A model directory, and a worker's options for loading the model."""

    model: Path
    device: str = "auto"
    dtype: str = "auto"
    threads: int | None = None
    backend: str = "auto"
    workers_per_gpu: int | None = None  # by default chosen by the free memory of the GPU


@dataclass(frozen=True)
class SourceText:
    """A text to translate. The translation contains the characters of the `protected` ranges unchanged.

    `matches` are the translation memory's matches for the text and for its sentences. `marked` are the ranges of marks,
    such as tags, around words.
    """

    text: str
    protected: tuple[Range, ...] = ()
    aligned: bool = False  # whether the caller requests a word alignment
    matches: tuple[MemoryMatch, ...] = ()
    marked: tuple[Range, ...] = ()

    @property
    def blank(self) -> bool:
        """True if the text holds neither a letter nor a digit."""
        return not any(map(str.isalnum, self.text))

    @property
    def cost(self) -> int:
        """Estimated number of sentences."""
        return 1 + len(self.text) // CHARACTERS_PER_SENTENCE

    def key(self, context: bytes) -> bytes:
        """Return a hash of the text and of `context`, which represents the options. Equal inputs have equal keys."""
        fields = repr((self.text, self.protected, self.aligned, self.matches, self.marked))
        return blake2b(context + fields.encode("utf-8", "surrogatepass"), digest_size=16).digest()


@dataclass(frozen=True)
class TranslateOptions:
    """Options of a translation. If a search option is None, the model's own value applies."""

    direction: Direction
    beam_size: int | None = None
    n_best: int | None = None
    split_sentences: bool = True  # False: each text is one sentence
    terms: Terms = NO_TERMS
    attention: int = 0  # maximum number of weights in the attention maps of one text
    formality: Formality | None = None
    model: str = ""  # name of the model; "" stands for the default model of the direction

    @cached_property
    def digest(self) -> bytes:
        """Digest of the options. Equal options have equal digests.

        The first access takes time linear in the size of the glossary. A pickled copy keeps the computed value.
        """
        return blake2b(repr(self).encode("utf-8", "surrogatepass"), digest_size=16).digest()

    @cached_property
    def packed(self) -> bytes:
        """Pickle of the options and their digest. The first access takes as long as that of the digest."""
        assert self.digest
        return pickle.dumps(self, pickle.HIGHEST_PROTOCOL)

    def search(self, defaults: SearchOptions) -> SearchOptions:
        """Return the options for the search: those that are set here, and for the rest the model's `defaults`.

        Raises: RequestError if the result is not valid.
        """
        n_best = defaults.n_best if self.n_best is None else self.n_best
        beam_size = max(defaults.beam_size, n_best) if self.beam_size is None else self.beam_size
        if (n_best, beam_size) == (defaults.n_best, defaults.beam_size):
            return defaults  # which are valid; checking all options takes as long as preparing a sentence
        return replace(defaults, n_best=n_best, beam_size=beam_size)


@dataclass(frozen=True)
class Translate:
    """A text to translate. The worker answers with TextDone or TextFailed.

    Texts of different callers are translated in turn. If `report` is true, the worker also sends a TextProgress
    whenever sentences are finished.
    """

    id: int
    text: SourceText
    options: TranslateOptions
    caller: str = ""
    report: bool = False

    @property
    def key(self) -> bytes:
        """Hash of the text and its options. Messages with equal keys are equal work, even if their callers differ."""
        return self.text.key(self.options.digest)


@dataclass(frozen=True)
class Cancel:
    """Message that the answer to a text is no longer needed."""

    id: int


@dataclass(frozen=True)
class Ping:
    """Message that the worker must send a Heartbeat before the next decoder step."""


@dataclass(frozen=True)
class Close:
    """Message that the worker must stop and drop unfinished texts."""


@dataclass(frozen=True)
class Ready:
    """Sent once the model is loaded and has passed a trial translation."""

    directions: DirectionSet
    options: SearchOptions
    version: str  # digest of the files of the model
    devices: tuple[str, ...]  # the device of each worker that the setup allows, beginning with that of this worker
    capacity: int  # number of sentences that the engine decodes at a time
    no_gpu: str = ""  # the reason if the CPU translates although the setup allows a GPU
    about: str = ""  # what the model was trained on
    memory: int = 0  # bytes that the worker uses; 0 if unknown


@dataclass(frozen=True)
class LoadFailed:
    """Sent if the model cannot be loaded."""

    message: str


@dataclass(frozen=True)
class TextProgress:
    """The sentences of a text that have been finished since the text's previous TextProgress, in order."""

    id: int
    sentences: tuple[SentenceReport, ...]


@dataclass(frozen=True)
class TextSentences:
    """The next sentences of a finished translation that has more than PART_SENTENCES. TextDone has the last ones.

    If the translation has more than PART_CHARACTERS, the same holds for its alternatives.
    """

    id: int
    sentences: tuple[SentenceTranslation, ...]
    alternatives: tuple[Alternative, ...] = ()


@dataclass(frozen=True)
class TextDone:
    """The translation of a text, without the sentences and alternatives that precede it in TextSentences."""

    id: int
    translation: Translation


@dataclass(frozen=True)
class TextFailed:
    """Sent for a text that could not be translated. `code` is the code of a ServiceError.

    `message` is for the client. For an internal error, it is the line of code instead.
    """

    id: int
    code: str
    message: str


@dataclass(frozen=True)
class WorkCounts:
    """Counters of a worker's work since its start."""

    steps: int = 0  # decoder steps
    rows: int = 0  # decoder rows of all these steps
    source_tokens: int = 0
    target_tokens: int = 0

    def __add__(self, other: "WorkCounts") -> "WorkCounts":
        return WorkCounts(*map(add, astuple(self), astuple(other)))

    def __sub__(self, other: "WorkCounts") -> "WorkCounts":
        return WorkCounts(*map(sub, astuple(self), astuple(other)))


@dataclass(frozen=True)
class Heartbeat:
    """Periodic report of a worker."""

    work: WorkCounts
    thread_steps: tuple[int, ...] = ()  # decoder steps of each engine thread since its start; -1 for an idle thread


@dataclass(frozen=True)
class WorkerStopped:
    """The last message from a worker. `problem` is empty if the worker was told to stop."""

    problem: str


TextAnswer = TextProgress | TextDone | TextFailed
ToWorker = Translate | Cancel | Ping | Close
FromWorker = Ready | LoadFailed | TextSentences | TextAnswer | Heartbeat | WorkerStopped
Deliver = Callable[[Sequence[FromWorker]], None]
"""Function that is called with the messages that a worker has sent."""
OnSentence = Callable[[SentenceReport], None]
"""Function that is called with each finished sentence of a text, in order."""


class OptionsMemory:
    """Translation options that one end of a connection has sent or received.

    Later messages refer to these options by their digest: a glossary is sent once and not with every text. If the
    options exceed `limit` bytes, each end forgets the least recently used ones. Both ends forget the same options,
    because they process the same messages in the same order.
    """

    def __init__(self, limit: int = MAX_KNOWN_BYTES) -> None:
        self._known: LRUCache[bytes, tuple[TranslateOptions | None, int]] = LRUCache(
            limit, lambda known: min(known[1], limit)
        )  # by digest: (options, or None in the service; bytes that they take in the worker)

    def pack(self, messages: Sequence[ToWorker]) -> bytes:
        """Pickle messages. The service calls this method."""
        packed = [self._packed(message) if isinstance(message, Translate) else message for message in messages]
        return pickle.dumps(packed, pickle.HIGHEST_PROTOCOL)

    def unpack(self, data: bytes) -> list[ToWorker]:
        """Return the messages that `pack` has pickled. The worker calls this method."""
        return [self._unpacked(*item) if isinstance(item, tuple) else item for item in pickle.loads(data)]

    def _packed(self, message: Translate) -> tuple[int, SourceText, str, bool, bytes, bytes]:
        """Return the fields of a message, with the digest and the pickle of its options.

        The pickle is empty if the worker knows the options.
        """
        options, content = message.options, b""
        if not self._known.get(options.digest):
            content = options.packed
            self._known[options.digest] = None, _size(options, content)
        return message.id, message.text, message.caller, message.report, options.digest, content

    def _unpacked(
        self, id: int, text: SourceText, caller: str, report: bool, digest: bytes, content: bytes
    ) -> Translate:
        """Return the message for which `_packed` has returned these fields."""
        if content:
            new: TranslateOptions = pickle.loads(content)
            self._known[digest] = new, _size(new, content)
        options, _ = self._known[digest]
        assert options is not None
        return Translate(id, text, options, caller, report)


def _size(options: TranslateOptions, content: bytes) -> int:
    return len(content) + TERM_BYTES * (len(options.terms.glossary) + len(options.terms.untranslated))
