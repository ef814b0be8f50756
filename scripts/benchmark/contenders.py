"""Contenders of the benchmark `decode`, each with the settings from which the fastest is selected by short runs."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .measure import percentile
from .peer import PeerJob, PeerResult, PeerSetup
from .processes import ROOT, Contender, ContenderError, Launch

BATCHES = {
    "cpu": (*((size, "examples") for size in (32, 64, 128)), *((size, "tokens") for size in (512, 1024, 2048, 4096))),
    "cuda": (*((size, "examples") for size in (64, 256, 1024)), *((size, "tokens") for size in (4096, 16384, 65536))),
}
CT2_DTYPES = {"cpu": ("float32", "int8"), "cuda": ("float16", "int8_float16")}
OUR_DTYPES = {"cpu": ("float32", "int8"), "cuda": ("bfloat16",)}


@dataclass(frozen=True)
class Metric:
    """Kind of measurement: translation with a beam size, of all sentences in bulk or of single sentences."""

    single: bool
    beam_size: int

    def __str__(self) -> str:
        search = "greedy" if self.beam_size == 1 else f"beam {self.beam_size}"
        return f"{'single' if self.single else 'bulk'} {search}"


@dataclass(frozen=True)
class Setting:
    """A setting of a contender: how to start its process, and the largest batch: 0 if the library forms batches."""

    launch: Launch
    batch: int = 0
    batch_unit: str = "examples"

    def __str__(self) -> str:
        setup = self.launch.setup
        more = "".join(f" {value}" for _, value in self.launch.environment)
        batch = f" {self.batch} {self.batch_unit}" if self.batch else ""
        return f"{setup.dtype} {setup.workers}x{setup.threads}{more}{batch}"

    def job(self, metric: Metric, sentences: int, keep_lines: bool = False) -> dict[str, Any]:
        return asdict(PeerJob(metric.beam_size, sentences, metric.single, self.batch, self.batch_unit, keep_lines))


@dataclass(frozen=True)
class PeerEntry:
    """A contender with all its settings. If it cannot be measured, `problem` is the reason."""

    name: str
    settings: Sequence[Setting] = ()
    problem: str = ""


@dataclass(frozen=True)
class Models:
    """Models to measure, and common settings.

    `ours` is our model, `ctranslate2` has the models for CTranslate2 by dtype, and `transformers` is the model for
    transformers; all have the same weights. `against` is another checkout of ours, which runs the same model. `source`
    is the file with the sentences, and `lengths` are the forced lengths of the translations, if any. `direction` is
    given if our model has several directions.
    """

    source: Path
    ours: Path
    ctranslate2: dict[str, Path] = field(default_factory=dict)
    transformers: Path | None = None
    against: Path | None = None
    lengths: Sequence[int] = ()
    cores: int = 1
    device: str = "cpu"
    direction: str = ""

    def setup(self, model: Path, dtype: str, workers: int, threads: int) -> PeerSetup:
        return PeerSetup(
            str(model), str(self.source), dtype, workers, threads, tuple(self.lengths), self.device, self.direction
        )


def installed(package: str) -> bool:
    return find_spec(package) is not None


def export(model: Path, folder: Path, device: str) -> dict[str, Path]:
    """Export our model for CTranslate2 in each dtype of the device. Return the folders by dtype.

    If CTranslate2 is not installed, return {}. Raises: ModelError if the model cannot be exported.
    """
    if not installed("ctranslate2"):
        return {}
    exporter = import_module("mt.interop.ctranslate2").export_ctranslate2  # imports ctranslate2
    paths = {dtype: folder / f"ctranslate2-{dtype}" for dtype in CT2_DTYPES[device]}
    for dtype, path in paths.items():
        exporter(model, path, dtype)
    return paths


def entries(models: Models, metric: Metric, dtypes: Sequence[str]) -> list[PeerEntry]:
    """Return all contenders for a metric, ours first. `dtypes` are the dtypes of our model.

    With another checkout of ours there are two more for each dtype: "against", and "control", which is the same again.
    The ratio of these two shows how exact the comparison is.
    """
    checkouts = {"ours": ROOT}
    if models.against:
        checkouts |= {"against": models.against, "control": models.against}
    ours = [_ours(models, metric, name, path, dtype) for dtype in dtypes for name, path in checkouts.items()]
    return [*ours, *_ctranslate2(models, metric), _transformers(models, metric)]


def _ours(models: Models, metric: Metric, name: str, checkout: Path, dtype: str) -> PeerEntry:
    """Return our engine. On a CPU, it has a thread for each core; for single sentences also one thread is tried."""
    threads = {models.cores} if models.device == "cpu" else {1}
    if metric.single:
        threads.add(1)
    setups = [models.setup(models.ours, dtype, number, 1) for number in sorted(threads)]
    return PeerEntry(
        f"{name} {dtype}", [Setting(Launch("scripts.benchmark.peer_ours", setup, checkout)) for setup in setups]
    )


def _ctranslate2(models: Models, metric: Metric) -> Iterator[PeerEntry]:
    """Yield one contender for each dtype.

    Settings with int8 and several intra_threads are left out, because they are ten times slower.
    """
    on_cpu = models.device == "cpu"
    for dtype in CT2_DTYPES[models.device]:
        name = f"ctranslate2 {dtype}"
        if dtype not in models.ctranslate2:
            yield PeerEntry(name, problem="not installed")
            continue
        workers_and_threads = [(models.cores, 1)] if on_cpu and not metric.single else [(1, 1)]
        if on_cpu and dtype != "int8" and models.cores > 1:
            workers_and_threads.append((1, models.cores))
        launches = [
            Launch(
                "scripts.benchmark.peer_ctranslate2",
                models.setup(models.ctranslate2[dtype], dtype, workers, threads),
                environment=(("CT2_FORCE_CPU_ISA", isa),) if isa else (),
                without=("torch",),
            )
            for workers, threads in workers_and_threads
            for isa in (("", "AVX512") if on_cpu else ("",))
        ]
        batches = ((0, "examples"),) if metric.single else BATCHES[models.device]
        yield PeerEntry(name, [Setting(launch, *batch) for launch in launches for batch in batches])


def _transformers(models: Models, metric: Metric) -> PeerEntry:
    """Return transformers as a single contender, whose settings include float32 and bfloat16."""
    if not installed("transformers"):
        return PeerEntry("transformers", problem="not installed")
    if models.transformers is None:
        return PeerEntry("transformers", problem="no Marian directory (--transformers DIR)")
    on_cpu = models.device == "cpu"
    ways = [("float32", models.cores), ("bfloat16", models.cores)]
    if on_cpu and metric.single and models.cores > 1:
        ways.append(("float32", 1))
    sizes = (0,) if metric.single else (64,) if on_cpu else (64, 256)
    launches = [
        Launch("scripts.benchmark.peer_transformers", models.setup(models.transformers, dtype, 1, threads))
        for dtype, threads in ways
    ]
    return PeerEntry("transformers", [Setting(launch, size) for launch in launches for size in sizes])


def fastest(entry: PeerEntry, metric: Metric, sentences: int, log: Path) -> tuple[Setting, dict[str, float | str]]:
    """Try the settings of a contender in short runs. Return the fastest, and the seconds or the error of each.

    The first process is tried with all its batches, all others with the two batches that are the fastest so far. A
    single setting is returned without a run. Raises: ContenderError if all runs fail.
    """
    if len(entry.settings) == 1:
        return entry.settings[0], {}
    seconds: dict[Setting, float] = {}
    tried: dict[str, float | str] = {}
    for launch in dict.fromkeys(setting.launch for setting in entry.settings):
        settings = [setting for setting in entry.settings if setting.launch == launch]
        best = sorted(seconds, key=lambda setting: seconds[setting])
        batches = list(dict.fromkeys((setting.batch, setting.batch_unit) for setting in best))[:2]
        settings = [s for s in settings if not batches or (s.batch, s.batch_unit) in batches]
        try:
            with Contender(entry.name, launch, log) as contender:
                for setting in settings:
                    seconds[setting] = _short_run(contender, metric, setting, sentences)
                    tried[str(setting)] = seconds[setting]
        except ContenderError as error:
            tried[str(settings[0])] = str(error)
    if not seconds:
        raise ContenderError(
            f"{entry.name}: every setting failed; the problem of the first: {next(iter(tried.values()))}"
        )
    return min(seconds, key=lambda setting: seconds[setting]), tried


def _short_run(contender: Contender, metric: Metric, setting: Setting, sentences: int) -> float:
    """Return the seconds of the faster of two runs after a warm-up. For single sentences, return the median latency."""
    count = min(sentences, 40) if metric.single else sentences
    contender.ask(setting.job(metric, min(count, 32)))
    results = [PeerResult(**contender.ask(setting.job(metric, count))) for _ in range(2)]
    return min(cost(metric, result) for result in results)


def cost(metric: Metric, result: PeerResult) -> float:
    """Return the seconds of a job: the total in bulk, or the median of all sentences if they are translated singly."""
    return percentile(result.latencies, 50) if metric.single else result.seconds
