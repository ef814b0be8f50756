"""Checks that scripts/image.sh runs inside a container of the service, with the standard library only.

python - wait SECONDS        until the service is ready; prints its age and its CPU time, in seconds
python - translate TEXT      prints the translation of TEXT by the first pair of languages
python - long                sends a long request; prints a line when it is accepted, and then whether the answer is
                             complete
python - memory              prints the anonymous memory of all processes, in bytes
python - hardening           checks user, capabilities, file system and packages of the container
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from urllib.request import Request, urlopen

SERVICE = "http://127.0.0.1:8000"
TICKS = os.sysconf("SC_CLK_TCK")
TOOLS = ("cc", "c++", "gcc", "g++", "clang", "make", "pip", "pip3", "git")
WORDS = ("man", "woman", "dog", "boy", "girl", "ball", "street")
LONG = "\n".join(f"A {a} and a {b} look at a {c}." for a, b, c in product(WORDS, repeat=3))


def wait(seconds: str) -> int:
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end:
        try:
            with urlopen(f"{SERVICE}/readyz", timeout=2):
                print(f"{_age(1):.1f} {sum(map(_cpu_time, _processes())):.1f}")
                return 0
        except OSError:
            time.sleep(0.1)
    return 1


def translate(text: str) -> int:
    print(_translated(text))
    return 0


def long() -> int:
    with ThreadPoolExecutor(1) as pool:
        response = pool.submit(_translated, LONG)
        while not response.done():
            with urlopen(f"{SERVICE}/metrics", timeout=10) as answer:
                if "mt_pending_requests 1.0" in answer.read().decode():
                    print("accepted", flush=True)
                    break
        print("answered" if response.result().count("\n") == LONG.count("\n") else "incomplete")
    return 0


def memory() -> int:
    print(sum(map(_anonymous, _processes())))
    return 0


def hardening() -> int:
    failed = 0
    for promise, kept in _promises():
        print(f"{'ok   ' if kept else 'FAIL '} {promise}")
        failed += not kept
    return 1 if failed else 0


def _promises() -> Iterator[tuple[str, bool]]:
    status = dict(line.split(":\t", 1) for line in Path("/proc/1/status").read_text().splitlines() if ":\t" in line)
    yield "the service runs as another user than root", "0" not in status["Uid"].split()
    yield "the service has no capabilities", int(status["CapEff"], 16) == 0 and int(status["CapPrm"], 16) == 0
    yield (
        "the service cannot gain privileges, and system calls are filtered",
        (status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2"),
    )
    roots = [line.split() for line in Path("/proc/1/mounts").read_text().splitlines() if line.split()[1] == "/"]
    yield "the root file system is read-only", all("ro" in root[3].split(",") for root in roots)
    tools = [tool for tool in TOOLS if shutil.which(tool)] + [name for name in ("pip", "ensurepip") if find_spec(name)]
    yield f"neither compiler nor pip is installed{': ' if tools else ''}{', '.join(tools)}", not tools
    yield "the kernels are prebuilt", any(Path("/app/mt/kernels/prebuilt").glob("*.so"))
    bill = json.loads(Path("/app/sbom.cdx.json").read_text())
    listed = {part["name"] for part in bill["components"]}
    yield "the bill of materials is complete", "fastapi" in listed and ("torch" in listed) == bool(find_spec("torch"))
    left = [
        path for path in (Path("/etc/pip.conf"), *Path("/mnt").iterdir(), *Path("/build").glob("*")) if path.exists()
    ]
    yield f"no files of the build are left{': ' if left else ''}{', '.join(map(str, left))}", not left


def _translated(text: str) -> str:
    with urlopen(f"{SERVICE}/languages", timeout=10) as answer:
        language = next(entry for entry in json.load(answer) if entry["targets"])
    body: Mapping[str, str] = {"q": text, "source": language["code"], "target": language["targets"][0]}
    request = Request(f"{SERVICE}/translate", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=120) as answer:
        return str(json.load(answer)["translatedText"])


def _processes() -> list[int]:
    """Return the ids of all processes except this one."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) != os.getpid()]


def _times(process: int) -> list[str]:
    """Return the fields of /proc/PROCESS/stat from the third one (proc(5)); an empty list if the process has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _age(process: int) -> float:
    """Return the seconds since a process started."""
    return float(Path("/proc/uptime").read_text().split()[0]) - int(_times(process)[19]) / TICKS


def _cpu_time(process: int) -> float:
    """Return the CPU time of a process, in seconds."""
    return sum(map(int, _times(process)[11:13])) / TICKS


def _anonymous(process: int) -> int:
    """Return the anonymous memory of a process, in bytes."""
    try:
        lines = [line.split() for line in Path(f"/proc/{process}/status").read_text().splitlines()]
    except OSError:
        return 0
    return next((1024 * int(line[1]) for line in lines if line[0] == "RssAnon:"), 0)


VERBS: Mapping[str, Callable[..., int]] = {
    "wait": wait,
    "translate": translate,
    "long": long,
    "memory": memory,
    "hardening": hardening,
}

if __name__ == "__main__":
    sys.exit(VERBS[sys.argv[1]](*sys.argv[2:]))
