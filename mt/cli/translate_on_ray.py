"""Translation of a file on a Ray cluster, by Ray Data.

A task on this machine reads the file. A pool of actors, one for each GPU or for each group of cores, translates batches
of lines: each actor loads the model once. The translations arrive here in the order of the lines. If an actor dies, Ray
starts it again and repeats its batches.
"""

import argparse
import logging
from collections.abc import Iterator, Mapping
from itertools import islice
from platform import node
from typing import Any, Self

from mt.cli.translation_job import OutputLine, TranslationJob, input_lines
from mt.data.corpus import Fault
from mt.errors import ModelError, MTError, RequestError, problems
from mt.text.terms import Terms

try:
    import pyarrow
    import ray
    from ray.exceptions import RayError, RayTaskError
except ModuleNotFoundError:  # an optional dependency; RayCluster reports that it is missing
    ray = None

BATCH_LINES = 1000  # large enough that the last, incomplete batches of the engine cost little
BLOCK_BYTES = 1 << 16  # of text; a block is what Ray Data passes on at a time, and the actors wait for the first blocks

LineRow = dict[str, Any]


def actor_pool(device: str, cores: int, resources: Mapping[str, float]) -> tuple[int, str]:
    """Return the number of actors and the device of each: one on each GPU or, without GPUs, on each `cores` CPU cores.

    `device` is the value of --device. `resources` are those of the cluster, such as {"CPU": 16, "GPU": 2}.

    Raises:
        RequestError: if the cluster lacks the device.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise RequestError(f"--device is {device!r}; accepted with --ray: auto, cpu or cuda")
    gpus = int(resources.get("GPU", 0)) if device != "cpu" else 0
    if device == "cuda" and not gpus:
        raise RequestError("--device is 'cuda', but the cluster has no GPU; accepted: auto or cpu")
    return (gpus, "cuda") if gpus else (max(1, int(resources.get("CPU", 0)) // cores), "cpu")


class RayCluster:
    """Context manager with the connection to a cluster; it translates the lines of a file as a TranslationJob does."""

    def __init__(self, options: argparse.Namespace, terms: Terms) -> None:
        """Store the options of the command line. `options.ray` is the address of the cluster."""
        self._options = argparse.Namespace(**vars(options))
        self._options.model = options.model.resolve()  # the actors run in other folders
        self._options.ensemble = [model.resolve() for model in options.ensemble]
        self._terms = terms
        self._actors = 0
        self._resources: dict[str, int] = {}  # of each actor, as Ray's keyword arguments
        self._fingerprint: dict[str, Any] = {}

    def __enter__(self) -> Self:
        """Connect to the cluster, and load the model there once.

        Raises:
            RequestError: if ray is not installed, no cluster answers, or the cluster lacks the device of `--device`.
            MTError: if the model cannot be loaded, or does not support an option.
        """
        if ray is None:
            raise RequestError("ray is not installed. Run pip install 'mt-service[ray]'")
        address = self._options.ray
        try:
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (ConnectionError, RuntimeError, ValueError) as error:
            accepted = "accepted: auto or HOST:PORT. `ray start --head` starts a cluster"
            raise RequestError(f"--ray {address}: no cluster answers at this address: {error}; {accepted}") from error
        try:
            options = self._options
            options.threads = options.threads or 1
            self._actors, options.device = actor_pool(options.device, options.threads, ray.cluster_resources())
            self._resources = {"num_cpus": options.threads, "num_gpus": int(options.device == "cuda")}
            load = ray.remote(fingerprint_on_worker).options(**self._resources)
            self._fingerprint = ray.get(load.remote(self._options, self._terms))
        except RayTaskError as error:
            raise error.cause from None
        return self

    def __exit__(self, *error: object) -> None:
        ray.shutdown()

    def fingerprint(self) -> dict[str, Any]:
        """Return `TranslationJob.fingerprint()` of the machine that loaded the model first."""
        return self._fingerprint

    def translate_input(self, first: int) -> Iterator[OutputLine]:
        """Yield the output of each line of the file from line `first` on, in order.

        Raises:
            MTError: if reading the file fails, if a machine cannot load the model or has another one, or if the cluster
                fails. All earlier lines have been yielded.
        """
        context = ray.data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.target_max_block_size = BLOCK_BYTES
        context.enable_progress_bars = context.print_on_execution_start = False
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)
        this_node = {"ray.io/node-id": ray.get_runtime_context().get_node_id()}
        translations = (
            ray.data.from_items([{"first": first}])
            .flat_map(read_rows, fn_args=(self._options,), num_cpus=0, label_selector=this_node)
            .map_batches(
                BatchTranslator,
                fn_constructor_args=(self._options, self._terms, self._fingerprint),
                batch_size=BATCH_LINES,
                batch_format="pyarrow",
                compute=ray.data.ActorPoolStrategy(size=self._actors),
                **self._resources,
            )
        )
        try:
            for row in translations.iter_rows():
                if row["error"]:
                    raise MTError(row["error"])
                yield OutputLine(row["text"], row["problem"], row["size"], tuple(row["doubts"].splitlines()))
        except RayError as error:
            raise RequestError(
                f"--ray: the cluster failed: {error}. The lines before are written. Run the command again to resume"
            ) from error


def fingerprint_on_worker(options: argparse.Namespace, terms: Terms) -> dict[str, Any]:
    """Load the model in a process of the cluster, and return the fingerprint of the job. Raises: MTError."""
    return TranslationJob.load(options, terms).fingerprint()


def read_rows(start: LineRow, options: argparse.Namespace) -> Iterator[LineRow]:
    """Yield a row for each line of the file from line `start["first"]` on."""
    first = start["first"]
    for number, line in enumerate(islice(input_lines(options), first - 1, None), first):
        fault = line if isinstance(line, Fault) else Fault("")
        text = "" if isinstance(line, Fault) else line
        yield {"number": number, "line": text, "fault": fault.text, "fatal": fault.fatal}


class BatchTranslator:
    """Actor that translates batches of lines.

    Its output has a row for each line, with the fields of OutputLine and `error`, the text of an MTError, or "".
    """

    def __init__(self, options: argparse.Namespace, terms: Terms, expected: Mapping[str, Any]) -> None:
        """Store the options of the job. `expected` is the fingerprint that the job has on the first machine."""
        self._options = options
        self._terms = terms
        self._expected = expected
        self._job: TranslationJob | None = None

    def __call__(self, batch: "pyarrow.Table") -> "pyarrow.Table":
        rows = batch.to_pylist()
        lines = (Fault(row["fault"], row["fatal"]) if row["fault"] else row["line"] for row in rows)
        output: list[LineRow] = []
        try:
            self._job = self._job or self._load()
            for line in self._job.translate(lines, rows[0]["number"], interactive=False):
                output.append({**vars(line), "doubts": "\n".join(line.doubts), "error": ""})
        except MTError as error:
            output.append({"text": "", "problem": "", "size": 0, "doubts": "", "error": str(error)})
        return pyarrow.Table.from_pylist(output)

    def _load(self) -> TranslationJob:
        """Load the model. Raises: MTError if this fails, or if the first machine has another fingerprint."""
        job = TranslationJob.load(self._options, self._terms)
        fingerprint, expected = job.fingerprint(), self._expected
        differences = [
            f"{name} is {fingerprint.get(name)}; accepted: {expected.get(name)}, the value on the first machine"
            for name in {**expected, **fingerprint}
            if fingerprint.get(name) != expected.get(name)
        ]
        if differences:
            raise ModelError(
                problems(f"machine {node()} would translate differently from the first machine", differences)
            )
        return job
