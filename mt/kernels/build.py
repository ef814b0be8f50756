"""Where the compiled kernels come from: built ahead into the package, or once on this machine into a cache.

`python -m mt.kernels.build [DIRECTORY]` builds all that this machine's compiler can, for a wheel or an image.
"""

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

SOURCES = Path(__file__).parent / "cpu"
PREBUILT = Path(__file__).parent / "prebuilt"
OPTIONS = ("-std=c++17", "-O3", "-shared", "-fPIC", "-fvisibility=hidden", "-w")


@dataclass(frozen=True)
class Target:
    """An instruction set: the processor flags that it needs, as Linux names them, and the compiler's options."""

    name: str
    flags: frozenset[str]
    options: tuple[str, ...]


V3 = frozenset({"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe"})
V4 = V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
TARGETS = (  # the best first
    Target("avx512vnni", V4 | {"avx512_vnni"}, ("-march=x86-64-v4", "-mavx512vnni")),
    Target("avxvnni", V3 | {"avx_vnni"}, ("-march=x86-64-v3", "-mavxvnni")),
    Target("avx2", V3, ("-march=x86-64-v3",)),
    Target("plain", frozenset(), ()),
)


def fitting_targets() -> list[Target]:
    """The targets that this processor can run, best first."""
    return [target for target in TARGETS if target.flags <= _processor_flags()]


def find_libraries() -> Iterator[Path]:
    """Libraries for this processor, best first, until the caller has found one that it can use.

    A target's library is compiled when the caller asks on after those that are there: there are none, or they do not
    serve. Nothing without a compiler that can.
    """
    cache = _cache()
    for target in fitting_targets():
        for folder in (PREBUILT, cache):
            if folder is not None and _is_sound(path := folder / f"{target.name}.so"):
                yield path
        if cache is not None and (built := compile_library(target, cache)) is not None:
            yield built


def compile_library(target: Target, folder: Path) -> Path | None:
    """Compile for a target into a folder; None if there is no compiler, or it does not know the instructions."""
    compiler = shlex.split(os.environ.get("CXX") or "c++")  # such as "ccache g++"
    if shutil.which(compiler[0]) is None:
        return None
    path = folder / f"{target.name}.so"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder) as aside:  # renamed when whole: others may be building it too
            built = Path(aside) / path.name
            command = [*compiler, *OPTIONS, *target.options, str(SOURCES / "library.cpp"), "-o", str(built)]
            if subprocess.run(command, capture_output=True, check=False).returncode:
                return None
            with built.open("ab") as file:
                file.write(_fingerprint())
            built.replace(path)
    except OSError:
        return None
    return path


@lru_cache(maxsize=1)
def _processor_flags() -> frozenset[str]:
    """What Linux says of the processor; nothing elsewhere."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line.partition(":")[2] for line in lines if line.startswith("flags")), "").split())


def _fingerprint() -> bytes:
    """Of the sources and of how they are compiled; each library ends with it."""
    content = b"".join(path.read_bytes() for path in sorted(SOURCES.iterdir()))
    options = " ".join((*OPTIONS, platform.machine(), *(option for t in TARGETS for option in t.options)))
    return hashlib.sha256(content + options.encode()).hexdigest()[:16].encode()


def _is_sound(path: Path) -> bool:
    """Whether a library was compiled from these sources, and is whole: half of one would kill whoever loads it."""
    expected = _fingerprint()
    try:
        with path.open("rb") as file:
            file.seek(-len(expected), os.SEEK_END)
            return file.read() == expected
    except OSError:  # there is none, or it is shorter than that
        return False


def _cache() -> Path | None:
    """A folder of this user's for what these sources compile to; none for one who has no home."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser(os.path.join("~", ".cache"))
    return Path(root) / "mt-service" / _fingerprint().decode() if os.path.isabs(root) else None


def main(arguments: Sequence[str]) -> int:
    folder = Path(arguments[0]) if arguments else PREBUILT
    targets = TARGETS if platform.machine() == "x86_64" else TARGETS[-1:]
    built = [target.name for target in targets if compile_library(target, folder)]
    print(f"{folder}: {', '.join(built) or 'nothing: no C++ compiler was found'}")
    return 0 if len(built) == len(targets) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
