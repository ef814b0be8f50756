"""Words as automata over ids: however a tokenizer may spell them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from mt.decoding.wording import MUCH, Wording
from mt.text.inflection import forms, has_endings, umlauted
from mt.text.linking import is_wide
from mt.text.terms import cased
from mt.tokenizer import EOS, SPACE_MARK, Tokenizer

_CLASSES = 4  # columns of ids that spell none of the words: by whether they end the word before, and end in a letter
OTHER_FORM = -2.0
"""Added to the log-probability of a form that is not the glossary's where the source has the term as it is there."""

_FIRST = 1 + _CLASSES  # column of the first id that does
_KEPT = 256  # automata, of some kilobytes each


@dataclass(frozen=True)
class Manner:
    """How a word may come."""

    compound: bool = False  # as the beginning of a longer word
    inflected: bool = False  # in any form, or else in those that are no plural


@dataclass(frozen=True)
class Needed:
    """A translation of a term, and how often a sentence must and may hold it."""

    translation: str
    times: int
    again: bool  # whether it may come more often
    displaced: tuple[str, ...] = ()  # what would stand there otherwise
    manner: Manner = Manner()


@dataclass(eq=False)
class Automaton:
    """A word in all its forms and all ways to spell them. Nodes are what has been written of it.

    Node 0 is after a mark, or where a sentence begins; node 1 inside of another word.
    """

    open_ended: bool  # whether whatever follows it leaves it a word
    nodes: dict[str, int] = field(default_factory=dict)
    arcs: dict[int, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    proposed: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    full: set[int] = field(default_factory=set)

    @property
    def size(self) -> int:
        return 2 + len(self.nodes)

    def node(self, written: str) -> int:
        return self.nodes.setdefault(written, self.size)


class Speller:
    """Makes wordings for a tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._automaton = lru_cache(maxsize=_KEPT)(self._build)

    def wording(self, needed: Sequence[Needed], avoided: Iterable[str], language: str, patience: int) -> Wording:
        """What a translation must hold, in any form that its language may give it; and words that it must not."""
        automata = [self._automaton(each.translation, language, each.manner) for each in needed]
        automata += [self._automaton(word, "", Manner()) for word in avoided]
        ids = sorted({id for each in automata for arcs in each.arcs.values() for id in arcs})
        tables = _Tables(self._classes, np.asarray(ids, dtype=np.int64), sum(each.size for each in automata) + 1)
        rest = [0] * (len(automata) - len(needed))
        begins = [each.proposed[1] for each in automata]
        costs = [
            [0.0 if each.manner.inflected or id in self._first(each.translation) else OTHER_FORM for id in ids]
            for each, ids in zip(needed, begins, strict=False)
        ]
        costs += [[] for _ in rest]
        cues = [[id for word in each.displaced for id in self._first(word)] for each in needed]
        return Wording(
            starts=tuple(tables.add(automaton) for automaton in automata),
            columns=tables.columns,
            following=tables.following,
            counts=tables.counts,
            proposals=_padded(tables.proposals),
            completions=_padded(tables.completions),
            full=tables.full,
            patience=patience,
            begins=_padded(begins),
            costs=_padded(costs).astype(np.float32),
            endings=(*(0.0 if each.manner.inflected else OTHER_FORM for each in needed), *(0.0 for _ in rest)),
            cues=_padded([*cues, *([] for _ in rest)]),
            needed=(*(each.times for each in needed), *rest),
            allowed=(*(MUCH if each.again else each.times for each in needed), *rest),
        )

    def length(self, translation: str) -> int:
        """Ids that a translation takes, about."""
        return len(self._tokenizer.encode(translation)) + 1

    def _first(self, word: str) -> list[int]:
        """What a word may begin with, in small letters and with a capital."""
        return list(dict.fromkeys(id for way in cased(word) for id in self._encode(way)[:1]))

    @cached_property
    def _pieces(self) -> dict[str, int]:
        pieces = self._tokenizer.pieces(range(len(self._tokenizer)))
        return {piece: id for id, piece in enumerate(pieces) if id > EOS}

    @cached_property
    def _longest(self) -> int:
        return max(map(len, self._pieces))

    @cached_property
    def _classes(self) -> npt.NDArray[np.int16]:
        """The column [V] of each id, as if it spelt none of the words."""
        found = np.full(len(self._tokenizer), 1 + 2, dtype=np.int16)
        for piece, id in self._pieces.items():
            if not (piece.startswith("<") and piece.endswith(">") and len(piece) > 2):
                found[id] = 1 + 2 * (not _in_word(piece[0])) + _in_word(piece[-1])
        return found

    def _build(self, word: str, language: str, manner: Manner) -> Automaton:
        """Without a language, the word as it is."""
        built = Automaton(open_ended=manner.compound or bool(language and not has_endings(language)))
        for form in forms(word, language, not manner.inflected):
            for way in cased(form):
                self._spell(built, SPACE_MARK + way.replace(" ", SPACE_MARK))
        if language:
            for ids in self._usual(word, language, not manner.inflected):
                self._propose(built, ids)
        return built

    def _spell(self, built: Automaton, text: str) -> None:
        """Every way to spell a text. It also begins after a mark, without its space."""
        reached = {0, 1}
        for place in range(len(text)):
            if place not in reached:
                continue
            froms = [1] if place == 0 else [built.nodes.get(text[:place], -1), *([0] if place == 1 else [])]
            for ids, end in self._arcs(text, place):
                reached.add(end)
                for begin in froms:
                    node = begin
                    for number, id in enumerate(ids, 1) if begin >= 0 else ():
                        # A character that is no piece is spelt in bytes.
                        written = text[:end] if number == len(ids) else f"{text[:place]}\0{text[place]}{number}"
                        built.arcs[node][id] = node = built.node(written)
        built.full.add(built.node(text))

    def _arcs(self, text: str, place: int) -> Iterator[tuple[list[int], int]]:
        """Ids that go on with a text from a place, and where they end."""
        for end in range(place + 1, min(len(text), place + self._longest) + 1):
            if (id := self._pieces.get(text[place:end])) is not None:
                yield [id], end
        if text[place] not in self._pieces:
            spelt = [self._pieces.get(f"<0x{byte:02X}>", -1) for byte in text[place].encode()]
            if min(spelt) >= 0:
                yield spelt, place + 1

    def _usual(self, word: str, language: str, singular: bool) -> Iterator[list[int]]:
        """The ids of those forms that the model is likely to know: spelt as the word is, or with another vowel."""
        base = self._encode(word)
        changed = umlauted(word, language)
        for form in forms(word, language, singular):
            for way in cased(form):
                ids = self._encode(way)
                alike = ids[: len(base) - 1] == base[:-1] and (len(ids) <= len(base) or ids[len(base) - 1] == base[-1])
                if alike or (changed != word and way.startswith(changed)) or way in cased(word):
                    yield ids

    def _encode(self, word: str) -> list[int]:
        """As it is spelt in a sentence, where one of a script without spaces has none before it."""
        ids = self._tokenizer.encode(word)
        first = self._tokenizer.pieces(ids[:1])[0] if ids else ""
        if not is_wide(word[0]) or not first.startswith(SPACE_MARK):
            return ids
        bare = self._pieces.get(first[1:])
        return ids[1:] if len(first) == 1 else [bare, *ids[1:]] if bare is not None else ids

    def _propose(self, built: Automaton, ids: Sequence[int]) -> None:
        """Follow the automaton along these ids, as far as it goes."""
        node = 1 if ids and ids[0] in built.arcs[1] else 0
        for number, id in enumerate(ids):
            following = built.arcs[node].get(id)
            if following is None:
                return
            proposed = built.proposed[node if number else 1]
            proposed += [id] if id not in proposed else []
            node = following


class _Tables:
    """The tables of a wording, automaton by automaton."""

    def __init__(self, classes: npt.NDArray[np.int16], ids: npt.NDArray[np.int64], nodes: int) -> None:
        self.columns = classes.copy()
        self.columns[ids] = np.arange(_FIRST, _FIRST + len(ids))
        self.following = np.zeros((nodes, _FIRST + len(ids)), dtype=np.int32)
        self.counts = np.zeros(self.following.shape, dtype=np.bool_)
        self.full = np.zeros(nodes, dtype=np.bool_)
        self.proposals: list[list[int]] = [[]]
        self.completions: list[list[int]] = [[]]
        self._place = {int(id): _FIRST + number for number, id in enumerate(ids)}
        kinds = np.concatenate((np.arange(_FIRST), classes[ids])) - 1  # of each column
        self._ends_word, self._in_word = kinds // 2 == 1, kinds % 2 == 1

    def add(self, automaton: Automaton) -> int:
        """Its first node."""
        first, full = len(self.proposals), automaton.full
        anywhere = automaton.arcs[1]
        for node in range(automaton.size):
            arcs = automaton.arcs.get(node, {})
            row = self.following[first + node]
            row[1:] = np.where(self._in_word, first + 1, first)[1:]
            for id, end in [*anywhere.items(), *arcs.items()]:
                row[self._place[id]] = first + end
            if node in full:
                self.full[first + node] = True
                counts = self.counts[first + node]
                counts[1:] = (self._ends_word | automaton.open_ended)[1:]
                counts[[place for id in arcs if not self._ends_word[place := self._place[id]]]] = False
            again = [id for id, end in anywhere.items() if end in full]
            self.completions.append(again + [id for id, end in arcs.items() if end in full and node not in full])
            self.proposals.append(automaton.proposed.get(node, []) if node > 1 else [])
        return first


def _padded(lists: Sequence[Sequence[float]]) -> npt.NDArray[Any]:
    width = max(map(len, lists), default=0) or 1
    return np.asarray([[*each, *[0] * (width - len(each))] for each in lists])


def _in_word(character: str) -> bool:
    return character.isalnum() and not is_wide(character)
