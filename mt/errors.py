"""What a user did or met, said so that the person who can fix it knows what to fix.

Every error of this family carries a message that stands alone: what was wrong, where, which value, and
what would be accepted. Scripts print it and exit with status 2; the service turns it into a 4xx answer.
Anything outside the family is our own mistake and keeps its traceback.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class MTError(Exception):
    """Base of every error that a user can fix."""


class RecipeError(MTError):
    """A recipe, or a `key=value` override, that cannot be used; lists every problem at once."""


class DataError(MTError):
    """A corpus that cannot be used: a missing, misaligned, undecodable or empty file. Names file and line."""


class TokenizerError(MTError):
    """A tokenizer that cannot be trained, or a tokenizer file that is not one."""


class ModelError(MTError):
    """A model directory or checkpoint that cannot be loaded: missing, cut short, of another shape, unsafe."""


class TrainingError(MTError):
    """A run that cannot start or go on: nothing to resume, a loss that stays non-finite."""


class LanguageError(MTError):
    """A language or direction that the model does not translate; names those that it does."""


class DocumentError(MTError):
    """A document that cannot be translated: of an unknown kind, not what its name says, too large, unsafe."""


class RequestError(MTError):
    """A translation request that cannot be served as it was asked."""


def problems(heading: str, found: Iterable[str]) -> str:
    """A heading and its problems, one a line: `heading:\\n  - first\\n  - second`."""
    return heading + ":" + "".join(f"\n  - {problem}" for problem in found)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` (did you mean X?)` for the nearest known word, or an empty string."""
    nearest = get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f" (did you mean {nearest[0]}?)" if nearest else ""
