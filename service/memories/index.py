"""Index of the sources of translation memories, for the search of similar sentences.

A unit is a source text with its translation; the units of a memory are numbered. For each word, the index has the
numbers of the units whose source contains the word. A word that occurs twice in a text counts as two words. A search
counts the words that each unit shares with a sentence. The count gives an upper bound of the similarity.

A row of the index covers one word and BLOCK consecutive units. It stores each unit as a two-byte offset in the block.
Adding a unit therefore changes at most 8 KB for each of its words, and a search reads few rows.
"""

import json
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


def entry_count(source: str) -> int:
    """Return the number of entries of a source in the index: at most one row of the index for each."""
    count = len(words(source))
    return count if count <= MAX_WORDS else 0


def add(connection: sqlite3.Connection, memory: int, first: int, sources: Iterable[str]) -> int:
    """Add the sources of new units of the memory with the number `memory`. Return the number of new rows.

    The first unit gets the number `first`.
    """
    offsets: dict[tuple[int, int], list[int]] = defaultdict(list)
    lengths: dict[int, list[int]] = defaultdict(list)
    for number, source in enumerate(sources, start=first):
        block, offset = divmod(number, BLOCK)
        keys = _keys(words(source))
        lengths[block].append(len(keys))
        for key in keys:
            offsets[key, block].append(offset)
    stored = (
        "SELECT count(*) FROM memory_words WHERE memory = ? AND block = ? AND word IN (SELECT value FROM json_each(?))"
    )
    new = len(offsets)
    for block in lengths:
        keys_of_block = json.dumps([key for key, other in offsets if other == block])
        new -= int(connection.execute(stored, (memory, block, keys_of_block)).fetchone()[0])
    connection.executemany(
        "INSERT INTO memory_words VALUES (?, ?, ?, ?) " + _APPEND.format("units"),
        ((memory, key, block, _blob(numbers)) for (key, block), numbers in offsets.items()),
    )
    connection.executemany(
        "INSERT INTO memory_lengths VALUES (?, ?, ?) " + _APPEND.format("lengths"),
        ((memory, block, _blob(counts)) for block, counts in lengths.items()),
    )
    return new


def similar_units(
    connection: sqlite3.Connection, memory: int, sentence: Sequence[str], score: float
) -> list[tuple[int, float]]:
    """Return (number, upper bound of the similarity) of units whose similarity to a sentence may be `score` or more.

    At most MAX_CANDIDATES units are returned, those with the largest bounds first; among equal bounds, the newest unit
    comes first. `sentence` is a list of words. If it is empty or longer than MAX_WORDS, no units are returned.
    """
    if not (keys := _keys(sentence)):
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
    """Return (index, bound) of up to MAX_CANDIDATES bounds that are `least` or more, the largest first."""
    places = np.flatnonzero(bounds >= least)
    if len(places) > MAX_CANDIDATES:
        cut = np.partition(bounds[places], -MAX_CANDIDATES)[-MAX_CANDIDATES]
        above, equal = places[bounds[places] > cut], places[bounds[places] == cut]
        places = np.concatenate((above, equal[len(above) - MAX_CANDIDATES :]))
    order = np.lexsort((-places, -bounds[places]))
    return [(int(place), float(bounds[place])) for place in places[order]]


def _rarest(connection: sqlite3.Connection, memory: int, keys: Sequence[int]) -> list[int]:
    """Return the `keys` of the rarest words. Together, these words have at most MAX_ENTRIES entries in the index.

    At least one key is returned, even if its word alone has more entries.
    """
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


def _keys(sentence: Sequence[str]) -> list[int]:
    """Return a hash of each word, ignoring upper and lower case; none if there are more than MAX_WORDS words.

    Each occurrence of a word gets a different hash. If different words have the same hash, the upper bound of a unit's
    similarity may be larger than necessary.
    """
    seen = Counter[str]()
    keys = []
    for word in map(str.casefold, sentence if len(sentence) <= MAX_WORDS else ()):
        keys.append(crc32(f"{word} {seen[word]}".encode("utf-8", "replace")))
        seen[word] += 1
    return keys


def _marks(values: Sequence[int]) -> str:
    return ",".join("?" * len(values))


def _blob(numbers: Sequence[int]) -> bytes:
    return np.asarray(numbers, np.uint16).tobytes()
