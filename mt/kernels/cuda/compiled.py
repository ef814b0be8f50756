"""The CUDA kernels of this folder, compiled to PTX, which the driver compiles for its GPU.

scripts/compile_kernels.sh makes the PTX files. Images that serve a model have no CUDA compiler, and torch's own
compilation at run time needs the CUDA headers. The kernels need a GPU of compute capability 8.0 (Ampere) or newer.
"""

import gzip
import logging
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch

logger = logging.getLogger(__name__)

FOLDER = Path(__file__).parent
Kernel = Callable[..., None]
"""Function that launches a kernel: kernel(grid=, block=, args=) on the current stream."""


@cache
def load_kernels(name: str, functions: Sequence[str], device: torch.device) -> list[Kernel] | None:
    """Return `functions`, a tuple of kernels of NAME.cu, loaded on `device`; None if the GPU cannot run them."""
    if device.type != "cuda" or torch.cuda.get_device_capability(device) < (8, 0):
        return None
    try:
        with torch.cuda.device(device):
            compiled = gzip.decompress((FOLDER / f"{name}.ptx.gz").read_bytes())
            loaded: Any = torch.cuda._utils._cuda_load_module(compiled, list(functions))
    except (RuntimeError, AttributeError, OSError) as error:
        logger.warning("torch's kernels are used, because those of %s.cu cannot be loaded: %s", name, error)
        return None
    return [loaded[function] for function in functions]
