"""Index of glossary terms, which is built in steps."""

import re
import threading
from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mt.text.alignment import WIDE, is_wide
from mt.text.normalise import normalise_text

TOKEN = re.compile(rf"[{WIDE}]|[^\W_{WIDE}]+|[^\w\s]|_")
SEPARATOR = "\0"  # a character that no term contains
EQUAL_MARKS = dict(zip("’‘ʼ′‐‑“”„″", "''''--\"\"\"\"", strict=True))  # marks that are equal in the search for terms


@dataclass(frozen=True, slots=True)
class IndexedTerm:
    length: int  # in characters
    number: int  # position in the glossary
    last: str  # token
    translation: str | None


class TermIndex:
    """Index of terms by the joined keys of their tokens (`token_keys`), as written and in folded letter case.

    At each token of a sentence, the search needs a few look-ups per possible number of tokens of a term.

    The index is an iterator that adds one of `entries`, pairs of a term and its translation, at each step. Several
    threads may take steps: a lock excludes all others during a step. An entry counts as added only after its step, so
    that an exception in a step, such as KeyboardInterrupt, leaves out no entry.
    """

    def __init__(self, entries: Sequence[tuple[str, str | None]]) -> None:
        self.lengths: dict[str, list[int]] = {}  # by folded first token: the numbers of tokens, in descending order
        self.heads: set[str] = set()  # folded keys without the last token; of one token, the first character
        self.keys: set[str] = set()  # folded
        self._exact: dict[tuple[str, bool], IndexedTerm] = {}  # by key, and whether the last token may be inflected
        self._folded: dict[tuple[str, bool], IndexedTerm] = {}
        self._entries = entries
        self._added = 0
        self._lock = threading.Lock()

    def __iter__(self) -> "TermIndex":
        return self

    def __next__(self) -> None:
        with self._lock:
            if self._added == len(self._entries):
                raise StopIteration
            self.add(self._added, *self._entries[self._added])
            self._added += 1

    def add(self, number: int, text: str, translation: str | None) -> None:
        text = normalise_text(text, "de").text  # sentences have no gender forms of German
        tokens = list(TOKEN.finditer(text))
        term = IndexedTerm(len(text), number, tokens[-1][0], translation)
        keys = token_keys(tokens)
        key = "".join(keys)
        for table, written in ((self._exact, key), (self._folded, key.casefold())):
            for inflected in (False, True)[: 1 if translation is None else 2]:  # untranslated words are not inflected
                if term.length > table.get((written, inflected), _NO_TERM).length:
                    table[written, inflected] = term
        self.keys.add(key.casefold())
        self.heads.add(("".join(keys[:-1]) or keys[0][1]).casefold())
        lengths = self.lengths.setdefault(keys[0][1:].casefold(), [])  # has at most LONGEST_TERM elements
        if len(keys) > 1 and len(keys) not in lengths:
            insort(lengths, len(keys), key=lambda length: -length)

    def find(self, key: str, inflected: bool, begins: bool, any_case: bool) -> Iterator[tuple[IndexedTerm, bool]]:
        """Yield (term, whether its letter case is that of `key`) of the terms for a key.

        If `begins`, a term in lower case also matches a key with a capital first letter. If `any_case`, letter case is
        ignored. Of several terms with the same key, the longest is yielded; of equally long ones, the first.
        """
        if (term := self._exact.get((key, inflected))) is not None:
            yield term, True
        if any_case:
            term = self._folded.get((key.casefold(), inflected))
        elif begins and key[1].isupper():
            term = self._exact.get((key[0] + key[1].lower() + key[2:], inflected))
        else:
            return
        if term is not None:
            yield term, False


_NO_TERM = IndexedTerm(-1, 0, "", None)


def token_keys(tokens: Sequence[re.Match[str]]) -> list[str]:
    """Return the index keys of tokens.

    A key is the text of the token with a prefix: a space if white space precedes the token, otherwise SEPARATOR. White
    space before a character of a script without spaces is ignored.
    """
    spaced = [before.end() < token.start() and not is_wide(token[0]) for before, token in pairwise(tokens)]
    return [
        (" " if space else SEPARATOR) + EQUAL_MARKS.get(token[0], token[0])
        for space, token in zip([False, *spaced], tokens, strict=bool(tokens))
    ]


def case_variants(form: str) -> tuple[str, ...]:
    """Return `form` and, if its first letter is in lower case, the same form with a capital first letter."""
    capital = form[:1].upper() + form[1:]
    return (form,) if capital == form else (form, capital)
