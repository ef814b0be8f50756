"""What the worker is told and what it tells: small and picklable, so that it can live in a thread or in a process."""

from dataclasses import dataclass

from mt.decoding.options import SearchOptions
from mt.engine.plan import Translation
from service.languages import Direction


@dataclass(frozen=True)
class Translate:
    """A text; `Done` or `Failed` with its id is the answer."""

    id: int
    text: str
    direction: Direction
    options: SearchOptions


@dataclass(frozen=True)
class Cancel:
    """Nobody waits for these any more: no answer is needed."""

    ids: tuple[int, ...]


@dataclass(frozen=True)
class Count:
    """Asks for `Counts` with the same id."""

    id: int


@dataclass(frozen=True)
class Close:
    """Stop; whatever is not done is dropped."""


@dataclass(frozen=True)
class Ready:
    """The model is loaded: what it translates, and how it searches unless it is told otherwise."""

    directions: tuple[Direction, ...]
    options: SearchOptions


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
    """`message` is for the client; empty if the mistake is ours."""

    id: int
    code: str
    message: str


@dataclass(frozen=True)
class Counts:
    """Decoder steps and finished texts so far, and texts in work now."""

    id: int
    steps: int
    finished: int
    working: int


@dataclass(frozen=True)
class Stopped:
    """The last message of a worker; `problem` is empty if it was told to stop."""

    problem: str


ToWorker = Translate | Cancel | Count | Close
FromWorker = Ready | Refused | Done | Failed | Counts | Stopped
