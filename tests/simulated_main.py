"""Takes the place of Python in scripts/gpu.sh: measurements run on the simulated device, the rest on the CPU."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from mt.cli.benchmarks.gpu import ResultRow, Sizes, TimedDevice, measure
from mt.config import ModelConfig
from tests.simulated_device import SimulatedDevice, SimulatedGraphs

TINY = Sizes(
    ModelConfig(encoder_layers=1, decoder_layers=1, d_model=16, d_ff=16, heads=2, dropout=0, max_length=64),
    vocabulary=60,
    tokens=8,
    checked=3,
    sentences=(1, 5),
    slots=(1, 4),
    steps=3,
    update_tokens=(32,),
    updates=2,
    long=(6, 30),
    shapes=2,
    natural=5,
    kernels=2,
)


def beam_step(slots: int, arguments: Sequence[Any]) -> None:
    """Take the place of the kernel, which only a GPU runs: each sentence ends after a few steps without results."""
    _, _, _, _, progress, rows = arguments[:6]
    rows.zero_()
    progress[:, 0].add_(progress[:, 1])
    progress[:, 1].mul_(progress[:, 0] < 4)


def simulated_measure(name: str, size: str, output: Path) -> list[ResultRow]:
    """Run a part of the measurements on the simulated device, with a tiny model whatever the size."""
    with SimulatedDevice() as simulated:
        machine = TimedDevice(
            simulated.device,
            lambda: SimulatedGraphs(simulated),
            lambda: None,
            lambda: 1 << 24,
            lambda: beam_step,
            torch.profiler.ProfilerActivity.CPU,
        )
        return measure(name, machine, TINY, output, {"gpu": "none", "size": size})


def main(arguments: list[str]) -> None:
    if arguments[1:4] == ["mt", "benchmark", "gpu"]:
        named = dict(zip(arguments[4::2], arguments[5::2], strict=True))
        simulated_measure(named["--part"], named["--size"], Path(named["--output"]))
        return
    small = {"cuda": "cpu", "cuda:1": "cpu"}
    if arguments[1:2] == ["-c"]:
        arguments[2] = arguments[2].replace("torch.cuda.device_count()", "2")
    if arguments[1:4] == ["mt", "benchmark", "decode"]:
        small["base"] = "tiny"
        arguments += ["--sentences", "8", "--single-sentences", "2"]
    if os.environ.get("MT_DEVICE") == "cuda":
        os.environ["MT_DEVICE"] = "cpu"
    os.execv(sys.executable, [sys.executable, *(small.get(argument, argument) for argument in arguments)])


if __name__ == "__main__":
    main(sys.argv[1:])
