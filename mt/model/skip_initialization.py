"""Fast construction of modules whose weights are loaded afterwards."""

from typing import Any

from torch.overrides import TorchFunctionMode

INITIALIZERS = {"normal_", "uniform_", "xavier_uniform_", "kaiming_uniform_"}


class SkipInitialization(TorchFunctionMode):
    """Context in which new modules do not initialise their parameters, because weights are loaded afterwards.

    Uninitialised memory costs nothing until it is written. The meta device needs this context, too: to draw random
    numbers there, torch imports its compiler, which takes seconds.
    """

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(function, "__name__", "") in INITIALIZERS:
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return function(*args, **kwargs)
