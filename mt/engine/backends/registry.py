"""Selection of the backend that decodes a model."""

import logging
from collections.abc import Sequence
from importlib import import_module

from mt.checkpoint import LoadedModel
from mt.engine.backends.protocol import Backend, Dtype
from mt.errors import ModelError, problems

logger = logging.getLogger(__name__)

BACKENDS = ("cpu", "cuda", "torch")
"""Modules of this package that have a function `load_backend`, fastest first. Only `cpu` works without torch.

`load_backend` raises ModelError if the backend does not support the models, the device or the options.
"""

DEVICE_ERRORS = ("AcceleratorError", "OutOfMemoryError")
"""Classes of torch, which is not imported here, for errors of a device that no backend avoids."""


def load_backend(models: Sequence[LoadedModel], device: str, dtype: Dtype, backend: str = "auto") -> Backend:
    """Return the fastest backend that can decode a model, or an ensemble of several models, on `device`.

    `backend` is the name of the only backend to try, or `auto` to try all. With `auto`, a backend that fails
    while it prepares, for example because the GPU cannot capture its graphs, is reported in the log, and the next one
    is tried. A device that is broken or out of memory would also fail with the next one.

    Raises:
        ModelError: No backend can decode the models. The message gives the reason for each backend.
    """
    reasons = []
    for name in BACKENDS if backend == "auto" else [backend]:
        try:
            load = import_module(f"mt.engine.backends.{name}").load_backend
            loaded: Backend = load(models, device, dtype)
        except ModelError as error:
            reasons.append(f"{name}: {error}")
        except ModuleNotFoundError as error:
            reasons.append(f"{name}: needs {error.name}, which is not installed")
        except RuntimeError as error:
            if backend != "auto" or type(error).__name__ in DEVICE_ERRORS:
                raise
            logger.warning("backend %s cannot be used: %s", name, error, exc_info=True)
            reasons.append(f"{name}: {error}")
        else:
            logger.debug("backend %s decodes with dtype %s; backends not used: %s", name, loaded.dtype, reasons)
            return loaded
    raise ModelError(problems(f"no backend can decode with dtype {dtype} on device {device}", reasons))
