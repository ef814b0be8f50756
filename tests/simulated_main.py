"""Takes the place of Python in scripts/gpu.sh: models decode on the simulated device, and train on the CPU."""

import os
import sys
from pathlib import Path

import torch

from mt.cli import fetch as fetching
from mt.cli import translate
from mt.config import ModelConfig
from scripts.benchmark.gpu import ResultRow, Sizes, TimedDevice, measure, parse
from tests.simulated_device import SimulatedDevice, SimulatedGraphs
from tests.simulated_gpu import simulate

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


def simulated_measure(name: str, size: str, output: Path) -> list[ResultRow]:
    """Run a part of the measurements on the simulated device, with a tiny model whatever the size."""
    with SimulatedDevice() as simulated:
        machine = TimedDevice(
            simulated.device,
            lambda: SimulatedGraphs(simulated),
            lambda: None,
            lambda: 1 << 24,
            torch.profiler.ProfilerActivity.CPU,
        )
        return measure(name, machine, TINY, output, {"gpu": "none", "size": size})


SMALL_TRAINING = (
    *("tokenizer.vocabulary_size=400", "model.encoder_layers=1", "model.decoder_layers=1", "model.d_model=32"),
    *("model.heads=2", "model.d_ff=32", "training.batch_tokens=200", "training.update_tokens=200"),
    "decoding.beam_size=1",
)
SMALL_PEERS = """import sys
from scripts.benchmark import decode, untrained
untrained.VOCABULARY = 500
sys.exit(decode.main(sys.argv[1:]))"""
SMALL_COMPARISON = ("--sentences", "8", "--kinds", "bulk", "--rounds", "1", "--cores", "1")
PAIRS = 300
"""Lines of each corpus file that the trainings use."""

SKIPPED = 77
"""Exit status of a part that was skipped."""


def fetch(options: list[str]) -> int:
    """Write the phrasebook, shortened."""
    status = fetching.main(options)
    for path in Path(options[options.index("--out") + 1]).glob("*.tsv"):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(lines[:PAIRS]), encoding="utf-8")
    return status


def main(arguments: list[str]) -> int:
    match arguments[1:]:
        case ["-m", "pytest", *_]:
            print("the tests need a GPU; their simulated counterparts run with the other tests")
            return SKIPPED
        case ["-m", "scripts.benchmark.gpu", *options]:
            named = parse(options)
            for part in named.part:
                simulated_measure(part, named.size, named.output)
            return 0
        case ["-m", "mt", "translate", *_] if "cuda:1" in arguments:
            print("the simulated device is one device")
            return SKIPPED
        case ["-m", "mt", "translate", *options]:
            simulate()
            return translate.main(options)
        case ["-m", "mt", "fetch", *options]:
            return fetch(options)
    return on_the_cpu(arguments)


def on_the_cpu(arguments: list[str]) -> int:
    """Run Python with these arguments, where processes of their own compute: trainings by torchrun, peers."""
    if "train" in arguments:
        arguments = [*arguments, *SMALL_TRAINING]
    if arguments[1:3] == ["-m", "scripts.benchmark.decode"]:
        arguments = [arguments[0], "-c", SMALL_PEERS, *arguments[3:], *SMALL_COMPARISON]
    small = {"cuda": "cpu", "base": "tiny"}
    if arguments[1:2] == ["-c"]:
        arguments[2] = arguments[2].replace("torch.cuda.device_count()", "2")
    os.execv(sys.executable, [sys.executable, *(small.get(argument, argument) for argument in arguments[1:])])


if __name__ == "__main__":
    sys.exit(main(sys.argv))
