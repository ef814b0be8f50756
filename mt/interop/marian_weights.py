"""Files of Marian's weights: `.npz`, and `.bin`, its own format (src/common/binary.cpp)."""

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from mt.errors import ModelError, problems

CONFIG = "special:model.yml"
VERSION = 1

TYPES: Mapping[int, str] = {0x101: "<i1", 0x402: "<f2", 0x404: "<f4", 0x408: "<f8"}
"""Marian's codes (src/common/types.h) of the types that can be read: CONFIG's bytes, and numbers that nobody packed."""


def read_weights(path: Path) -> dict[str, np.ndarray]:
    """The arrays of a file, by name; what could run code is not read. Raises ModelError."""
    return read_npz(path) if path.suffix == ".npz" else read_bin(path)


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """Raises ModelError."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except Exception as error:  # NotImplementedError, zlib.error ...: numpy's reader trips over damage in many ways
        raise ModelError(f"{path}: not a whole .npz file ({error})") from error


def read_bin(path: Path) -> dict[str, np.ndarray]:
    """A version, the number of items, four numbers for each, then all names, all shapes, and the values.

    Raises ModelError.
    """
    try:
        content = path.read_bytes()
        version, count = struct.unpack_from("<2Q", content)
        if version != VERSION:
            raise ModelError(f"{path}: version {version} of Marian's binary files; accepted: {VERSION}")
        return dict(_items(content, count, path))
    except (OSError, struct.error, ValueError) as error:
        raise ModelError(f"{path}: not a whole file of Marian's binary format ({error})") from error


def _items(content: bytes, count: int, path: Path) -> Iterator[tuple[str, np.ndarray]]:
    at = 16 + 32 * count
    headers = list(struct.iter_unpack("<4Q", content[16:at]))  # length of the name, type, dimensions, bytes
    if len(headers) != count:
        raise ValueError(f"{count} items announced, {len(headers)} there")
    names = []
    for length, *_ in headers:
        names.append(content[at : at + length].rstrip(b"\0").decode())
        at += length
    packed = [
        f"{name}: type {kind:#x}" for name, (_, kind, *_) in zip(names, headers, strict=True) if kind not in TYPES
    ]
    if packed:
        raise ModelError(
            problems(f"{path} holds numbers in types that cannot be read; accepted: float32, float16", packed)
        )
    shapes = []
    for _, _, dimensions, _ in headers:
        shapes.append(struct.unpack_from(f"<{dimensions}i", content, at))
        at += 4 * dimensions
    at += 8 + struct.unpack_from("<Q", content, at)[0]  # to a multiple of 256
    for name, shape, (_, kind, _, size) in zip(names, shapes, headers, strict=True):
        dtype = np.dtype(TYPES[kind])
        elements = int(np.prod(shape))
        if at + size > len(content) or elements * dtype.itemsize > size:
            raise ValueError(f"{name} is cut short")
        yield name, np.frombuffer(content, dtype, elements, at).reshape(shape)
        at += size
