"""Errors that a user can fix.

A message says what is wrong, where, which value, and what is accepted. The command line prints the message and exits
with status 2; the service answers with status 4xx. Any other exception is a defect and keeps its traceback.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class MTError(Exception):
    """Base of every error that a user can fix."""


class RecipeError(MTError):
    """Raised when a recipe or a `key=value` override is invalid. The message lists every problem."""


class DataError(MTError):
    """Raised when a corpus is missing, misaligned, undecodable or empty. The message names the file and the line."""


class TokenizerError(MTError):
    """Raised when a tokenizer cannot be trained, or a tokenizer file is invalid."""


class ModelError(MTError):
    """Raised when a model directory or checkpoint is missing, truncated, unsafe, or does not fit its configuration."""


class TrainingError(MTError):
    """Raised when training cannot start or continue, for example because there is no checkpoint to resume."""


class BuildError(MTError):
    """Raised when a build cannot be planned, or a stage of a build fails. The message names the log of the stage."""


class LanguageError(MTError, ValueError):
    """Raised when a language or direction is invalid or unknown to the model. The message lists accepted values.

    The class derives from ValueError so that pydantic lists the error with other problems.
    """


class DocumentError(MTError):
    """Raised when a document is too large or unsafe, has an unknown suffix, or is not in the format of its suffix."""


class DocumentLimitExceeded(DocumentError):
    """Raised when a document has more bytes, texts, characters or tags than are accepted."""


class RequestError(MTError):
    """Raised when a translation request is invalid."""


def problems(heading: str, items: Iterable[str]) -> str:
    r"""Return a text with `heading`, and one item on each further line: `heading:\n  - first\n  - second`."""
    return heading + ":" + "".join(f"\n  - {item}" for item in items)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ` (did you mean X?)`, where X is the word in `known` most similar to `word`; "" if none is similar."""
    nearest = get_close_matches(word, list(known), n=1, cutoff=0.7)
    return f" (did you mean {nearest[0]}?)" if nearest else ""
