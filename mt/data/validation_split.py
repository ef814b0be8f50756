"""Selection of a validation set from the training pairs."""

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np

from mt.data.dataset import Ragged, RaggedWriter
from mt.errors import DataError

SIDES = ("source_text", "target_text")


def split_validation(train: Path, valid: Path, count: int, seed: int, eligible: Sequence[bool]) -> None:
    """Move `count` pairs of each direction from the folder `train` to the new folder `valid`.

    A pair of corpus i is moved only if `eligible[i]` is true. The pairs are selected by a hash of their source that
    depends on `seed`. Within a direction, their sources differ. Training pairs whose source or target equals a source
    in `valid` are deleted, so that training uses no validation sentence in either direction. Raises: DataError if a
    direction has too few different sources, or no training pairs are left.
    """
    texts = [Ragged(train / side) for side in SIDES]
    direction, corpus = np.load(train / "direction.npy"), np.load(train / "corpus.npy")
    sources, targets = (_hashes(text, seed) for text in texts)
    candidates = np.asarray(eligible)[corpus]
    chosen = []
    for number in np.unique(direction):
        of_direction = np.flatnonzero((direction == number) & candidates)
        hashes, first = np.unique(sources[of_direction], return_index=True)  # ascending
        if len(hashes) <= count:
            raise DataError(
                f"data.split_validation is {count}, but a direction has {len(hashes)} different sources in corpora "
                "without a source tag; accepted: a smaller number, or data.valid instead"
            )
        chosen.append(of_direction[first[:count]])
    moved = np.sort(np.concatenate(chosen))
    kept = np.flatnonzero(~np.isin(sources, sources[moved]) & ~np.isin(targets, sources[moved]))
    if len(np.unique(direction[kept])) < len(chosen):
        raise DataError(f"data.split_validation is {count}, which leaves no training pairs; accepted: a smaller number")
    valid.mkdir()
    rest = train.with_name(train.name + ".rest")
    rest.mkdir()
    for folder, indices in ((valid, moved), (rest, kept)):
        for side, text in zip(SIDES, texts, strict=True):
            writer = RaggedWriter(folder / side, np.uint8)
            writer.append(text[index] for index in indices)
            writer.close()
        np.save(folder / "direction.npy", direction[indices])
        np.save(folder / "corpus.npy", corpus[indices])
    for file in rest.iterdir():
        file.replace(train / file.name)
    rest.rmdir()


def _hashes(texts: Ragged, seed: int) -> np.ndarray:
    """Return a 64-bit hash of each text. Leading and trailing white space is ignored."""
    key = str(seed).encode()
    digests = (blake2b(texts.text(n).strip().encode(), digest_size=8, key=key).digest() for n in range(len(texts)))
    return np.frombuffer(b"".join(digests), np.uint64)
