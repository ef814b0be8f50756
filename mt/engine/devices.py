"""Choice of the device on which models run. Without an NVIDIA driver, choosing the CPU does not import torch."""

import ctypes
import logging
import os
import re
from importlib import import_module
from typing import TYPE_CHECKING

from mt.errors import ModelError

if TYPE_CHECKING:
    import torch

logger = logging.getLogger(__name__)

NO_DRIVER = "no NVIDIA driver is installed"
USUAL_REASONS = ("no NVIDIA driver", "No CUDA GPUs", "built without CUDA", "torch is not installed")
"""Texts in messages of torch and of `why_no_gpu` that only say that the machine has no usable GPU."""


def select_device(name: str, index: int | None = None) -> str:
    """Return the device for `name`: `cpu`, `cuda` or `cuda:N`. `auto` selects a GPU if torch can use one, else the CPU.

    `index` is the GPU that `cuda` and `auto` select; without it, they select torch's current GPU. A GPU becomes the
    current device of this thread, and cuDNN's attention is switched off in this process.

    Raises:
        ModelError: The device cannot be used.
    """
    gpu = "cuda" if index is None else f"cuda:{index}"
    if name == "auto":
        reason = why_no_gpu() or why_no_kernel(gpu)
        if reason and not any(usual in reason for usual in USUAL_REASONS):
            logger.warning("the CPU is used, because torch cannot use a GPU: %s", reason)
        name = "cpu" if reason else gpu
    elif name == "cuda":
        name = gpu
    if name == "cpu":
        return name
    if not re.fullmatch(r"(cpu|cuda)(:\d+)?", name):
        raise _unusable(name, "there is no such device")
    try:
        torch = import_module("torch")
        device = torch.device(name)
    except ModuleNotFoundError as error:
        raise ModelError(f"device {name!r} needs torch, which is not installed; accepted: auto, cpu") from error
    except RuntimeError as error:
        raise _unusable(name, error) from error
    if device.type == "cuda":
        if reason := why_no_kernel(name):
            raise _unusable(name, reason)
        # torch prefers cuDNN on GPUs since Hopper. It takes about a second to plan each new shape, and a decoder has a
        # new shape at each step.
        torch.backends.cuda.enable_cudnn_sdp(False)
    return str(device)


def _unusable(name: str, reason: object) -> ModelError:
    return ModelError(f"device {name!r} cannot be used ({reason}); accepted: auto, cpu, cuda, cuda:N")


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cpu_threads() -> int:
    """Return the number of threads for computation: OMP_NUM_THREADS, or one for each core."""
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return int(limit) if limit.isdigit() and int(limit) else available_cores()


def has_driver() -> bool:
    """Return whether the NVIDIA driver is installed. This does not import torch, which would take long."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def why_no_gpu() -> str:
    """Return the reason why torch finds no GPU, for example a driver that is too old; "" if torch finds one."""
    if not has_driver():
        return NO_DRIVER
    try:
        torch = import_module("torch")
    except ModuleNotFoundError:
        return "torch is not installed"
    if torch.cuda.is_available():
        return ""
    if torch.version.cuda is None:
        return f"torch {torch.__version__} is built without CUDA"
    try:
        torch.cuda.init()
    except (RuntimeError, AssertionError) as error:
        return str(error).partition("\n")[0]
    return "No CUDA GPUs are available"


def why_no_kernel(name: str) -> str:
    """Run a kernel on the GPU `name`, `cuda` or `cuda:N`. Return the reason if it fails, else "".

    A GPU of `cuda:N` becomes the current device of this thread. torch lists GPUs for which it has no kernels, because
    they are too old; only a kernel shows whether it can use them.
    """
    torch = import_module("torch")
    try:
        device = torch.device(name)
        if device.index is not None and torch.cuda.is_available():
            torch.cuda.set_device(device)  # otherwise each process would also open a context on the first GPU
        torch.zeros(1, device=device).add_(1).item()
    except (RuntimeError, AssertionError) as error:
        return str(error).strip().partition("\n")[0]
    return ""


def visible_gpus() -> list[str]:
    """Return the GPUs that torch can use, as entries of CUDA_VISIBLE_DEVICES."""
    if listed := os.environ.get("CUDA_VISIBLE_DEVICES", ""):
        return listed.split(",")
    return list(map(str, range(import_module("torch").cuda.device_count())))


def has_bfloat16(device: "torch.device") -> bool:
    """Return whether `device` is a GPU with instructions for bfloat16. GPUs before Ampere emulate them slowly."""
    return device.type == "cuda" and bool(import_module("torch").cuda.is_bf16_supported(including_emulation=False))
