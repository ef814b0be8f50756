"""Contenders of the benchmark `decode`, each with the settings from which the fastest is selected."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from mt.checkpoint import read_description

from .contender import Launch
from .harness import Batching, PeerSetup

CT2_BATCHINGS = (
    *(Batching(size, "examples") for size in (32, 64, 128)),
    *(Batching(size, "tokens") for size in (512, 1024, 2048, 4096)),
)
CT2_CUDA_BATCHINGS = (
    *(Batching(size, "examples") for size in (64, 256, 1024)),
    *(Batching(size, "tokens") for size in (4096, 16384, 65536)),
)
CT2_DTYPES = {"cpu": ("float32", "int8"), "cuda": ("float16", "int8_float16")}
OUR_DTYPES = {"cpu": ("float32", "int8"), "cuda": ("bfloat16",)}
DEVICES = tuple(OUR_DTYPES)


@dataclass(frozen=True)
class Metric:
    """Kind of measurement: translation with a beam size, of all sentences in bulk or of single sentences."""

    single: bool
    beam_size: int

    @property
    def label(self) -> str:
        search = "greedy" if self.beam_size == 1 else f"beam {self.beam_size}"
        return f"{'single' if self.single else 'bulk'} {search}"


@dataclass(frozen=True)
class PeerEntry:
    """A contender with its settings: all combinations of `launches` (ways to start it) and `batchings`.

    If it cannot be measured, `problem` is the reason. `size_bytes` is the size of its model on the disk.
    """

    name: str
    launches: tuple[Launch, ...] = ()
    batchings: tuple[Batching, ...] = (Batching(),)
    problem: str = ""
    size_bytes: int = 0


@dataclass(frozen=True)
class PeerModels:
    """Models to measure, and common settings.

    `ours` is our model, `ctranslate2` has the models for CTranslate2 by dtype, `transformers` is the model for
    transformers, and `second_model` another model of ours. `source` is the file with the sentences, and `lengths` are
    the forced lengths of the translations, if any. `direction` is given if our model has several directions.
    """

    source: Path
    ours: Path
    ctranslate2: dict[str, Path] = field(default_factory=dict)
    transformers: Path | None = None
    lengths: tuple[int, ...] = ()
    cores: int = 1
    device: str = "cpu"
    second_model: Path | None = None
    direction: str = ""

    def setup(self, model: Path, dtype: str, workers: int, threads: int) -> PeerSetup:
        return PeerSetup(
            str(model), str(self.source), dtype, workers, threads, self.lengths, self.device, self.direction
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


def entries(models: PeerModels, metric: Metric, dtypes: Sequence[str]) -> list[PeerEntry]:
    """Return all contenders for a metric, ours first. `dtypes` are the dtypes of our model."""
    return [*_ours(models, metric, dtypes), *_ctranslate2(models, metric), _transformers(models, metric)]


def _ours(models: PeerModels, metric: Metric, dtypes: Sequence[str]) -> Iterator[PeerEntry]:
    threads = {models.cores} if models.device == "cpu" else {1}
    if metric.single:
        threads.add(1)
    compared = {"ours": models.ours} | ({"beside": models.second_model} if models.second_model else {})
    for name, model in compared.items():
        for dtype in dtypes:
            setups = [models.setup(model, dtype, number, 1) for number in sorted(threads)]
            launches = tuple(Launch("mt.cli.benchmarks.peer_ours", setup) for setup in setups)
            yield PeerEntry(f"{name} {dtype}", launches, size_bytes=_size(model))


def _ctranslate2(models: PeerModels, metric: Metric) -> Iterator[PeerEntry]:
    """Yield one contender for each dtype.

    Settings with int8 and several intra_threads are left out, because they are ten times slower.
    """
    for dtype in CT2_DTYPES[models.device]:
        name = f"ctranslate2 {dtype}"
        if dtype not in models.ctranslate2:
            yield PeerEntry(name, problem="not installed")
            continue
        on_cpu = models.device == "cpu"
        settings = [(models.cores, 1)] if on_cpu and not metric.single else [(1, 1)]
        if on_cpu and dtype != "int8" and models.cores > 1:
            settings.append((1, models.cores))
        launches = [
            Launch(
                "mt.cli.benchmarks.peer_ctranslate2",
                models.setup(models.ctranslate2[dtype], dtype, workers, threads),
                (("CT2_FORCE_CPU_ISA", isa),) if isa else (),
                without=("torch",),
            )
            for workers, threads in settings
            for isa in (("", "AVX512") if on_cpu else ("",))
        ]
        many = CT2_BATCHINGS if on_cpu else CT2_CUDA_BATCHINGS
        batchings = (Batching(),) if metric.single else many
        yield PeerEntry(name, tuple(launches), batchings, size_bytes=_size(models.ctranslate2[dtype]))


def _transformers(models: PeerModels, metric: Metric) -> PeerEntry:
    """Return transformers as a single contender, whose settings include float32 and bfloat16."""
    if not installed("transformers"):
        return PeerEntry("transformers", problem="not installed")
    if models.transformers is None:
        return PeerEntry("transformers", problem="no Marian directory (--transformers DIR)")
    on_cpu = models.device == "cpu"
    settings = [("float32", models.cores), ("bfloat16", models.cores)]
    if on_cpu and metric.single and models.cores > 1:
        settings.append(("float32", 1))
    launches = [
        Launch("mt.cli.benchmarks.peer_transformers", models.setup(models.transformers, dtype, 1, threads))
        for dtype, threads in settings
    ]
    sizes = (64,) if on_cpu else (64, 256)
    batchings = (Batching(),) if metric.single else tuple(map(Batching, sizes))
    return PeerEntry("transformers", tuple(launches), batchings, size_bytes=_size(models.transformers))


def choose_direction(model: Path, requested: str | None) -> tuple[str, str]:
    """Return (direction, direction of the sources' language tag) of a measurement with `model`.

    The second is "" if the model has one direction and therefore no language tags.

    Raises: LanguageError if the model does not have the direction `requested`, or has several and none is requested.
    """
    directions = read_description(model).directions
    direction = str(directions.choose(requested))
    return direction, direction if len(directions) > 1 else ""


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
