"""Measurements on a GPU that need no download: models are untrained, and sentences are random token ids.

    bash scripts/gpu.sh results
    python -m scripts.benchmark.gpu --part replay --size big --output results

`scripts/gpu.sh` runs groups of parts, each group in one process, the most important part first. A part writes
PART-SIZE.json and PART-SIZE.md after each row, so that the rows of an interrupted part are kept.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import log
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from rich.console import Console
from torch.nn.functional import scaled_dot_product_attention

from mt.cli.command import command
from mt.config import ModelConfig, TrainingConfig
from mt.data.batching import make_batch
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.scorer import ModelScorer
from mt.distributed import World
from mt.engine.backends.cuda import GraphDecoder
from mt.engine.backends.memory import memory_cells
from mt.engine.backends.protocol import BatchDecoder
from mt.engine.backends.static_batch import GraphLimits
from mt.engine.backends.torch import SearchDecoder
from mt.engine.devices import select_device
from mt.engine.engine import Engine
from mt.engine.requests import Request, Result
from mt.engine.scheduler import Limits
from mt.errors import ModelError, MTError
from mt.kernels.cuda.graphs import CudaGraphs, Executor
from mt.model.transformer import Transformer
from mt.tokenizer import EOS
from mt.training.loss import batch_loss
from mt.training.optimizer import optimizers, scaled_step
from mt.training.precision import WorkingCopy

from .measure import conditions

ResultRow = dict[str, Any]
BEAMS = 4
CPU = torch.device("cpu")
MOST_TIES = 2  # translations in float32 that may differ from the CPU
LARGEST_GAP = 1e-3  # between scores in float32


@dataclass(frozen=True)
class TimedDevice:
    """A device, with the functions that execute work on it, wait until it is idle, and return its free memory."""

    device: torch.device
    executor: Callable[[], Executor]
    synchronize: Callable[[], None]
    free_bytes: Callable[[], int]
    profiled: torch.profiler.ProfilerActivity

    @classmethod
    def of(cls, device: torch.device) -> "TimedDevice":
        return cls(
            device,
            partial(CudaGraphs, device),
            partial(torch.cuda.synchronize, device),
            lambda: torch.cuda.mem_get_info(device)[0],
            torch.profiler.ProfilerActivity.CUDA,
        )

    def seconds(self, work: Callable[[], object]) -> float:
        """Call `work`, and return the seconds until the device is idle again. The device is idle at the start."""
        self.synchronize()
        began = time.perf_counter()
        work()
        self.synchronize()
        return time.perf_counter() - began


@dataclass(frozen=True)
class Sizes:
    """Sizes of the model and of the measurements."""

    model: ModelConfig
    vocabulary: int = 32_000
    tokens: int = 32  # of a sentence and of its translation
    checked: int = 32  # sentences that are compared with the CPU
    sentences: tuple[int, ...] = (1, 64, 256, 1024, 4096)
    slots: tuple[int, ...] = (1, 64, 256, 512)
    steps: int = 20
    update_tokens: tuple[int, ...] = (16_384, 4096)
    updates: int = 50
    long: tuple[int, int] = (1000, 400)  # sentences, tokens
    shapes: int = 10
    natural: int = 2000  # sentences of natural lengths
    kernels: int = 15  # that the profile lists


def build(sizes: Sizes, machine: TimedDevice, dtype: torch.dtype) -> Transformer:
    """Return an untrained model. Its weights are the same in each call with the same sizes."""
    torch.manual_seed(0)
    return Transformer(sizes.model, sizes.vocabulary).eval().to(dtype).to(machine.device)


def sentences(sizes: Sizes, count: int, tokens: int, forced: bool = True) -> list[Request]:
    """Return requests to translate `count` random sentences of `tokens` tokens. The sentences are always the same.

    If `forced` is true, each translation must have as many tokens as its source.
    """
    random, requests = Random(1), []
    for number in range(count):
        source = (*(random.randrange(4, sizes.vocabulary) for _ in range(tokens - 1)), EOS)
        limit = SearchOptions(beam_size=BEAMS, max_length=tokens, min_length=tokens if forced else 0)
        requests.append(Request(number, source, limit))
    return requests


def decoder(model: Transformer, machine: TimedDevice) -> GraphDecoder:
    limits = GraphLimits(machine.free_bytes() // 4)
    return GraphDecoder(model, SpecialIds(), machine.device, machine.executor(), limits)


def decoded(engine: Engine, requests: Sequence[Request]) -> list[Result]:
    for request in requests:
        engine.submit(request)
    return sorted(engine.drain(), key=lambda result: result.id)


def correctness(machine: TimedDevice, sizes: Sizes) -> Iterator[ResultRow]:
    """Compare translations by the device with translations by the CPU in float32."""
    requests = sentences(sizes, sizes.checked, sizes.tokens, forced=False)
    scorer = ModelScorer(build(sizes, replace(machine, device=CPU), torch.float32))
    expected = decoded(Engine(SearchDecoder(scorer)), requests)
    for dtype in (torch.float32, torch.bfloat16):
        model = build(sizes, machine, dtype)
        scorer = ModelScorer(model, device=machine.device)
        decoders: list[tuple[str, BatchDecoder]] = [
            ("graphs", decoder(model, machine)),
            ("plain", SearchDecoder(scorer)),
        ]
        for name, batch_decoder in decoders:
            results = decoded(Engine(batch_decoder), requests)
            pairs = [(a.hypotheses[0], b.hypotheses[0]) for a, b in zip(results, expected, strict=True)]
            differ = sum(a.tokens != b.tokens for a, b in pairs)
            gap = max(abs(a.score - b.score) for a, b in pairs)
            yield {"dtype": str(dtype), "path": name, "sentences": len(pairs), "differ": differ, "score gap": gap}
            if dtype is torch.float32 and (differ > MOST_TIES or gap > LARGEST_GAP):
                raise ModelError(
                    f"{differ} of {len(pairs)} translations by {name} in float32 differ from the CPU, and a score by "
                    f"{gap:.2g}; accepted: {MOST_TIES} (ties) and {LARGEST_GAP}"
                )


def training(machine: TimedDevice, sizes: Sizes) -> Iterator[ResultRow]:
    """Measure training updates in bfloat16, with batches of sentences of equal lengths."""
    for tokens in sizes.update_tokens:
        master = build(sizes, machine, torch.float32).train()
        working = WorkingCopy(master, "bfloat16")
        steppers = optimizers(master, TrainingConfig(), working.dtype, World())
        pair = [list(range(4, 4 + sizes.tokens))]
        count = max(1, tokens // sizes.tokens)
        batch = make_batch(pair * count, pair * count, np.arange(count)).to(machine.device)
        divisor = torch.tensor(1.0, device=machine.device)

        def update(
            working: WorkingCopy = working, batch: Any = batch, steppers: Any = steppers, divisor: Any = divisor
        ) -> None:
            working.refresh()
            working.master.zero_grad(set_to_none=True)
            torch.autograd.backward(batch_loss(working.model, batch, 0.1) / batch.labels.numel())
            working.collect()
            for stepper in steppers:
                scaled_step(stepper, 1e-4, divisor)

        first = machine.seconds(update)
        update()
        seconds = machine.seconds(partial(_repeat, update, sizes.updates)) / sizes.updates
        speed = batch.labels.numel() / seconds
        yield {"tokens": tokens, "first ms": 1e3 * first, "update ms": 1e3 * seconds, "target tokens/s": speed}


def decoding(machine: TimedDevice, sizes: Sizes) -> Iterator[ResultRow]:
    """Measure the translation of sentences of equal lengths. The second run reuses the CUDA graphs of the first."""
    made = decoder(build(sizes, machine, torch.bfloat16), machine)
    made.prepare(SearchOptions(beam_size=BEAMS))
    for count in sizes.sentences:
        requests = sentences(sizes, count, sizes.tokens)
        for run in (1, 2):
            engine = Engine(made, Limits.of("cuda"))
            seconds = machine.seconds(partial(decoded, engine, requests))
            speed = count * sizes.tokens / seconds
            yield {"sentences": count, "run": run, "seconds": seconds, "tokens/s": speed, "steps": engine.steps}


def lengths(machine: TimedDevice, sizes: Sizes) -> Iterator[ResultRow]:
    """Measure the translation of sentences whose lengths have a log-normal distribution, as in natural text."""
    made, random, requests = decoder(build(sizes, machine, torch.bfloat16), machine), Random(2), []
    for number in range(sizes.natural):
        tokens = min(max(int(random.lognormvariate(log(sizes.tokens), 0.6)), 2), sizes.model.max_length // 2)
        requests.append(replace(sentences(sizes, 1, tokens)[0], id=number))
    for run in (1, 2):
        engine = Engine(made, Limits.of("cuda"))
        seconds = machine.seconds(partial(decoded, engine, requests))
        tokens = sum(len(request.source) for request in requests)
        rows = engine.rows / engine.steps
        yield {"run": run, "seconds": seconds, "tokens/s": tokens / seconds, "steps": engine.steps, "mean rows": rows}


def replay(machine: TimedDevice, sizes: Sizes) -> Iterator[ResultRow]:
    """Measure the capture of the CUDA graph of a decoding step, and steps that replay the graph."""
    model = build(sizes, machine, torch.bfloat16)
    for slots in sizes.slots:
        batch = decoder(model, machine).begin(sentences(sizes, slots, sizes.tokens))
        warm = machine.seconds(batch.advance)
        capture = machine.seconds(batch.advance)
        batch.advance()
        step = machine.seconds(partial(_repeat, batch.advance, sizes.steps)) / sizes.steps
        times = {"first ms": 1e3 * warm, "capture ms": 1e3 * capture, "step ms": 1e3 * step}
        yield {"slots": slots, **times}


def profile(machine: TimedDevice, sizes: Sizes) -> Iterator[ResultRow]:
    """List the GPU kernels that take most of the time of a decoding step."""
    batch = decoder(build(sizes, machine, torch.bfloat16), machine).begin(sentences(sizes, 64, sizes.tokens))
    _repeat(batch.advance, 3)
    with torch.profiler.profile(activities=[machine.profiled]) as profiler:
        machine.seconds(partial(_repeat, batch.advance, sizes.steps))
    kernels = sorted(profiler.key_averages(), key=lambda kernel: -kernel.self_device_time_total)
    for kernel in kernels[: sizes.kernels]:
        microseconds = kernel.self_device_time_total / sizes.steps
        yield {"kernel": kernel.key[:100], "calls": kernel.count / sizes.steps, "microseconds a step": microseconds}


def attention(machine: TimedDevice, sizes: Sizes) -> Iterator[ResultRow]:
    """Measure the first and the second run of attention with each shape, with and without cuDNN."""
    for cudnn in (False, True):
        torch.backends.cuda.enable_cudnn_sdp(cudnn)
        for step in range(sizes.shapes):
            length = sizes.tokens + step
            shape = (8, sizes.model.heads, length, sizes.model.d_model // sizes.model.heads)
            q = torch.randn(shape, dtype=torch.bfloat16, device=machine.device, requires_grad=True)
            mask = torch.ones(length, length, dtype=torch.bool, device=machine.device).tril()
            work = partial(_attend, q, mask)
            first, second = machine.seconds(work), machine.seconds(work)
            yield {"cuDNN": cudnn, "length": length, "first ms": 1e3 * first, "second ms": 1e3 * second}
    torch.backends.cuda.enable_cudnn_sdp(False)


def _repeat(work: Callable[[], object], times: int) -> None:
    for _ in range(times):
        work()


def _attend(q: torch.Tensor, mask: torch.Tensor) -> None:
    torch.autograd.backward(scaled_dot_product_attention(q, q, q, attn_mask=mask).sum())


def memory(machine: TimedDevice, sizes: Sizes) -> Iterator[ResultRow]:
    """Translate many long sentences with a limit on memory, and count the failures."""
    count, tokens = sizes.long
    model = build(sizes, machine, torch.bfloat16)
    limits = replace(Limits.of("cuda"), cells=memory_cells([model], machine.free_bytes()))
    engine = Engine(decoder(model, machine), limits)
    results: list[Result] = []
    seconds = machine.seconds(lambda: results.extend(decoded(engine, sentences(sizes, count, tokens))))
    failed = sum(not result.hypotheses for result in results)
    yield {"sentences": count, "failed": failed, "cells": limits.cells, "seconds": seconds, "steps": engine.steps}


BenchmarkPart = Callable[[TimedDevice, Sizes], Iterator[ResultRow]]
PARTS: Mapping[str, BenchmarkPart] = {
    "correctness": correctness,
    "training": training,
    "decoding": decoding,
    "replay": replay,
    "profile": profile,
    "lengths": lengths,
    "attention": attention,
    "memory": memory,
}
"""Parts of this benchmark by name, the most important first."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="gpu", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", choices=PARTS, required=True, nargs="+", help="parts of the measurements")
    parser.add_argument("--size", choices=("base", "big"), default="base", help="size of the model (default: base)")
    parser.add_argument("--device", default="cuda", help="cuda or cuda:N (default: cuda)")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder of the results")
    return parser.parse_args(argv)


