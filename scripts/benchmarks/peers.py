"""Who takes part in `decode`, and the settings among which each one's best is looked for."""

import inspect
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from mt.engine.translator import Translator
from mt.errors import MTError

from .contender import Contender, ContenderError, Launch
from .harness import Batching, Job, Setup
from .measure import percentile
from .report import cores

CT2_BATCHINGS = (
    *(Batching(size, "examples") for size in (32, 64, 128)),
    *(Batching(size, "tokens") for size in (512, 1024, 2048, 4096)),
)
CT2_DTYPES = ("float32", "int8")
OURS_FIRST = "ours float32"  # whose translations the others' are compared with


@dataclass(frozen=True)
class Metric:
    """Bulk, or one sentence at a time; and the beam size."""

    single: bool
    beam_size: int

    @property
    def label(self) -> str:
        search = "greedy" if self.beam_size == 1 else f"beam {self.beam_size}"
        return f"{'single' if self.single else 'bulk'} {search}"


@dataclass(frozen=True)
class Variant:
    """One way to run a contender."""

    launch: Launch
    batching: Batching

    @property
    def label(self) -> str:
        setup = self.launch.setup
        more = "".join(f" {value}" for _, value in self.launch.environment)
        return f"{setup.dtype} {setup.workers}x{setup.threads}{more} {self.batching.size} {self.batching.unit}"


@dataclass(frozen=True)
class Entry:
    """A row of the table: the launches and batchings to choose from; or why there are none."""

    name: str
    launches: tuple[Launch, ...] = ()
    batchings: tuple[Batching, ...] = (Batching(),)
    problem: str = ""
    size_bytes: int = 0


@dataclass(frozen=True)
class Trial:
    """One variant's short pass: seconds (the median latency for a single sentence), or a problem."""

    entry: str
    metric: str
    variant: str
    seconds: float | None
    problem: str = ""


@dataclass(frozen=True)
class Models:
    """What is measured, as files: ours; CTranslate2's by dtype; a directory for transformers, if there is one."""

    source: Path
    ours: Path
    ctranslate2: dict[str, Path] = field(default_factory=dict)
    transformers: Path | None = None
    lengths: tuple[int, ...] = ()

    def setup(self, model: Path, dtype: str, workers: int, threads: int) -> Setup:
        return Setup(str(model), str(self.source), dtype, workers, threads, self.lengths)


def installed(package: str) -> bool:
    return find_spec(package) is not None


def export(model: Path, folder: Path) -> dict[str, Path]:
    """Our model for CTranslate2, once in each dtype; nothing where it is not installed. Raises ModelError."""
    if not installed("ctranslate2"):
        return {}
    exporter = import_module("mt.interop.ctranslate2").export_ctranslate2  # which needs ctranslate2 to be imported
    found = {dtype: folder / f"ctranslate2-{dtype}" for dtype in CT2_DTYPES}
    for dtype, path in found.items():
        exporter(model, path, dtype)
    return found


def entries(models: Models, metric: Metric, dtypes: Sequence[str]) -> list[Entry]:
    """Everybody's row for a metric, ours first."""
    return [*_ours(models, metric, dtypes), *_ctranslate2(models, metric), _transformers(models, metric)]


def _ours(models: Models, metric: Metric, dtypes: Sequence[str]) -> Iterator[Entry]:
    engine_threads = "threads" in inspect.signature(Translator.load).parameters
    size = _size(models.ours)
    for dtype in dtypes:
        ways = [(1 if metric.single else cores(), 1)]
        if metric.single and not engine_threads:
            ways.append((1, cores()))
        launches = [Launch("scripts.benchmarks.peer_ours", models.setup(models.ours, dtype, *way)) for way in ways]
        yield Entry(f"ours {dtype}", tuple(launches), size_bytes=size)


def _ctranslate2(models: Models, metric: Metric) -> Iterator[Entry]:
    """Never int8 with several intra_threads: ten times slower, and beating that proves nothing."""
    for dtype in CT2_DTYPES:
        name = f"ctranslate2 {dtype}"
        if dtype not in models.ctranslate2:
            yield Entry(name, problem="not installed")
            continue
        ways = [(1, 1)] if metric.single else [(cores(), 1)]
        if dtype != "int8":
            ways.append((1, cores()))
        launches = [
            Launch(
                "scripts.benchmarks.peer_ctranslate2",
                models.setup(models.ctranslate2[dtype], dtype, workers, threads),
                (("CT2_FORCE_CPU_ISA", isa),) if isa else (),
                without=("torch",),
            )
            for workers, threads in ways
            for isa in ("", "AVX512")
        ]
        batchings = (Batching(),) if metric.single else CT2_BATCHINGS
        yield Entry(name, tuple(launches), batchings, size_bytes=_size(models.ctranslate2[dtype]))


def _transformers(models: Models, metric: Metric) -> Entry:
    """One row: fp32, or bf16 where that is faster."""
    if not installed("transformers"):
        return Entry("transformers", problem="not installed")
    if models.transformers is None:
        return Entry("transformers", problem="no Marian directory (--transformers DIR)")
    ways = [("float32", cores()), ("bfloat16", cores())] + ([("float32", 1)] if metric.single else [])
    launches = [
        Launch("scripts.benchmarks.peer_transformers", models.setup(models.transformers, dtype, 1, threads))
        for dtype, threads in ways
    ]
    return Entry("transformers", tuple(launches), size_bytes=_size(models.transformers))


def best_variant(entry: Entry, metric: Metric, sentences: int, log: Path) -> tuple[Variant, list[Trial]]:
    """The fastest variant by a short pass. The first launch tries all batchings, the others its two best.

    Raises ContenderError if no variant runs.
    """
    if len(entry.launches) * len(entry.batchings) == 1:
        return Variant(entry.launches[0], entry.batchings[0]), []
    times: dict[Variant, float] = {}
    trials: list[Trial] = []
    for launch in entry.launches:
        ranked = sorted(times, key=lambda variant: times[variant])
        batchings = list(dict.fromkeys(variant.batching for variant in ranked))[:2] or list(entry.batchings)
        variants = [Variant(launch, batching) for batching in batchings]
        try:
            with Contender(entry.name, launch, log) as contender:
                for variant in variants:
                    times[variant] = _short_pass(contender, metric, variant.batching, sentences)
                    trials.append(Trial(entry.name, metric.label, variant.label, times[variant]))
        except ContenderError as error:
            trials.append(Trial(entry.name, metric.label, variants[0].label, None, str(error).splitlines()[0]))
    if not times:
        raise ContenderError(f"{entry.name}: no setting runs; the first: {trials[0].problem}")
    return min(times, key=lambda variant: times[variant]), trials


def _short_pass(contender: Contender, metric: Metric, batching: Batching, sentences: int) -> float:
    """The better of two, after a warm-up."""
    count = min(sentences, 40) if metric.single else sentences
    contender.run(Job(metric.beam_size, min(count, 32), metric.single, batching=batching))
    found = []
    for _ in range(2):
        answer = contender.run(Job(metric.beam_size, count, metric.single, batching=batching))
        found.append(percentile(answer.latencies, 50) if metric.single else answer.seconds)
    return min(found)


def one_direction(model: Path) -> str:
    """The only direction of a model directory. Raises MTError: peers are not given language tags."""
    directions = json.loads((model / "config.json").read_text(encoding="utf-8"))["directions"]
    if len(directions) != 1:
        raise MTError(f"{model}: translates {', '.join(directions)}; accepted: a model of one direction")
    return str(directions[0])


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
