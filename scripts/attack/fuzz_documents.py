"""Fuzzer for documents: `python -m scripts.attack.fuzz_documents --count 20000 --seed 1 [--service] [SUFFIX ...]`.

Without `--service`, each mutated document is opened and rendered in a process that is watched: accepted are a result
or a DocumentError, within limits of processor time and memory. With it, the documents are uploaded to a service. Prints
the failures, the slowest documents, and their processor time at twice and four times the size.
"""

import argparse
import io
import math
import multiprocessing
import os
import re
import resource
import sys
import time
import traceback
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from mt.errors import DocumentError
from mt.text.documents import DocumentOptions, open_document
from mt.text.markup import TranslatedSegment
from scripts.attack.fuzz_service import upload_all
from scripts.attack.mutations import mutate, seeds

HANG_SECONDS = 20.0  # of processor time
MAX_BYTES_OF_MEMORY = 3_000_000_000
NOISE_SECONDS = 0.05
BASE_SECONDS, SECONDS_PER_KILOBYTE = 0.3, 0.05  # of processor time
BASE_MEMORY, MEMORY_PER_BYTE = 50_000_000, 2000
LOSSLESS = (".txt", ".html", ".xml", ".md", ".srt", ".vtt", ".json", ".ftl")  # as open_document says
KEPT = 6  # slowest documents of each format whose growth is measured


@dataclass(frozen=True)
class FuzzedDocument:
    """A mutated document and what came of it; `outcome` is "rendered", "refused", or begins with "FAILED"."""

    key: str
    suffix: str
    size: int
    steps: tuple[str, ...]
    outcome: str
    seconds: float = 0.0
    memory: int = 0

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


def work(requests: Connection, suffixes: Sequence[str]) -> None:
    """Answer each received key and scale with its case, before that with the mutated document."""
    unlimited, hard = resource.getrlimit(resource.RLIMIT_AS)
    documents = seeds(suffixes)
    for name, content in documents.items():  # imports and caches cost the first document nothing then
        check(name, content, changed=True)
    while (request := requests.recv()) is not None:
        key, scale = request
        mutated = mutate(documents, key, scale)
        suffix, size = mutated.name.rpartition(".")[2], unpacked_size(mutated.content)
        requests.send(
            FuzzedDocument(key, suffix, size, mutated.steps, f"FAILED: no result in {HANG_SECONDS:.0f} s", HANG_SECONDS)
        )
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        start = time.process_time()
        resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES_OF_MEMORY, hard))  # for the parser, not for the mutation
        outcome = check(mutated.name, mutated.content, changed=int(key.rpartition("/")[2]) % 2 == 1)
        resource.setrlimit(resource.RLIMIT_AS, (unlimited, hard))
        seconds = time.process_time() - start
        memory = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory)
        if not outcome.startswith("FAILED"):
            if seconds > BASE_SECONDS + SECONDS_PER_KILOBYTE * size / 1024:
                outcome = f"FAILED: {seconds:.1f} s of processor time"
            elif memory > BASE_MEMORY + MEMORY_PER_BYTE * size:
                outcome = f"FAILED: {memory:,} bytes of memory"
        requests.send(FuzzedDocument(key, suffix, size, mutated.steps, outcome, seconds, memory))


