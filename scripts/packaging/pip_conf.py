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
    settings: dict[str, list[str]] = {}
    for line in listed.stdout.splitlines():
        key, _, value = line.partition("=")
        name = key.rpartition(".")[2]
        if name in KEPT:
            words = settings.setdefault(name, [])
            words += [word for word in str(ast.literal_eval(value)).split() if word not in words]
    mounts: dict[Path, Path] = {}
    for name in PLACES:
        if name in settings:
            settings[name] = [_container_address(word, folder, mounts) for word in settings[name]]
    if "cert" in settings:
        shutil.copyfile(settings["cert"][-1], folder / "ca.crt")
        settings["cert"] = [str(MOUNTED / "ca.crt")]
    if settings:
        lines = [f"{name} = {' '.join(words)}" for name, words in settings.items()]
        (folder / "pip.conf").write_text("\n".join(["[global]", *lines, ""]), encoding="utf-8")
    for host_path, container_path in mounts.items():
        print(f"{host_path}:{container_path}")
    return 0


def _container_address(word: str, folder: Path, mounts: dict[Path, Path]) -> str:
    """Return the address in the container. An index on the disk links to its parent folder, which is mounted, too."""
    scheme = "file://" if word.startswith("file://") else ""
    path = Path(word.removeprefix(scheme))
    if not path.is_absolute() or not path.is_dir():
        return word
    index = path.name == "simple"
    host_path = path.parent if index else path
    if host_path not in mounts:
        mounts[host_path] = MOUNTED / str(len(mounts))
        (folder / mounts[host_path].name).mkdir(exist_ok=True)
    return scheme + str(mounts[host_path] / path.name if index else mounts[host_path])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
