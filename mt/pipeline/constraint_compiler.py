"""Compilation of required and banned words into automata over token ids.

The automaton of a word accepts all spellings of the word. A spelling is a sequence of ids whose pieces form the word.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from mt.decoding.term_constraints import UNLIMITED, TermConstraints
from mt.text.alignment import is_in_word, is_wide
from mt.text.inflection import NounNumber, has_endings, inflected_forms
from mt.text.term_index import case_variants
from mt.tokenizer import EOS, SPACE_MARK, Tokenizer

OTHER_FORM_COST = -2.0  # is added to the log-probability of an inflected form if the source has the uninflected term
# Classes (table columns) of the ids that occur in no required or banned word. Each combines two properties of a piece:
# whether it ends the previous word, and whether it ends with a letter.
_PIECE_CLASSES = 4

_FIRST_COLUMN = 1 + _PIECE_CLASSES  # first column of ids that occur in required or banned words; column 0 is padding
_FEW_FORMS = 8  # as of a noun in a language with rules for nouns
_CACHED_AUTOMATA = 256  # number of cached automata; each takes some kilobytes
_CACHED_CONSTRAINTS = 16  # number of cached constraints; sentences of a text often need the same terms


@dataclass(frozen=True)
class RequiredTerm:
    """A translation that a target sentence must contain `count` times. If `repeatable`, it may occur more often.

    A banned word is one that occurs 0 times, in the given form only.
    """

    translation: str
    count: int
    repeatable: bool
    displaced: tuple[str, ...] = ()  # words that the model wrote in place of the translation
    number: NounNumber = NounNumber.SINGULAR  # the forms that count
    compound: bool = False  # whether the beginning of a longer word counts


@dataclass(eq=False)
class Automaton:
    """Automaton over token ids that accepts a word in all its forms and spellings.

    Node 0 is the state at the start of a form if the text before it does not end with a letter, and node 1 if the text
    ends with a letter. Each other node is a prefix of a form. `arcs` maps a node and an id to the next node, and
    `proposed` contains the usual next ids of a node. In the nodes in `full`, a form is complete.
    """

    open_ended: bool  # whether a longer word that begins with a form is accepted, too
    nodes: dict[str, int] = field(default_factory=dict)
    arcs: dict[int, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    proposed: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    full: set[int] = field(default_factory=set)

    @property
    def size(self) -> int:
        return 2 + len(self.nodes)

    def node(self, written: str) -> int:
        return self.nodes.setdefault(written, self.size)


class ConstraintCompiler:
    """Compiler of term constraints. The constraints are tables for the vocabulary of one tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._automaton = lru_cache(maxsize=_CACHED_AUTOMATA)(self._build)
        self._compiled = lru_cache(maxsize=_CACHED_CONSTRAINTS)(self._compile)

    def compile(
        self,
        required: Sequence[RequiredTerm],
        banned: Iterable[str],
        language: str,
        patience: int,
        threshold: float = math.inf,
    ) -> TermConstraints:
        """Return constraints that require terms and ban words in translations in `language`.

        A required term may have any form of its `number`. Words are banned in the given form only. After `patience`
        steps, a search stops as soon as it has one hypothesis with all terms. `threshold` is the difference of
        log-probabilities at which the search drops a hypothesis (ConstrainedBeamSearch).
        """
        compiled = self._compiled(tuple(required), tuple(banned), language)
        return replace(compiled, patience=patience, threshold=threshold)

    def length(self, translation: str) -> int:
        """Return the approximate number of token ids of a term's translation within a sentence."""
        return len(self._tokenizer.encode(translation)) + 1

    def is_piece(self, word: str) -> bool:
        """Return whether the vocabulary contains a piece that is a space followed by `word`."""
        return SPACE_MARK + word in self._pieces

    def _compile(self, required: tuple[RequiredTerm, ...], banned: tuple[str, ...], language: str) -> TermConstraints:
        """Return the constraints of `compile`, with the default patience and threshold."""
        terms = [*required, *(RequiredTerm(word, count=0, repeatable=False) for word in banned)]
        automata = [
            self._automaton(term.translation, language if term.count else "", term.number, term.compound)
            for term in terms
        ]
        ids = sorted({id for automaton in automata for arcs in automaton.arcs.values() for id in arcs})
        nodes = sum(automaton.size for automaton in automata) + 1
        tables = _Tables(self._classes, np.asarray(ids, dtype=np.int64), nodes)
        begins = [automaton.proposed[1] for automaton in automata]
        endings = [OTHER_FORM_COST if term.count and term.number is NounNumber.SINGULAR else 0.0 for term in terms]
        costs = [
            [0.0 if id in self._first_ids(term.translation) else cost for id in ids]
            for term, ids, cost in zip(terms, begins, endings, strict=True)
        ]
        cues = [[id for word in term.displaced for id in self._first_ids(word)] for term in terms]
        return TermConstraints(
            starts=tuple(tables.add(automaton) for automaton in automata),
            columns=tables.columns,
            following=tables.following,
            counts=tables.counts,
            proposals=_padded(tables.proposals),
            completions=_padded(tables.completions),
            full=tables.full,
            begins=_padded(begins),
            costs=_padded(costs).astype(np.float32),
            endings=tuple(endings),
            cues=_padded(cues),
            needed=tuple(term.count for term in terms),
            allowed=tuple(UNLIMITED if term.repeatable else term.count for term in terms),
        )

    def _first_ids(self, word: str) -> list[int]:
        """Return the first id of a word, and the first id of the word with a capital first letter."""
        return list(dict.fromkeys(id for variant in case_variants(word) for id in self._encode(variant)[:1]))

    @cached_property
    def _pieces(self) -> dict[str, int]:
        pieces = self._tokenizer.pieces(range(len(self._tokenizer)))
        return {piece: id for id, piece in enumerate(pieces) if id > EOS}

    @cached_property
    def _longest_piece(self) -> int:
        return max(map(len, self._pieces))

    @cached_property
    def _classes(self) -> npt.NDArray[np.int16]:
        """Table column of each id in the vocabulary [V], except ids of required and banned words."""
        columns = np.full(len(self._tokenizer), 1 + 2, dtype=np.int16)
        for piece, id in self._pieces.items():
            if not (piece.startswith("<") and piece.endswith(">") and len(piece) > 2):
                columns[id] = 1 + 2 * (not is_in_word(piece[0])) + is_in_word(piece[-1])
        return columns

    def _build(self, word: str, language: str, number: NounNumber, compound: bool) -> Automaton:
        """Return the automaton of all forms of a word in a language, or of the word alone if `language` is empty."""
        automaton = Automaton(open_ended=compound or bool(language and not has_endings(language)))
        forms = [*inflected_forms(word, language, number), *([f"{word}s"] if compound else [])]  # as Rechnungsnummer
        for form in forms:
            for variant in case_variants(form):
                self._spell(automaton, SPACE_MARK + variant.replace(" ", SPACE_MARK))
        if language:
            for ids in self._usual_spellings(word, forms):
                self._propose(automaton, ids)
        return automaton

    def _spell(self, automaton: Automaton, text: str) -> None:
        """Add all spellings of `text` to the automaton. `text` begins with a space mark.

        A translation may omit the space mark where the text before the mark does not end with a letter.
        """
        reached = {0, 1}
        for place in range(len(text)):
            if place not in reached:
                continue
            starts = [1] if place == 0 else [automaton.nodes.get(text[:place], -1), *([0] if place == 1 else [])]
            for ids, end in self._arcs(text, place):
                reached.add(end)
                for start in starts:
                    node = start
                    for number, id in enumerate(ids, 1) if start >= 0 else ():
                        # Each byte of a character that is not a piece has a node.
                        written = text[:end] if number == len(ids) else f"{text[:place]}\0{text[place]}{number}"
                        automaton.arcs[node][id] = node = automaton.node(written)
        automaton.full.add(automaton.node(text))

    def _arcs(self, text: str, place: int) -> Iterator[tuple[list[int], int]]:
        """Yield (ids, end) for each way to spell a part of `text` that begins at offset `place`.

        The part is text[place:end]. It is one piece, or one character that is not a piece and is spelled by its bytes.
        """
        for end in range(place + 1, min(len(text), place + self._longest_piece) + 1):
            if (id := self._pieces.get(text[place:end])) is not None:
                yield [id], end
        if text[place] not in self._pieces:
            ids = [self._pieces.get(f"<0x{byte:02X}>", -1) for byte in text[place].encode()]
            if min(ids) >= 0:
                yield ids, place + 1

    def _usual_spellings(self, word: str, forms: Sequence[str]) -> Iterator[list[int]]:
        """Yield the usual ids of each form of `word`; of many, only those that begin with its pieces."""
        base = self._encode(word)
        for variant in (variant for form in forms for variant in case_variants(form)):
            ids = self._encode(variant)
            shares = ids[: len(base) - 1] == base[:-1] and (len(ids) <= len(base) or ids[len(base) - 1] == base[-1])
            if len(forms) <= _FEW_FORMS or shares or variant in case_variants(word):
                yield ids

    def _encode(self, word: str) -> list[int]:
        """Return the ids of a word inside a sentence. In a script without spaces, the space mark is omitted."""
        ids = self._tokenizer.encode(word)
        first = self._tokenizer.pieces(ids[:1])[0] if ids else ""
        if not is_wide(word[0]) or not first.startswith(SPACE_MARK):
            return ids
        bare = self._pieces.get(first[1:])
        return ids[1:] if len(first) == 1 else [bare, *ids[1:]] if bare is not None else ids

    def _propose(self, automaton: Automaton, ids: Sequence[int]) -> None:
        """Add `ids` to the proposals of the automaton, up to the first id that the automaton does not accept."""
        node = 1 if ids and ids[0] in automaton.arcs[1] else 0
        for number, id in enumerate(ids):
            following = automaton.arcs[node].get(id)
            if following is None:
                return
            proposed = automaton.proposed[node if number else 1]
            proposed += [id] if id not in proposed else []
            node = following


