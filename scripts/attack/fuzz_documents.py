"""Fuzzer for documents: `python -m scripts.attack.fuzz_documents --count 20000 --seed 1 [--service] [SUFFIX ...]`.

Without `--service`, each mutated document is opened and rendered in a process of limited time and memory: accepted are
a result or a DocumentError, within limits that grow with the size. With it, the documents are uploaded to a service.
Prints the failures, and the slowest document of each format for its size.
"""

import argparse
import io
import re
import resource
import sys
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import chain
from multiprocessing import get_context
from pathlib import Path

from mt.errors import DocumentError
from mt.text.documents import DocumentOptions, open_document
from mt.text.markup import TranslatedSegment
from scripts.attack.fuzz_service import attack_service
from scripts.attack.mutations import MutatedDocument, mutate, seeds
from scripts.attack.target import ServiceProcess

HANG_SECONDS = 20  # of processor time
MAX_BYTES_OF_MEMORY = 3_000_000_000
BASE_SECONDS, SECONDS_PER_KILOBYTE = 0.3, 0.05  # of processor time
BASE_MEMORY, MEMORY_PER_BYTE = 50_000_000, 2000
LOSSLESS = (".txt", ".html", ".xml", ".md", ".srt", ".vtt", ".json", ".ftl")  # as open_document says
WARM_UP = 2000  # documents before the memory of a service counts


@dataclass(frozen=True)
class FuzzedDocument:
    """A mutated document and what came of it; `outcome` is "rendered", "refused", or begins with "FAILED"."""

    key: str
    suffix: str
    size: int
    steps: tuple[str, ...]
    outcome: str
    seconds: float = 0.0

    @property
    def seconds_per_kilobyte(self) -> float:
        return self.seconds / max(1.0, self.size / 1024)

    def __str__(self) -> str:
        return (
            f"{self.key:<10} {self.suffix:<6} {self.size:>7} bytes {1000 * self.seconds:>7.0f} ms "
            f"{1000 * self.seconds_per_kilobyte:>6.1f} ms/KB  {self.outcome}: {'; '.join(self.steps)}"
        )


def check(name: str, content: bytes, changed: bool) -> str:
    """Open and render a document, with its own texts or with changed ones. Returns the outcome."""
    try:
        document = open_document(name, content, DocumentOptions(target_language="de"))
        translations = [TranslatedSegment(segment.text) for segment in document.segments]
        if changed:
            for number, segment in enumerate(document.segments):
                words = [match.span() for match in re.finditer(r"\w+", segment.text)]
                translations[number] = TranslatedSegment(segment.text + "!", tuple((word, word) for word in words))
        rendered = document.render(translations)
    except DocumentError:
        return "refused"
    except Exception:
        return "FAILED " + " | ".join(traceback.format_exc(limit=-2).strip().splitlines()[-3:])
    if not changed and name.endswith(LOSSLESS) and rendered != content:
        return "FAILED not rendered byte for byte the same"
    return "rendered"


