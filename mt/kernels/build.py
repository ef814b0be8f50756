"""Build of the compiled kernels: in advance for a package, or at their first use into a cache folder.

`python -m mt.kernels.build [DIRECTORY]` builds the kernels for a wheel or an image: for every target that this
machine's compiler supports.
"""

import fcntl
import hashlib
import logging
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

SOURCES = Path(__file__).parent / "cpu"
PREBUILT = Path(__file__).parent / "prebuilt"
WARNINGS = ("-Wall", "-Wextra")
OPTIONS = ("-std=c++17", "-O3", "-falign-loops=64", "-shared", "-fPIC", "-pthread", "-fvisibility=hidden", *WARNINGS)

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Target:
    """Instruction set for which the kernels are compiled.

    `flags` are the processor flags that it needs (names as in /proc/cpuinfo), and `options` the compiler options.
    """

    name: str
    machine: str  # as platform.machine() returns it; "" for every machine
    flags: frozenset[str]
    options: tuple[str, ...]

    def compiles_on(self, machine: str) -> bool:
        """Return whether a compiler on a machine of the type `machine` knows the options."""
        return self.machine in ("", machine)


V3 = frozenset({"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe"})
V4 = V3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}
TARGETS = (  # fastest first
    Target("avx512vnni", "x86_64", V4 | {"avx512_vnni"}, ("-march=x86-64-v4", "-mavx512vnni")),
    Target("avxvnni", "x86_64", V3 | {"avx_vnni"}, ("-march=x86-64-v3", "-mavxvnni")),
    Target("avx2", "x86_64", V3, ("-march=x86-64-v3",)),
    Target("dotprod", "aarch64", frozenset({"asimddp"}), ("-march=armv8.2-a+dotprod",)),
    Target("plain", "", frozenset(), ()),  # on aarch64 with NEON, which every such processor has
)


def fitting_targets(machine: str = "", cpuinfo: str | None = None) -> list[Target]:
    """Return the targets that a processor can run, fastest first.

    By default it is this processor. `machine` is what platform.machine() returns, `cpuinfo` the text of /proc/cpuinfo.
    """
    machine = machine or platform.machine()
    flags = _processor_flags() if cpuinfo is None else _parse_flags(cpuinfo)
    return [target for target in TARGETS if target.compiles_on(machine) and target.flags <= flags]


def find_libraries() -> Iterator[Path]:
    """Yield libraries for this processor, fastest first. The caller stops at the first library that can be loaded.

    For each target, existing libraries are yielded first. If the caller continues, the target is compiled.
    """
    cache = cache_folder()
    for target in fitting_targets():
        if _is_sound(path := PREBUILT / f"{target.name}.so"):
            yield path
        if cache is not None and _is_sound(path := cache / f"{target.name}.so"):
            yield path
            path.unlink(missing_ok=True)  # perhaps another machine made it
        if cache is not None and (built := compile_library(target, cache)) is not None:
            yield built


def compile_library(target: Target, folder: Path) -> Path | None:
    """Compile the library of `target` into `folder`, unless it is there, and return its path.

    If another process compiles it, wait for that process. If compiling fails, log the reason and return None.
    """
    compiler = shlex.split(os.environ.get("CXX") or "c++")  # for example "ccache g++"
    if shutil.which(compiler[0]) is None:
        logger.info("CPU kernels for %s: there is no compiler %r; CXX may name another", target.name, compiler[0])
        return None
    path = folder / f"{target.name}.so"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder), TemporaryDirectory(dir=folder) as temporary:
            if _is_sound(path):
                return path
            built = Path(temporary) / path.name
            command = [*compiler, *OPTIONS, *target.options, str(SOURCES / "library.cpp"), "-o", str(built)]
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
            if done.returncode:
                logger.warning("CPU kernels for %s: %s failed:\n%s", target.name, shlex.join(command), done.stderr)
                return None
            with built.open("ab") as file:
                file.write(_fingerprint())
            built.replace(path)
    except OSError as error:
        logger.warning("CPU kernels for %s: %s cannot be written: %s", target.name, path, error)
        return None
    return path


@contextmanager
def _locked(folder: Path) -> Iterator[None]:  # the build of a wheel runs this file without other packages
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@lru_cache(maxsize=1)
def _processor_flags() -> frozenset[str]:
    """Return the flags in /proc/cpuinfo, or an empty set if the file does not exist."""
    try:
        return _parse_flags(Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return frozenset()


def _parse_flags(cpuinfo: str) -> frozenset[str]:
    """Return the flags of the first processor in the text of /proc/cpuinfo. On ARM the line is named "Features"."""
    lines = (line for line in cpuinfo.splitlines() if line.startswith(("flags", "Features")))
    return frozenset(next(lines, "").partition(":")[2].split())


def _fingerprint() -> bytes:
    """Return a digest of the sources and the compiler options. Each library ends with this digest."""
    content = b"".join(path.read_bytes() for path in sorted(SOURCES.iterdir()))
    options = " ".join((*OPTIONS, platform.machine(), *(option for t in TARGETS for option in t.options)))
    return hashlib.sha256(content + options.encode()).hexdigest()[:16].encode()


def _is_sound(path: Path) -> bool:
    """Return whether a file is a complete library that was compiled from these sources.

    A truncated library could crash the process.
    """
    expected = _fingerprint()
    try:
        with path.open("rb") as file:
            file.seek(-len(expected), os.SEEK_END)
            return file.read() == expected
    except OSError:  # missing, or shorter than a digest
        return False


def cache_folder() -> Path | None:
    """Return the user's cache folder for kernels from these sources, or None if the user has no home directory."""
    root = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser(os.path.join("~", ".cache"))
    return Path(root) / "mt-service" / _fingerprint().decode() if os.path.isabs(root) else None


def main(arguments: Sequence[str]) -> int:
    folder = Path(arguments[0]) if arguments else PREBUILT
    targets = [target for target in TARGETS if target.compiles_on(platform.machine())]
    logging.basicConfig(format="%(message)s", level=logging.INFO)
    built = [target.name for target in targets if compile_library(target, folder)]
    print(f"{folder}: {', '.join(built) or 'no library was built'}")
    return 0 if len(built) == len(targets) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