class CheckProcess:
    """A process that checks documents; a new one takes its place if it hangs or dies."""

    def __init__(self, suffixes: Sequence[str] = ()) -> None:
        self._suffixes = suffixes
        self._context = multiprocessing.get_context("spawn")
        self._start()

    def _start(self) -> None:
        self._connection, theirs = self._context.Pipe()
        self._process = self._context.Process(target=work, args=(theirs, self._suffixes), daemon=True)
        self._process.start()
        theirs.close()

    def _processor_seconds(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def run(self, key: str, scale: int = 1) -> FuzzedDocument:
        """Check the document of a key."""
        self._connection.send((key, scale))
        try:
            case: FuzzedDocument = self._connection.recv()
        except EOFError:
            self._process.join()
            raise RuntimeError(f"document {key} was not mutated: exit code {self._process.exitcode}") from None
        start = self._processor_seconds()
        try:
            while not self._connection.poll(1.0) and self._processor_seconds() < start + HANG_SECONDS:
                pass
            if self._connection.poll():
                case = self._connection.recv()
                return case
        except EOFError:
            case = FuzzedDocument(case.key, case.suffix, case.size, case.steps, "FAILED: the process died")
        self.stop()
        self._start()
        return case

    def stop(self) -> None:
        self._process.kill()
        self._process.join()


def run(keys: Iterable[str], suffixes: Sequence[str] = ()) -> Iterator[FuzzedDocument]:
    """Check the documents of all keys."""
    worker = CheckProcess(suffixes)
    try:
        for key in keys:
            yield worker.run(key)
    finally:
        worker.stop()


def slowest(cases: Iterable[FuzzedDocument]) -> dict[str, list[FuzzedDocument]]:
    """Return the cases of each suffix with most processor time for each kilobyte."""
    by_suffix = defaultdict(list)
    for case in cases:
        by_suffix[case.suffix].append(case)
    return {
        suffix: sorted(of_format, key=lambda case: -case.seconds_per_kilobyte * min(1, case.size / 20_000))[:KEPT]
        for suffix, of_format in sorted(by_suffix.items())
    }


def print_growth(cases: Iterable[FuzzedDocument], suffixes: Sequence[str]) -> None:
    """Print sizes and processor times of documents with 1, 2 and 4 times the repetitions."""
    worker = CheckProcess(suffixes)
    print("\nProcessor time at n, 2n, 4n of the worst documents, and the exponent of its growth with the size")
    for suffix, slow in slowest(cases).items():
        rows = []
        for case in slow:
            runs = [worker.run(case.key, scale) for scale in (1, 2, 4)]
            small, _, large = runs
            if large.size > 3 * small.size and large.outcome == small.outcome and small.seconds > NOISE_SECONDS / 10:
                rows.append((math.log(large.seconds / small.seconds, large.size / small.size), runs, case))
        for exponent, runs, case in sorted(rows, key=lambda row: -row[0])[:2]:
            times = " ".join(f"{run.size // 1024:>5} KB {1000 * run.seconds:>6.0f} ms" for run in runs)
            print(f"{suffix:<6} {times}  {exponent:>4.1f}  {case.key} {'; '.join(case.steps)}")
    worker.stop()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=500, help="number of documents (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="seed of all of them (%(default)s)")
    parser.add_argument("--key", help="check this document only, and write it to a file of the current folder")
    parser.add_argument("--service", action="store_true", help="upload the documents to a service")
    parser.add_argument("suffixes", nargs="*", metavar="SUFFIX", help="check these formats only, such as pdf")
    options = parser.parse_args()
    documents = seeds(options.suffixes)
    if options.key:
        mutated = mutate(documents, options.key)
        Path(f"fuzzed-{mutated.name}").write_bytes(mutated.content)
        print(next(run([options.key], options.suffixes)))
        return 0
    keys = [f"{options.seed}/{number}" for number in range(options.count)]
    if options.service:
        return upload_all(mutate(documents, key) for key in keys)
    cases = []
    for case in run(keys, options.suffixes):
        cases.append(case)
        if case.outcome.startswith("FAILED"):
            print(case, flush=True)
    counts = Counter((case.suffix, case.outcome.split(" ")[0].rstrip(":")) for case in cases)
    for (suffix, outcome), count in sorted(counts.items()):
        print(f"{suffix:<6} {outcome:<9} {count:>6}")
    print(f"{len(cases)} documents, {sum(case.size for case in cases):,} bytes, {sum(c.seconds for c in cases):.0f} s")
    print("\nSlowest for their size")
    for slow in slowest(cases).values():
        print(slow[0])
    print_growth(cases, options.suffixes)
    return any(case.outcome.startswith("FAILED") for case in cases)


if __name__ == "__main__":
    sys.exit(main())
