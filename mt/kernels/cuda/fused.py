"""Fused CUDA kernels, which torch compiles by NVRTC at run time.

None has run on a GPU yet, so they are off by default.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

THREADS = 256
"""Number of threads of a block."""

MAX_BEAMS = 8

BeamStep = Callable[[int, Sequence[Tensor | int]], None]
"""Function that launches the kernel of beam_step.cu, given the number of slots and the arguments of the kernel."""


def beam_step_source(threads: int = THREADS) -> str:
    """Return the CUDA source of the kernel that takes one step of beam search."""
    kernel = Path(__file__).with_name("beam_step.cu").read_text(encoding="utf-8")
    return f"#define THREADS {threads}\n#define MAX_BEAMS {MAX_BEAMS}\n{kernel}"


def compiled_beam_step() -> BeamStep:
    """Return a function that launches the kernel of beam_step.cu, compiled for the current GPU."""
    kernel = torch.cuda._compile_kernel(beam_step_source(), "beam_step")

    def run(slots: int, arguments: Sequence[Tensor | int]) -> None:
        kernel(grid=(slots, 1, 1), block=(THREADS, 1, 1), args=list(arguments))

    return run
