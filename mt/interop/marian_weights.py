"""Readers of Marian's weight files: `.npz`, and `.bin`, Marian's own format (src/common/binary.cpp)."""

import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from zipfile import ZipFile

import numpy as np

from mt.errors import ModelError, problems

CONFIG = "special:model.yml"
VERSION = 1
MAX_UNPACKED = 20
"""Maximum unpacked size of an .npz file relative to its packed size.

Compression hardly shrinks weights, but it shrinks zeros 1,000-fold.
"""

TYPES: Mapping[int, str] = {0x101: "<i1", 0x402: "<f2", 0x404: "<f4", 0x408: "<f8"}
"""NumPy type for each type code that can be read (src/common/types.h): int8 for the bytes of CONFIG, and floats."""


def read_weights(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays in a weight file by name. Pickles are refused.

    Raises:
        ModelError: The file is damaged or contains a pickle.
    """
    return read_npz(path) if path.suffix == ".npz" else read_bin(path)


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays in an .npz file by name.

    Raises:
        ModelError: The file is damaged, contains a pickle, or unpacks to more than MAX_UNPACKED times its size.
    """
    try:
        with ZipFile(path) as archive:
            unpacked, packed = sum(item.file_size for item in archive.infolist()), path.stat().st_size
        if unpacked > MAX_UNPACKED * packed:
            raise ModelError(
                f"{path}: {packed} bytes unpack to {unpacked}; accepted: at most {MAX_UNPACKED} times as many"
            )
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except ModelError:
        raise
    except Exception as error:  # NotImplementedError, zlib.error ...: damaged files raise errors of many types
        raise ModelError(f"{path}: damaged, or not an .npz file ({error})") from error


def read_bin(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays in a .bin file by name.

    The file consists of a version, the number of items, four numbers for each item, all names, all shapes, and all
    values.

    Raises:
        ModelError: The file is damaged or has arrays of an unsupported type.
    """
    try:
        content = path.read_bytes()
        version, count = struct.unpack_from("<2Q", content)
        if version != VERSION:
            raise ModelError(f"{path} is a Marian binary file of version {version}; accepted: version {VERSION}")
        return dict(_items(content, count, path))
    except (OSError, struct.error, ValueError) as error:
        raise ModelError(f"{path}: damaged, or not a Marian binary file ({error})") from error


def _items(content: bytes, count: int, path: Path) -> Iterator[tuple[str, np.ndarray]]:
    at = 16 + 32 * count
    headers = list(struct.iter_unpack("<4Q", content[16:at]))  # length of the name, type, dimensions, bytes
    if len(headers) != count:
        raise ValueError(f"the header announces {count} items, but the file has {len(headers)}")
    names = []
    for length, *_ in headers:
        names.append(content[at : at + length].rstrip(b"\0").decode())
        at += length
    packed = [
        f"{name}: type {kind:#x}" for name, (_, kind, *_) in zip(names, headers, strict=True) if kind not in TYPES
    ]
    if packed:
        raise ModelError(
            problems(f"{path} has arrays of unsupported types; accepted: float16, float32, float64", packed)
        )
    shapes = []
    for _, _, dimensions, _ in headers:
        shapes.append(struct.unpack_from(f"<{dimensions}i", content, at))
        at += 4 * dimensions
    at += 8 + struct.unpack_from("<Q", content, at)[0]  # skip the padding; values begin at a multiple of 256
    for name, shape, (_, kind, _, size) in zip(names, shapes, headers, strict=True):
        dtype = np.dtype(TYPES[kind])
        elements = int(np.prod(shape))
        if at + size > len(content) or elements * dtype.itemsize > size:
            raise ValueError(f"the file ends within the values of {name}")
        yield name, np.frombuffer(content, dtype, elements, at).reshape(shape)
        at += size
