"""What scripts/image.sh asks from inside a container of ours; needs nothing but Python's own library.

python - wait SECONDS        until the service is ready; prints its age then, and the processor's time that it took
python - translate TEXT      prints the translation into the first language that it speaks
python - long                a request that takes a while; prints a line when it has been accepted, and then whether
                             all of it was answered
python - memory              bytes that the processes hold of their own
python - house               whether what surrounds the service is as hardened as it was asked for
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
                print(f"{_age(1):.1f} {sum(map(_worked, _processes())):.1f}")
                return 0
        except OSError:
            time.sleep(0.1)
    return 1


def translate(text: str) -> int:
    print(_translated(text))
    return 0


def long() -> int:
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(_translated, LONG)
        while not asked.done():
            with urlopen(f"{SERVICE}/metrics", timeout=10) as answer:
                if "mt_pending_requests 1.0" in answer.read().decode():
                    print("accepted", flush=True)
                    break
        print("answered" if asked.result().count("\n") == LONG.count("\n") else "not all of it")
    return 0


def memory() -> int:
    print(sum(map(_anonymous, _processes())))
    return 0


def house() -> int:
    failed = 0
    for promise, kept in _promises():
        print(f"{'ok   ' if kept else 'FAIL '} {promise}")
        failed += not kept
    return 1 if failed else 0


def _promises() -> Iterator[tuple[str, bool]]:
    status = dict(line.split(":\t", 1) for line in Path("/proc/1/status").read_text().splitlines() if ":\t" in line)
    yield "the service runs as another user than root", "0" not in status["Uid"].split()
    yield "it holds no capability", int(status["CapEff"], 16) == 0 and int(status["CapPrm"], 16) == 0
    yield (
        "it can gain no privileges, and a filter of system calls is on",
        (status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2"),
    )
    roots = [line.split() for line in Path("/proc/1/mounts").read_text().splitlines() if line.split()[1] == "/"]
    yield "its root is read-only", all("ro" in root[3].split(",") for root in roots)
    found = [tool for tool in TOOLS if shutil.which(tool)] + [each for each in ("pip", "ensurepip") if find_spec(each)]
    yield f"neither compiler nor pip is there{': ' if found else ''}{', '.join(found)}", not found
    yield "the kernels are prebuilt", any(Path("/app/mt/kernels/prebuilt").glob("*.so"))
    bill = json.loads(Path("/app/sbom.cdx.json").read_text())
    yield "its bill of materials is there", {"torch", "fastapi"} <= {each["name"] for each in bill["components"]}
    left = [
        path for path in (Path("/etc/pip.conf"), *Path("/mnt").iterdir(), *Path("/build").glob("*")) if path.exists()
    ]
    yield f"nothing is left of the build{': ' if left else ''}{', '.join(map(str, left))}", not left


def _translated(text: str) -> str:
    with urlopen(f"{SERVICE}/languages", timeout=10) as answer:
        language = next(each for each in json.load(answer) if each["targets"])
    body: Mapping[str, str] = {"q": text, "source": language["code"], "target": language["targets"][0]}
    request = Request(f"{SERVICE}/translate", json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urlopen(request, timeout=120) as answer:
        return str(json.load(answer)["translatedText"])


def _processes() -> list[int]:
    """But this one."""
    return [int(each) for each in os.listdir("/proc") if each.isdigit() and int(each) != os.getpid()]


def _times(process: int) -> list[str]:
    """As in proc(5), from the third field on; none if it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _age(process: int) -> float:
    """Seconds."""
    return float(Path("/proc/uptime").read_text().split()[0]) - int(_times(process)[19]) / TICKS


def _worked(process: int) -> float:
    """Seconds on a processor."""
    return sum(map(int, _times(process)[11:13])) / TICKS


def _anonymous(process: int) -> int:
    """Bytes."""
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
    "house": house,
}

if __name__ == "__main__":
    sys.exit(VERBS[sys.argv[1]](*sys.argv[2:]))
