"""Reading and writing of named arrays as safetensors files, without torch. Reading never runs code from the file."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from mt.errors import ModelError, problems

Array = NDArray[Any]
Arrays = Mapping[str, Array]

FLOATS = ("float16", "float32", "float64")
MAX_PROBLEMS = 10  # arrays that a message lists
BFLOAT16 = "BF16"
TYPES = {
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
    BFLOAT16: "<u2",
    "I8": "<i1",
    "U8": "<u1",
    "U16": "<u2",
    "I32": "<i4",
    "I64": "<i8",
}
"""NumPy type in which the bytes of an array are read, for each type name of the safetensors format."""
NAMES = {np.dtype(kind): name for name, kind in TYPES.items() if name != BFLOAT16}

Layout = Mapping[str, tuple[str, tuple[int, ...]]]
"""Name of the NumPy type and shape of each array in a file, by the name of the array."""


def load_arrays(path: Path) -> dict[str, Array]:
    """Return the arrays in a safetensors file, mapped as `map_arrays` does, except for bfloat16, which becomes float32.

    Raises:
        ModelError: The same as for `map_arrays`.
    """
    return {
        name: (array.astype(np.uint32) << 16).view(np.float32) if kind == BFLOAT16 else array  # the upper half
        for name, (kind, array) in map_arrays(path).items()
    }


def map_arrays(path: Path) -> dict[str, tuple[str, Array]]:
    """Return (type name, array) for each name in a safetensors file. Arrays in bfloat16, which NumPy lacks, are uint16.

    All arrays are memory-mapped: they take memory only where a caller changes them, and changes are not written to the
    file.

    Raises:
        ModelError: The file is missing, truncated or of another format, or has arrays of a type that is not in TYPES.
    """
    with reading(path), safe_open(path, "np"):  # checks the header and the size of the file
        content = np.asarray(np.memmap(path, np.uint8, "c"))
    begin = 8 + int.from_bytes(content[:8].tobytes(), "little")
    header: dict[str, Any] = json.loads(content[8:begin].tobytes())
    header.pop("__metadata__", None)
    if wrong := [f"{name} has the type {of['dtype']}" for name, of in header.items() if of["dtype"] not in TYPES]:
        raise ModelError(problems(f"{path} cannot be read; accepted types: {', '.join(TYPES)}", wrong))
    return {name: (fields["dtype"], _view(content[begin:], fields)) for name, fields in header.items()}


def average_arrays(paths: Sequence[Path]) -> dict[str, Array]:
    """Return the mean of each array over several files, in float32 (Vaswani et al. 2017, section 6.1).

    Raises:
        ModelError: A file cannot be read, or its arrays have other names or shapes than those of the first file.
    """
    sums = {name: array.astype(np.float64) for name, array in load_arrays(paths[0]).items()}
    for path in paths[1:]:
        arrays = load_arrays(path)
        if {name: array.shape for name, array in arrays.items()} != {name: total.shape for name, total in sums.items()}:
            raise ModelError(
                f"{path}: the arrays have other names or shapes than in {paths[0]}; accepted: checkpoints of one model"
            )
        for name, array in arrays.items():
            sums[name] += array
    return {name: (total / len(paths)).astype(np.float32) for name, total in sums.items()}


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raise ModelError if the block fails to read the safetensors file `path`."""
    try:
        yield
    except FileNotFoundError as error:
        reason = "permission denied" if path.exists() else "there is no such file"
        raise ModelError(f"{path}: {reason}; accepted: a safetensors file with the weights of a model") from error
    except (SafetensorError, OSError) as error:
        kind = _other_kind(path) or f"not a complete safetensors file ({error})"
        raise ModelError(f"{path}: {kind}; accepted: the safetensors file that training wrote") from error


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise ModelError if the block fails to write the safetensors file `path`.

    After the block, the file gets the access permissions of its folder.
    """
    try:
        yield
    except OSError as error:
        raise ModelError(f"{path}: cannot be written ({error}); accepted: a disk with free space") from error
    path.chmod(path.parent.stat().st_mode & 0o666)  # safetensors grants access to the owner only


def save_arrays(path: Path, arrays: Arrays, metadata: dict[str, str] | None = None) -> None:
    """Write arrays to a safetensors file. The file gets the access permissions of its folder."""
    layout = {name: (array.dtype.name, array.shape) for name, array in arrays.items()}
    write_arrays(path, layout, arrays.items(), metadata)


def write_arrays(
    path: Path, layout: Layout, arrays: Iterable[tuple[str, Array]], metadata: dict[str, str] | None = None
) -> None:
    """Write named arrays to a safetensors file, one at a time, so that only one is in memory.

    `layout` states the type and the shape of every array in `arrays`.
    """
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    end = 0
    for name in sorted(layout, key=lambda name: (-np.dtype(layout[name][0]).itemsize, name)):  # aligns all numbers
        dtype, shape = np.dtype(layout[name][0]), layout[name][1]
        begin, end = end, end + math.prod(shape) * dtype.itemsize
        header[name] = {"dtype": NAMES[dtype], "shape": shape, "data_offsets": (begin, end)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with writing(path), path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for name, array in arrays:
            assert (array.dtype.name, array.shape) == layout[name], f"{name} does not have the stated type and shape"
            file.seek(8 + len(text) + header[name]["data_offsets"][0])
            file.write(np.ascontiguousarray(array).reshape(-1).data)


def check_arrays(
    arrays: Arrays, shapes: Mapping[str, tuple[int, ...]], path: Path, types: Sequence[str] = FLOATS
) -> None:
    """Check the arrays read from `path`: names and shapes must be those in `shapes`, and types must be in `types`.

    Raises:
        ModelError: Arrays are missing, unknown, not finite, or of a wrong shape or type. The message lists them.
    """
    wrong = [f"{name} is missing" for name in shapes if name not in arrays]
    wrong += [f"{name} is unknown" for name in arrays if name not in shapes]
    for name in shapes.keys() & arrays.keys():
        array = arrays[name]
        if array.shape != shapes[name]:
            wrong.append(f"{name} has the shape {list(array.shape)}, not {list(shapes[name])}")
        elif array.dtype.name not in types:
            wrong.append(f"{name} has the type {array.dtype}; accepted: {', '.join(FLOATS)}, bfloat16")
        elif not _is_finite(array):
            wrong.append(f"{name} has values that are not finite")
    if wrong:
        more = [f"and {len(wrong) - MAX_PROBLEMS} more"] if len(wrong) > MAX_PROBLEMS else []
        raise ModelError(problems(f"{path} does not fit its config.json", [*sorted(wrong)[:MAX_PROBLEMS], *more]))


def _is_finite(array: Array) -> bool:
    """Return whether no value is infinite or NaN. This does not copy the array."""
    return not array.size or bool(np.isfinite(array.min()) and np.isfinite(array.max()))


def _view(content: NDArray[np.uint8], fields: Mapping[str, Any]) -> Array:
    """Return the array that `fields`, an entry of the header, describes in `content`, the bytes after the header."""
    begin, end = fields["data_offsets"]
    array = np.require(content[begin:end].view(TYPES[fields["dtype"]]), requirements="A")
    return array.reshape(fields["shape"])


def _other_kind(path: Path) -> str:
    """Return what a file is that is a pickle, an archive of torch.save or a pointer of Git LFS, otherwise ""."""
    try:
        with path.open("rb") as file:
            begin = file.read(15)
    except OSError:
        return ""
    if begin == b"version https:/":
        return "a pointer of Git LFS in place of the file, which `git lfs pull` gets"
    return "a pickle, which could run code" if begin.startswith((b"PK", b"\x80")) else ""
