"""Files of named arrays as safetensors, read and written without torch. Reading runs no code of the file."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, deserialize, safe_open
from safetensors.numpy import save_file

from mt.errors import ModelError, problems

Array = NDArray[Any]
Arrays = Mapping[str, Array]

FLOATS = ("float16", "float32", "float64")
BFLOAT16 = "BF16"
TYPES = {
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
    BFLOAT16: "<u2",
    "I8": "<i1",
    "U8": "<u1",
    "I32": "<i4",
    "I64": "<i8",
}
"""Types of numpy that hold the bytes of an array, by the type's name in a file."""


def load_arrays(path: Path) -> dict[str, Array]:
    """Return the arrays of a safetensors file. Arrays in bfloat16, which numpy lacks, become float32.

    Raises: ModelError if the file is missing, truncated or of another format, or has arrays of another type.
    """
    with opened(path), safe_open(path, "np") as file:
        types = {name: file.get_slice(name).get_dtype() for name in file.keys()}  # noqa: SIM118 (not a dict)
        if wrong := [f"{name} has the type {kind}" for name, kind in types.items() if kind not in TYPES]:
            raise ModelError(problems(f"{path} cannot be read; accepted types: {', '.join(TYPES)}", wrong))
        if BFLOAT16 not in types.values():
            return {name: file.get_tensor(name) for name in types}
        return {name: _decode(fields) for name, fields in deserialize(path.read_bytes())}  # type: ignore[no-untyped-call]


@contextmanager
def opened(path: Path) -> Iterator[None]:
    """Convert the errors of reading a safetensors file into ModelError."""
    try:
        yield
    except FileNotFoundError as error:
        reason = "this user may not read it" if path.exists() else "there is no such file"
        raise ModelError(f"{path}: {reason}; accepted: the weights of a model, as safetensors") from error
    except (SafetensorError, OSError) as error:
        kind = "a pickle, which could run code" if _is_pickle(path) else f"not a complete safetensors file ({error})"
        raise ModelError(f"{path}: {kind}; accepted: the safetensors file that training wrote") from error


@contextmanager
def written(path: Path) -> Iterator[None]:
    """Convert the errors of writing a safetensors file into ModelError. The file gets the access mode of its folder."""
    try:
        yield
    except SafetensorError as error:
        raise ModelError(f"{path}: cannot be written ({error}); accepted: a disk with free space") from error
    path.chmod(path.parent.stat().st_mode & 0o666)  # safetensors grants access to the owner only


def save_arrays(path: Path, arrays: Arrays, metadata: dict[str, str] | None = None) -> None:
    """Write arrays to a safetensors file, with the access permissions of its folder."""
    with written(path):
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path, metadata)


def check_arrays(
    arrays: Arrays, shapes: Mapping[str, tuple[int, ...]], path: Path, types: Sequence[str] = FLOATS
) -> None:
    """Check the weights of a model, which were read from `path`. `types` are the accepted types.

    Raises: ModelError with a list of all arrays that are missing, unknown, not finite, or of a wrong shape or type.
    """
    wrong = [f"{name} is missing" for name in shapes if name not in arrays]
    wrong += [f"{name} is unknown" for name in arrays if name not in shapes]
    for name in shapes.keys() & arrays.keys():
        array = arrays[name]
        if array.shape != shapes[name]:
            wrong.append(f"{name} has the shape {list(array.shape)}, not {list(shapes[name])}")
        elif array.dtype.name not in types:
            wrong.append(f"{name} has the type {array.dtype}; accepted: {', '.join(FLOATS)}, bfloat16")
        elif not np.isfinite(array).all():
            wrong.append(f"{name} has values that are not finite")
    if wrong:
        raise ModelError(problems(f"{path} does not fit its config.json", sorted(wrong)))


def _decode(fields: Mapping[str, Any]) -> Array:
    """Return an array from its bytes. bfloat16 is the upper half of float32."""
    array = np.frombuffer(fields["data"], TYPES[fields["dtype"]]).reshape(fields["shape"])
    return (array.astype(np.uint32) << 16).view(np.float32) if fields["dtype"] == BFLOAT16 else array


def _is_pickle(path: Path) -> bool:
    """Return whether a file begins like a pickle, or like the zip archive with a pickle that torch.save writes."""
    try:
        with path.open("rb") as file:
            begin = file.read(2)
    except OSError:
        return False
    return begin == b"PK" or begin[:1] == b"\x80"