@command
def main(argv: Sequence[str]) -> int:
    """Measure parts, one after another. Return 1 if one of them failed; the others are measured all the same.

    Raises: ModelError if the device is not a GPU.
    """
    options = parse(argv)
    device = torch.device(select_device(options.device))
    if device.type != "cuda":
        raise ModelError(f"--device is {options.device}, which is the CPU here; accepted: cuda or cuda:N")
    setup = {**conditions(), "gpu": torch.cuda.get_device_name(device), "cuda": torch.version.cuda}
    sizes = Sizes(ModelConfig.model_validate({"size": options.size, "max_length": 1024}))
    failed = []
    for name in options.part:
        try:
            measure(name, TimedDevice.of(device), sizes, options.output, {**setup, "size": options.size})
        except (MTError, RuntimeError) as error:
            failed.append(f"{name}: {type(error).__name__}: {error}")
        torch.cuda.empty_cache()
    report_failures(failed)
    return 1 if failed else 0


def report_failures(failed: Sequence[str]) -> None:
    for line in failed:
        print(line.replace("\n", " "), file=sys.stderr)


def measure(name: str, machine: TimedDevice, sizes: Sizes, output: Path, setup: ResultRow) -> list[ResultRow]:
    """Run the part `name`, and return its rows. After each row, all rows so far are written to the folder `output`."""
    part, rows = PARTS[name], []
    output.mkdir(parents=True, exist_ok=True)
    for row in part(machine, sizes):
        rows.append(row)
        Console(stderr=True).print(f"{name}: {row}", markup=False, highlight=False)
        text = json.dumps({"part": name, "about": setup, "rows": rows}, indent=2)
        stem = f"{name}-{setup['size']}"
        (output / f"{stem}.json").write_text(text, encoding="utf-8")
        (output / f"{stem}.md").write_text(markdown(name, stem, rows), encoding="utf-8")
    return rows


def markdown(name: str, title: str, rows: Sequence[ResultRow]) -> str:
    """Return the results of the part `name` in Markdown: a heading, the description of the part, and a table."""
    lines = [list(rows[0]), ["---"] * len(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"# {title}\n\n{PARTS[name].__doc__}\n\n{table}\n"


def _cell(value: object) -> str:
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    sys.exit(main())
