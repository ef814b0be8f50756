"""Selection of the backend that decodes a model."""

import logging
from collections.abc import Callable, Mapping, Sequence

import torch

from mt.checkpoint import LoadedModel
from mt.engine.backends import cpu, cuda
from mt.engine.backends import torch as reference
from mt.engine.backends.protocol import Backend, Dtype
from mt.errors import ModelError, problems

logger = logging.getLogger(__name__)

Loader = Callable[[Sequence[LoadedModel], torch.device, Dtype, bool], Backend]

BACKENDS: Mapping[str, Loader] = {"cpu": cpu.load_backend, "cuda": cuda.load_backend, "torch": reference.load_backend}
"""Loaders of backends by name, fastest first. A loader raises ModelError if its backend does not support a request."""


def load_backend(
    models: Sequence[LoadedModel], device: torch.device, dtype: Dtype, shortlist: bool = False, backend: str = "auto"
) -> Backend:
    """Return the fastest backend that can decode a model, or an ensemble of several models, on a device.

    `shortlist` limits target tokens to the model's shortlist in backends that support shortlists. `backend` is the name
    of the only backend to try, or `auto`.

    Raises:
        ModelError: No backend can decode the models. The message lists the reason of each backend.
    """
    reasons = []
    for name, load in BACKENDS.items() if backend == "auto" else [(backend, BACKENDS[backend])]:
        try:
            loaded = load(models, device, dtype, shortlist)
        except ModelError as error:
            reasons.append(f"{name}: {error}")
        else:
            logger.debug("backend %s decodes with dtype %s; not used: %s", name, loaded.dtype, reasons)
            return loaded
    raise ModelError(problems(f"no backend can decode with dtype {dtype} on device {device}", reasons))
