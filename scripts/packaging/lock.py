"""Write the lock files in requirements/ with uv: `python scripts/packaging/lock.py [--upgrade] [--torch-index URL]`.

The present versions are kept; `--upgrade` takes the newest that pyproject.toml allows. `--torch-index` names PyTorch's
index of CPU builds: without it, torch-cpu.lock is not written.
"""

import argparse
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ROOT / "requirements"
CUDA = re.compile(r"(torch|triton|nvidia-[\w-]+|cuda-[\w-]+)[=>]=")
"""First words of the entries that a CPU build of torch replaces."""

WRITTEN = "# Written by scripts/packaging/lock.py. "


def compile_lock(name: str, *words: str, requirement: str = "") -> list[str]:
    """Update requirements/NAME.lock, keep its versions, return its entries; `-` in `words` reads `requirement`."""
    file = LOCKS / f"{name}.lock"
    subprocess.run(
        [
            *("uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11", "--no-header"),
            *("--no-annotate", "--no-emit-index-url", "--output-file", file, *words),
        ],
        cwd=ROOT,
        input=requirement,
        text=True,
        check=True,
    )
    return re.findall(r"^[^\s#].*(?:\n[ ]+.*)*", file.read_text(encoding="utf-8"), re.MULTILINE)


def write(name: str, purpose: str, entries: list[str]) -> None:
    text = "\n".join([WRITTEN + purpose, *entries, ""])
    (LOCKS / f"{name}.lock").write_text(text, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions that pyproject.toml allows")
    parser.add_argument("--torch-index", metavar="URL", help="PyTorch's index of CPU builds")
    options = parser.parse_args()
    upgrade = ["--upgrade"] if options.upgrade else []

    development = compile_lock("development", "pyproject.toml", "--extra", "dev", *upgrade)
    write("development", "Versions of all packages, for scripts/setup.sh: constraints, without hashes.", development)
    hashed = ["--generate-hashes", "--constraint", "requirements/development.lock"]
    dependencies = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    service = compile_lock("service", "-", *hashed, requirement="\n".join(dependencies))
    write("service", "What the service needs on a CPU.", service)
    torch = compile_lock("torch", "pyproject.toml", "--extra", "gpu", *hashed)
    rest = [entry for entry in torch if entry not in service]
    write("torch", "What torch needs beside service.lock.", [entry for entry in rest if not CUDA.match(entry)])
    write("torch-cuda", "torch with CUDA.", [entry for entry in rest if CUDA.match(entry)])
    write("release", "What builds a release.", compile_lock("release", "--group", "release", *hashed))
    if options.torch_index:
        (version,) = re.findall(r"^torch==([\d.]+)", "\n".join(development), re.MULTILINE)
        words = ["-", "--generate-hashes", "--no-deps", "--index-url", options.torch_index]
        entries = compile_lock("torch-cpu", *words, requirement=f"torch=={version}+cpu")
        write("torch-cpu", "torch for CPUs, from PyTorch's index.", entries)
    return 0


if __name__ == "__main__":
    sys.exit(main())
