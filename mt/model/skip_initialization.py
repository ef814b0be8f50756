"""Fast construction of modules whose weights are loaded afterwards."""

from typing import Any

from torch.overrides import TorchFunctionMode

INITIALIZERS = {"normal_", "uniform_", "xavier_uniform_", "kaiming_uniform_"}


class SkipInitialization(TorchFunctionMode):
    """Context in which new modules do not initialise their parameters, because weights are loaded afterwards.

    Uninitialised memory costs nothing until it is written. The meta device would do the same, but imports torch's
    compiler, which takes a second.
    """

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(function, "__name__", "") in INITIALIZERS:
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return function(*args, **kwargs)
