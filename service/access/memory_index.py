"""Index of the sources of translation memories, for the search of similar sentences.

For each word, the index has the numbers of the units that contain it. A word that occurs twice in a text counts as two
words. A search counts the words that each unit shares with a sentence. The count gives an upper bound of the
similarity.

The numbers are stored in blocks of BLOCK units, as offsets of two bytes. Adding a unit therefore changes at most 8 KB
for each of its words, and a search reads few rows.
"""

import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from zlib import crc32

import numpy as np
import numpy.typing as npt

from mt.text.fuzzy_match import words

BLOCK = 4096  # units in a block
MAX_WORDS = 200  # a longer sentence has no fuzzy matches
MAX_ENTRIES = 200_000  # entries of the index that a search reads; the rarest words of a sentence come first
MAX_CANDIDATES = 32  # units that a search returns

_APPEND = "ON CONFLICT DO UPDATE SET {0} = CAST({0} || excluded.{0} AS BLOB)"


def add(connection: sqlite3.Connection, memory: int, first: int, sources: Iterable[str]) -> None:
    """Add the sources of new units. The units are numbered in order, beginning with `first`."""
    offsets: dict[tuple[int, int], list[int]] = defaultdict(list)
    lengths: dict[int, list[int]] = defaultdict(list)
    for number, source in enumerate(sources, start=first):
        block, offset = divmod(number, BLOCK)
        keys = _keys(words(source))
        lengths[block].append(len(keys) if len(keys) <= MAX_WORDS else 0)
        for key in keys if len(keys) <= MAX_WORDS else ():
            offsets[key, block].append(offset)
    connection.executemany(
        "INSERT INTO memory_words VALUES (?, ?, ?, ?) " + _APPEND.format("units"),
        ((memory, key, block, _blob(numbers)) for (key, block), numbers in offsets.items()),
    )
    connection.executemany(
        "INSERT INTO memory_lengths VALUES (?, ?, ?) " + _APPEND.format("lengths"),
        ((memory, block, _blob(counts)) for block, counts in lengths.items()),
    )


def similar_units(
    connection: sqlite3.Connection, memory: int, sentence: Sequence[str], score: float
) -> list[tuple[int, float]]:
    """Return (number, upper bound of the similarity) of units whose similarity to a sentence may be `score` or more.

    The units with the largest bounds come first; among equal bounds, the newest unit comes first. `sentence` is a list
    of words.
    """
    keys = _keys(sentence)
    if not 0 < len(keys) <= MAX_WORDS:
        return []
    read = _rarest(connection, memory, keys)
    query = f"SELECT block, units FROM memory_words WHERE memory = ? AND word IN ({_marks(read)})"
    numbers = [
        np.frombuffer(units, np.uint16).astype(np.int64) + BLOCK * block
        for block, units in connection.execute(query, (memory, *read))
    ]
    if not numbers:
        return []
    query = "SELECT lengths FROM memory_lengths WHERE memory = ? ORDER BY block"
    lengths = np.frombuffer(b"".join(row[0] for row in connection.execute(query, (memory,))), np.uint16)
    shared = np.bincount(np.concatenate(numbers), minlength=len(lengths)) + (len(keys) - len(read))
    bounds = np.minimum(shared, lengths) / np.maximum(lengths, len(keys))
    return _largest(bounds, score)


def _largest(bounds: npt.NDArray[np.float64], least: float) -> list[tuple[int, float]]:
    """Return (index, bound) of the MAX_CANDIDATES largest bounds that are not below `least`, the largest first."""
    places = np.flatnonzero(bounds >= least)
    if len(places) > MAX_CANDIDATES:
        cut = np.partition(bounds[places], -MAX_CANDIDATES)[-MAX_CANDIDATES]
        above, equal = places[bounds[places] > cut], places[bounds[places] == cut]
        places = np.concatenate((above, equal[len(above) - MAX_CANDIDATES :]))
    order = np.lexsort((-places, -bounds[places]))
    return [(int(place), float(bounds[place])) for place in places[order]]


def _rarest(connection: sqlite3.Connection, memory: int, keys: Sequence[int]) -> list[int]:
    """Return the rarest words: as many as together have at most MAX_ENTRIES entries in the index, but at least one."""
    query = (
        f"SELECT word, sum(length(units)) / 2 FROM memory_words WHERE memory = ? AND word IN ({_marks(keys)}) "
        "GROUP BY word"
    )
    counts = dict(connection.execute(query, (memory, *keys)).fetchall())
    read: list[int] = []
    left = MAX_ENTRIES
    for key in sorted(keys, key=lambda key: counts.get(key, 0)):
        left -= counts.get(key, 0)
        if left < 0 and read:
            break
        read.append(key)
    return read


def _keys(sentence: Iterable[str]) -> list[int]:
    """Return a hash of each word in lower case. Several occurrences of a word have different hashes.

    If two words have the same hash, the upper bound of a unit may be larger than necessary.
    """
    seen = Counter[str]()
    keys = []
    for word in map(str.casefold, sentence):
        keys.append(crc32(f"{word} {seen[word]}".encode("utf-8", "replace")))
        seen[word] += 1
    return keys


def _marks(values: Sequence[int]) -> str:
    return ",".join("?" * len(values))


def _blob(numbers: Sequence[int]) -> bytes:
    return np.asarray(numbers, np.uint16).tobytes()
