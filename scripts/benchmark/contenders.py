"""Contenders of the benchmark `decode`, each with the settings from which the fastest is selected by short runs."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from mt.errors import ModelError

from .measure import percentile
from .peer import PeerJob, PeerResult, PeerSetup
from .processes import ROOT, Contender, ContenderError, Launch

BATCHES = {
    "cpu": (*((size, "examples") for size in (32, 64, 128)), *((size, "tokens") for size in (512, 1024, 2048, 4096))),
    "cuda": (*((size, "examples") for size in (64, 256, 1024)), *((size, "tokens") for size in (4096, 16384, 65536))),
}
CT2_DTYPES = {"cpu": ("float32", "int8"), "cuda": ("float16", "int8_float16")}
OUR_DTYPES = {"cpu": ("float32", "int8"), "cuda": ("bfloat16",)}
SHORT_SENTENCES = {True: 40, False: 400}
"""Number of sentences of a short run, if they are translated one at a time and in bulk."""


@dataclass(frozen=True)
class Metric:
    """Kind of measurement: translation with a beam size, of all sentences in bulk or of single sentences."""

    single: bool
    beam_size: int

    def __str__(self) -> str:
        search = "greedy" if self.beam_size == 1 else f"beam {self.beam_size}"
        return f"{'single' if self.single else 'bulk'} {search}"

    def cost(self, result: PeerResult) -> float:
        """Return the seconds of a job: the total in bulk, or the median of all sentences one at a time."""
        return percentile(result.latencies, 50) if self.single else result.seconds


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

    def ask(self, contender: Contender, metric: Metric, sentences: int, keep: bool = False) -> PeerResult:
        """Let a contender with this setting translate. Raises: ContenderError if the job fails."""
        job = PeerJob(metric.beam_size, sentences, metric.single, self.batch, self.batch_unit, keep)
        return PeerResult(**contender.ask(asdict(job)))


@dataclass(frozen=True)
class PeerEntry:
    """A contender with all its settings. If it cannot be measured, `problem` is the reason."""

    name: str
    settings: Sequence[Setting] = ()
    problem: str = ""


@dataclass(frozen=True)
class Models:
    """Models to measure, and common settings.

    `ours` is our model, whose exports for the other libraries are in `folder`. `ids` and `pieces` are files with the
    source tokens of the sentences. `lengths` are the forced lengths of the translations, if any. `against` is another
    checkout of ours, which runs the same model.
    """

    ours: Path
    folder: Path
    ids: Path
    pieces: Path
    lengths: Sequence[int] = ()
    cores: int = 1
    device: str = "cpu"
    against: Path | None = None

    def setup(self, model: Path, sources: Path, dtype: str, workers: int, threads: int) -> PeerSetup:
        return PeerSetup(str(model), str(sources), dtype, workers, threads, tuple(self.lengths), self.device)


def exported(models: Models, format: str, *options: str) -> Path:
    """Return our model in the format of another library, which is written at the first call.

    Raises:
        ModelError: The library is not installed, or its format does not support the model.
    """
    library = format.removesuffix("_export").replace("huggingface", "transformers")
    if find_spec(library) is None:
        raise ModelError("not installed")
    path = models.folder / "-".join((library, *options))
    if not path.exists():
        module = import_module(f"mt.interop.{format}")  # imports the library
        getattr(module, f"export_{format.removesuffix('_export')}")(models.ours, path, *options)
    return path


def entries(models: Models, metric: Metric, dtypes: Sequence[str]) -> Iterator[PeerEntry]:
    """Yield all contenders for a metric, ours first. `dtypes` are the dtypes of our model.

    With another checkout of ours there are two more for each dtype: "against", and "control", which is the same again.
    The ratio of these two shows how exact the comparison is.
    """
    checkouts = {"ours": ROOT}
    if models.against:
        checkouts |= {"against": models.against, "control": models.against}
    for dtype in dtypes:
        yield from (_ours(models, metric, f"{name} {dtype}", path, dtype) for name, path in checkouts.items())
    for dtype in CT2_DTYPES[models.device]:
        yield _ctranslate2(models, metric, dtype)
    yield _transformers(models, metric)


def _ours(models: Models, metric: Metric, name: str, checkout: Path, dtype: str) -> PeerEntry:
    """Return our engine. On a CPU, it has a thread for each core; for single sentences also one thread is tried."""
    threads = {models.cores} if models.device == "cpu" else {1}
    if metric.single:
        threads.add(1)
    setups = [models.setup(models.ours, models.ids, dtype, number, 1) for number in sorted(threads)]
    return PeerEntry(name, [Setting(Launch("scripts.benchmark.peer_ours", setup, checkout)) for setup in setups])


def _ctranslate2(models: Models, metric: Metric, dtype: str) -> PeerEntry:
    """Return CTranslate2. Settings with int8 and several intra_threads are left out: they are ten times slower."""
    name, on_cpu = f"ctranslate2 {dtype}", models.device == "cpu"
    try:
        model = exported(models, "ctranslate2", dtype)
    except ModelError as error:
        return PeerEntry(name, problem=str(error))
    workers_and_threads = [(models.cores, 1)] if on_cpu and not metric.single else [(1, 1)]
    if on_cpu and dtype != "int8" and models.cores > 1:
        workers_and_threads.append((1, models.cores))
    launches = [
        Launch(
            "scripts.benchmark.peer_ctranslate2",
            models.setup(model, models.pieces, dtype, workers, threads),
            environment=(("CT2_FORCE_CPU_ISA", isa),) if isa else (),
            without=("torch",),
        )
        for workers, threads in workers_and_threads
        for isa in (("", "AVX512") if on_cpu else ("",))
    ]
    batches = ((0, "examples"),) if metric.single else BATCHES[models.device]
    return PeerEntry(name, [Setting(launch, *batch) for launch in launches for batch in batches])


def _transformers(models: Models, metric: Metric) -> PeerEntry:
    """Return transformers as a single contender, whose settings include float32 and bfloat16."""
    try:
        model = exported(models, "huggingface_export")
    except ModelError as error:
        return PeerEntry("transformers", problem=str(error))
    on_cpu = models.device == "cpu"
    ways = [("float32", models.cores), ("bfloat16", models.cores)]
    if on_cpu and metric.single and models.cores > 1:
        ways.append(("float32", 1))
    sizes = (0,) if metric.single else (64,) if on_cpu else (64, 256)
    launches = [
        Launch("scripts.benchmark.peer_transformers", models.setup(model, models.ids, dtype, 1, threads))
        for dtype, threads in ways
    ]
    return PeerEntry("transformers", [Setting(launch, size) for launch in launches for size in sizes])


def fastest(entry: PeerEntry, metric: Metric, sentences: int, log: Path) -> tuple[Setting, dict[str, float | str]]:
    """Try the settings of a contender in short runs of at most `sentences` sentences.

    Return (the fastest setting, results by setting). A result is the seconds of the faster of two runs after a
    warm-up, or an error.

    The first process is tried with all its batches, all others with the two batches that are the fastest so far. A
    single setting is returned without a run. Raises: ContenderError if all runs fail.
    """
    if len(entry.settings) == 1:
        return entry.settings[0], {}
    seconds: dict[Setting, float] = {}
    tried: dict[str, float | str] = {}
    count = min(sentences, SHORT_SENTENCES[metric.single])
    for launch in dict.fromkeys(setting.launch for setting in entry.settings):
        settings = [setting for setting in entry.settings if setting.launch == launch]
        best = sorted(seconds, key=lambda setting: seconds[setting])
        batches = list(dict.fromkeys((setting.batch, setting.batch_unit) for setting in best))[:2]
        settings = [s for s in settings if not batches or (s.batch, s.batch_unit) in batches]
        try:
            with Contender(entry.name, launch, log) as contender:
                for setting in settings:
                    setting.ask(contender, metric, min(count, 32))
                    runs = [setting.ask(contender, metric, count) for _ in range(2)]
                    tried[str(setting)] = seconds[setting] = min(map(metric.cost, runs))
        except ContenderError as error:
            tried[str(settings[0])] = str(error)
    if not seconds:
        raise ContenderError(f"{entry.name}: every setting failed; the first: {next(iter(tried.values()))}")
    return min(seconds, key=lambda setting: seconds[setting]), tried
