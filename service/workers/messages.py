"""What workers are told and what they tell: small and picklable, so that a worker can live in a process of its own."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from mt.decoding.options import SearchOptions
from mt.engine.results import Insight, Translation
from mt.text.linking import Range
from mt.text.terms import Terms
from service.languages import Direction


@dataclass(frozen=True)
class Setup:
    """A model directory, and how it is to be run."""

    model: Path
    device: str = "auto"
    dtype: str = "auto"
    threads: int | None = None
    shortlist: bool = False


@dataclass(frozen=True)
class Text:
    """A text to translate. The characters `kept` come back as they are."""

    text: str
    kept: tuple[Range, ...] = ()


@dataclass(frozen=True)
class Wish:
    """How texts are to be translated; what is left out is the model's own choice."""

    options: SearchOptions | None = None
    beam_size: int | None = None
    n_best: int | None = None
    sentences: bool = False  # whether each text is one sentence
    terms: Terms = field(default_factory=Terms)
    insight: Insight = field(default_factory=Insight)

    def search(self, own: SearchOptions) -> SearchOptions:
        """The search for a model with options of its `own`. Raises RequestError."""
        options = self.options or own
        n_best = options.n_best if self.n_best is None else self.n_best
        beam_size = max(options.beam_size, n_best) if self.beam_size is None else self.beam_size
        return replace(options, n_best=n_best, beam_size=beam_size)


@dataclass(frozen=True)
class Order:
    """What the texts of one request have in common."""

    direction: Direction
    options: SearchOptions
    sentences: bool = False
    terms: Terms = field(default_factory=Terms)
    insight: Insight = field(default_factory=Insight)
    caller: str = ""  # callers take turns


@dataclass(frozen=True)
class Translate:
    """A text; `Done` or `Failed` with its id is the answer. It need not begin after its deadline (time.monotonic)."""

    id: int
    text: Text
    order: Order
    deadline: float | None = None


@dataclass(frozen=True)
class Cancel:
    """Nobody waits for these any more: no answer is needed."""

    ids: tuple[int, ...]


@dataclass(frozen=True)
class Ask:
    """For a Pulse, which comes before the next decoder step."""


@dataclass(frozen=True)
class Close:
    """Stop; whatever is not done is dropped."""


@dataclass(frozen=True)
class Ready:
    """The model is loaded, and has translated a sentence of each direction."""

    directions: tuple[Direction, ...]
    options: SearchOptions
    version: str  # changes with the files of the model
    devices: tuple[str, ...]  # all on which the setup lets the model run; the first is this worker's
    capacity: int  # sentences that are decoded at a time
    no_gpu: str = ""  # why the CPU translates, where the setup leaves the choice


@dataclass(frozen=True)
class Refused:
    """The model cannot be loaded."""

    message: str


@dataclass(frozen=True)
class Done:
    id: int
    translation: Translation


@dataclass(frozen=True)
class Failed:
    """`message` is for the client, unless `code` says that the mistake is ours."""

    id: int
    code: str
    message: str


@dataclass(frozen=True)
class Work:
    """What a worker has done so far."""

    texts: int = 0  # translated
    steps: int = 0  # of the decoder
    rows: int = 0  # of all these steps
    source_tokens: int = 0
    target_tokens: int = 0

    def __add__(self, other: "Work") -> "Work":
        """That of two lives, or of two workers."""
        return Work(
            texts=self.texts + other.texts,
            steps=self.steps + other.steps,
            rows=self.rows + other.rows,
            source_tokens=self.source_tokens + other.source_tokens,
            target_tokens=self.target_tokens + other.target_tokens,
        )


@dataclass(frozen=True)
class Pulse:
    """A sign of life. Each of the engine's threads has a mark: its steps so far, or -1 if it has nothing to do."""

    work: Work
    working: int  # texts
    marks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Stopped:
    """The last message of a worker; `problem` is empty if it was told to stop."""

    problem: str
    blames: bool = True  # whether a text that it worked on may be to blame


ToWorker = Translate | Cancel | Ask | Close
FromWorker = Ready | Refused | Done | Failed | Pulse | Stopped