class _Tables:
    """Builder of the tables of TermConstraints. The automata are added one by one."""

    def __init__(self, classes: npt.NDArray[np.int16], ids: npt.NDArray[np.int64], nodes: int) -> None:
        self.columns = classes.copy()
        self.columns[ids] = np.arange(_FIRST_COLUMN, _FIRST_COLUMN + len(ids))
        self.following = np.zeros((nodes, _FIRST_COLUMN + len(ids)), dtype=np.int32)
        self.counts = np.zeros(self.following.shape, dtype=np.bool_)
        self.full = np.zeros(nodes, dtype=np.bool_)
        self.proposals: list[list[int]] = [[]]
        self.completions: list[list[int]] = [[]]
        self._place = {int(id): _FIRST_COLUMN + number for number, id in enumerate(ids)}
        classes_of = np.concatenate((np.arange(_FIRST_COLUMN), classes[ids])) - 1  # class of the pieces in each column
        self._ends_word, self._in_word = classes_of // 2 == 1, classes_of % 2 == 1

    def add(self, automaton: Automaton) -> int:
        """Append the nodes of an automaton to the tables. Return the number of the first of these nodes."""
        first, full = len(self.proposals), automaton.full
        starting = automaton.arcs[1]  # arcs of a word that begins after any node
        for node in range(automaton.size):
            arcs = automaton.arcs.get(node, {})
            row = self.following[first + node]
            row[1:] = np.where(self._in_word, first + 1, first)[1:]
            for id, end in [*starting.items(), *arcs.items()]:
                row[self._place[id]] = first + end
            if node in full:
                self.full[first + node] = True
                counts = self.counts[first + node]
                counts[1:] = (self._ends_word | automaton.open_ended)[1:]
                counts[[place for id in arcs if not self._ends_word[place := self._place[id]]]] = False
            restarting = [id for id, end in starting.items() if end in full]
            self.completions.append(restarting + [id for id, end in arcs.items() if end in full and node not in full])
            self.proposals.append(automaton.proposed.get(node, []) if node > 1 else [])
        return first


def _padded(lists: Sequence[Sequence[float]]) -> npt.NDArray[Any]:
    width = max(map(len, lists), default=0) or 1
    return np.asarray([[*values, *[0] * (width - len(values))] for values in lists])
