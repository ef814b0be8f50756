"""Convert the pip settings of this machine for a build in a container: `python pip_conf.py FOLDER`.

FOLDER/pip.conf refers to indexes on this machine's disk by paths below /mnt, where FOLDER is mounted. Prints the
further mounts as HOST_PATH:CONTAINER_PATH. Writes nothing if pip has no settings.
"""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

MOUNTED = Path("/mnt")
PLACES = ("index-url", "extra-index-url", "find-links")
KEPT = (*PLACES, "trusted-host", "proxy", "cert")


def main(folder: Path) -> int:
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False
    )
    found: dict[str, list[str]] = {}
    for line in listed.stdout.splitlines():
        key, _, value = line.partition("=")
        name = key.rpartition(".")[2]
        if name in KEPT:
            words = found.setdefault(name, [])
            words += [word for word in str(ast.literal_eval(value)).split() if word not in words]
    mounts: dict[Path, Path] = {}
    for name in PLACES:
        if name in found:
            found[name] = [_seen_from_inside(word, folder, mounts) for word in found[name]]
    if "cert" in found:
        shutil.copyfile(found["cert"][-1], folder / "ca.crt")
        found["cert"] = [str(MOUNTED / "ca.crt")]
    if found:
        lines = [f"{name} = {' '.join(words)}" for name, words in found.items()]
        (folder / "pip.conf").write_text("\n".join(["[global]", *lines, ""]), encoding="utf-8")
    for here, there in mounts.items():
        print(f"{here}:{there}")
    return 0


def _seen_from_inside(word: str, folder: Path, mounts: dict[Path, Path]) -> str:
    """Return the address in the container; an index on the disk is mounted with its folder, which it links to."""
    scheme = "file://" if word.startswith("file://") else ""
    path = Path(word.removeprefix(scheme))
    if not path.is_absolute() or not path.is_dir():
        return word
    index = path.name == "simple"
    here = path.parent if index else path
    if here not in mounts:
        mounts[here] = MOUNTED / str(len(mounts))
        (folder / mounts[here].name).mkdir(exist_ok=True)
    return scheme + str(mounts[here] / path.name if index else mounts[here])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
