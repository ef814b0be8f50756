"""Index of glossary terms, and its preparation in steps."""

import re
import threading
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from mt.text.alignment import WIDE, is_wide
from mt.text.normalise import normalise_text

TOKEN = re.compile(rf"[{WIDE}]|[^\W_{WIDE}]+|[^\w\s]|_")
SEPARATOR = "\0"  # a character that no term contains
EQUAL_MARKS = dict(zip("’‘ʼ′‐‑“”„″", "''''--\"\"\"\"", strict=True))
"""Punctuation marks that are equal to another in the search for terms."""


class LetterCase(Enum):
    """Way to compare letter case in the search for terms."""

    EXACT = "exact"
    CAPITAL = "capital"  # a term in lower case also matches with a capital first letter
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class IndexedTerm:
    length: int  # in characters
    number: int  # position in the glossary
    first: str
    last: str
    translation: str | None


class IndexEntry:
    """Entry of the index: the terms that have the same keys, in two maps.

    `exact` is used for a last token as in the glossary, `any_form` for a last token with another inflectional ending.
    Both map a first token, as in the glossary, to the preferred term that begins with this token, and None to the
    preferred term of the whole map. The preferred term is the longest; of equally long terms, the first in the
    glossary. Untranslated words are only in `exact`, because they are not inflected.
    """

    __slots__ = ("any_form", "exact")

    def __init__(self) -> None:
        self.exact: dict[str | None, IndexedTerm] = {}
        self.any_form: dict[str | None, IndexedTerm] = {}

    def add(self, term: IndexedTerm) -> None:
        for terms in (self.exact,) if term.translation is None else (self.exact, self.any_form):
            for first in (None, term.first):
                if first not in terms or (-term.length, term.number) < (-terms[first].length, terms[first].number):
                    terms[first] = term


class TermIndex:
    """Index of terms with two levels: the joined keys of all tokens except the last, and the key of the last token.

    At each token of a sentence, the search needs one look-up per possible number of tokens of a term. The number of
    terms does not matter.
    """

    def __init__(self, case: LetterCase) -> None:
        self.case = case
        self.heads: dict[str, dict[str, IndexEntry]] = {}
        self.lengths: dict[str, list[int]] = {}  # by first key: the numbers of tokens of its terms, in descending order
        self.initials: set[str] = set()  # first characters of terms of one token

    def add(self, term: IndexedTerm, keys: Sequence[str]) -> None:
        """Add a term. `keys` are the keys of its tokens."""
        ways = case_variants(term.first) if self.case is LetterCase.CAPITAL else ()
        for first in {keys[0], *(SEPARATOR + way for way in ways)}:
            *head, last = [first, *keys[1:]]
            self.heads.setdefault("".join(head), {}).setdefault(last, IndexEntry()).add(term)
            if not head:
                self.initials.add(last[1])
            lengths = self.lengths.setdefault(first, [])  # has at most LONGEST_TERM elements
            if len(keys) not in lengths:
                insort(lengths, len(keys), key=lambda length: -length)


def token_keys(tokens: Sequence[re.Match[str]], case: LetterCase) -> list[str]:
    """Return the index keys of tokens.

    A key is the text of the token with a prefix: a space if white space precedes the token, otherwise SEPARATOR. White
    space before a character of a script without spaces is ignored.
    """
    texts = [EQUAL_MARKS.get(token[0], token[0]) for token in tokens]
    texts = [text.casefold() for text in texts] if case is LetterCase.IGNORED else texts
    spaced = [before.end() < token.start() and not is_wide(token[0]) for before, token in pairwise(tokens)]
    return [(" " if space else SEPARATOR) + text for space, text in zip([False, *spaced], texts, strict=bool(tokens))]


class IndexPreparation:
    """Iterator that adds one of `entries`, pairs of a term and its translation, to all indexes at each step.

    Several threads may take steps: a lock excludes all others during a step. An entry counts as added only after its
    step, so that an exception in a step, such as KeyboardInterrupt, leaves out no entry.
    """

    def __init__(self, entries: Sequence[tuple[str, str | None]]) -> None:
        self.indexes = {case: TermIndex(case) for case in LetterCase}
        self._entries = entries
        self._added = 0
        self._lock = threading.Lock()

    def __iter__(self) -> "IndexPreparation":
        return self

    def __next__(self) -> None:
        with self._lock:
            if self._added == len(self._entries):
                raise StopIteration
            text, translation = self._entries[self._added]
            text = normalise_text(text, "de").text  # sentences have no gender forms of German
            tokens = list(TOKEN.finditer(text))
            term = IndexedTerm(len(text), self._added, tokens[0][0], tokens[-1][0], translation)
            keys = token_keys(tokens, LetterCase.EXACT)
            folded = [key.casefold() for key in keys]
            for case, index in self.indexes.items():
                index.add(term, folded if case is LetterCase.IGNORED else keys)
            self._added += 1


def case_variants(form: str) -> tuple[str, ...]:
    """Return `form` and, if its first letter is in lower case, the same form with a capital first letter."""
    capital = form[:1].upper() + form[1:]
    return (form,) if capital == form else (form, capital)