def unpacked_size(content: bytes) -> int:
    """Return the size of a file or, if it is larger, of the members of an archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return max(len(content), sum(info.file_size for info in archive.infolist()))
    except Exception:  # zipfile raises errors of many kinds for damaged archives
        return len(content)


def prepare(suffixes: Sequence[str]) -> None:
    """Limit the memory of a process, and open all seeds: imports and caches cost the first document nothing then."""
    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES_OF_MEMORY, resource.RLIM_INFINITY))
    for name, content in seeds(suffixes).items():
        check(name, content, changed=True)


def measured_check(name: str, content: bytes, changed: bool) -> tuple[str, float]:
    """Return the outcome of a document, and its processor time. The system kills a process that hangs."""
    limit = int(time.process_time()) + HANG_SECONDS + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
    memory, start, size = (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        time.process_time(),
        unpacked_size(content),
    )
    outcome = check(name, content, changed)
    seconds = time.process_time() - start
    memory = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory)
    if not outcome.startswith("FAILED"):
        if seconds > BASE_SECONDS + SECONDS_PER_KILOBYTE * size / 1024:
            outcome = f"FAILED: {seconds:.1f} s of processor time"
        elif memory > BASE_MEMORY + MEMORY_PER_BYTE * size:
            outcome = f"FAILED: {memory:,} bytes of memory"
    return outcome, seconds


def checking(suffixes: Sequence[str]) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, get_context("spawn"), prepare, (suffixes,))


def run(keys: Iterable[str], suffixes: Sequence[str] = ()) -> Iterator[FuzzedDocument]:
    """Check the documents of all keys in a process; a new one takes its place if it hangs or dies."""
    documents, pool = seeds(suffixes), checking(suffixes)
    for key in keys:
        mutated = mutate(documents, key)
        changed = int(key.rpartition("/")[2]) % 2 == 1
        try:
            outcome, seconds = pool.submit(measured_check, mutated.name, mutated.content, changed).result()
        except BrokenProcessPool:
            outcome, seconds = f"FAILED: the process died, or hung for {HANG_SECONDS} s", float(HANG_SECONDS)
            pool = checking(suffixes)
        suffix, size = mutated.name.rpartition(".")[2], unpacked_size(mutated.content)
        yield FuzzedDocument(key, suffix, size, mutated.steps, outcome, seconds)
    pool.shutdown()


def upload(target: ServiceProcess, document: MutatedDocument, caller: str) -> tuple[int, str]:
    """Upload a document, again while the queue is full. Return the status, and the promise that is broken or ""."""
    answer = target.upload(document.name, document.content, caller=caller, timeout=90)
    while answer.status == 503:
        time.sleep(0.2)
        answer = target.upload(document.name, document.content, caller=caller, timeout=90)
    accepted = answer.status in (200, 400, 413, 422)
    return answer.status, "" if accepted else f"{answer.status} {answer.body[:200]!r} {document.name} {document.steps}"


def upload_all(keys: Iterable[str], suffixes: Sequence[str] = (), warm_up: int = WARM_UP) -> list[str]:
    """Upload `warm_up` other documents and then those of all keys to a service. Print the statuses of the latter.

    Returns the broken promises.
    """
    documents = seeds(suffixes)
    settings = {"MT_MAX_DOCUMENT_CHARACTERS": "3000", "MT_FILE_RETENTION_SECONDS": "1"}
    first = (f"warm-up/{number}" for number in range(warm_up))
    return attack_service(settings, (mutate(documents, key) for key in chain(first, keys)), upload, warm_up)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=500, help="number of documents (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of all of them (%(default)s)")
    parser.add_argument("--key", help="check this document only, and write it to a file of the current folder")
    parser.add_argument("--service", action="store_true", help="upload the documents to a service")
    parser.add_argument("suffixes", nargs="*", metavar="SUFFIX", help="check these formats only, such as pdf")
    options = parser.parse_args()
    keys = [options.key] if options.key else [f"{options.seed}/{number}" for number in range(options.count)]
    if options.key:
        mutated = mutate(seeds(options.suffixes), options.key)
        Path(f"fuzzed-{mutated.name}").write_bytes(mutated.content)
    if options.service:
        problems = upload_all(keys, options.suffixes)
        print(*problems[:20], sep="\n")
        return bool(problems)
    counts: Counter[tuple[str, str]] = Counter()
    slowest: dict[str, FuzzedDocument] = {}
    for case in run(keys, options.suffixes):
        if case.outcome.startswith("FAILED"):
            print(case, flush=True)
        counts[case.suffix, case.outcome.split(" ")[0].rstrip(":")] += 1
        slowest[case.suffix] = max(slowest.get(case.suffix, case), case, key=lambda one: one.seconds_per_kilobyte)
    for (suffix, outcome), count in sorted(counts.items()):
        print(f"{suffix:<6} {outcome:<9} {count:>6}")
    print("\nSlowest for their size", *slowest.values(), sep="\n")
    return any(outcome == "FAILED" for _, outcome in counts)


if __name__ == "__main__":
    sys.exit(main())
