"""What CUDA graphs do, on a CPU: the second run of a work is recorded, and from then on only the record runs.

Whatever Python had decided and wherever a tensor lay then stays so.
"""

from collections.abc import Callable, Iterator
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

from mt.kernels.cuda.graphs import Eager, Program, Work


class Recording(Eager):
    def program(self, work: Work) -> Program:
        return Record(work)


class Record(TorchDispatchMode):
    """Program that runs the operations of the second run of `work`; that run is `capture` if it is given."""

    def __init__(self, work: Work, capture: Work | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.work = work
        self.capture = capture or work
        self.warm = False
        self.calls: list[tuple[Any, Any, Any, Any]] = []

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled, and torch's wrapper would import its compiler

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        self.calls.append((func, args, kwargs or {}, out))
        return out

    def __call__(self) -> None:
        if not self.warm:
            self.warm = True
            self.work()
        elif not self.calls:
            with self:
                self.capture()
        else:
            self.run()

    def run(self) -> None:
        now: dict[int, Any] = {}  # a tensor of the recording -> its like in this run; static ones are what they were
        for func, args, kwargs, out in self.calls:
            args, kwargs = mapped(lambda value: now.get(id(value), value), (args, kwargs))
            now.update(zip(map(id, leaves(out)), leaves(func(*args, **kwargs)), strict=True))


def leaves(value: Any) -> Iterator[Any]:
    """Yield the values in nested lists, tuples and dictionaries. torch's pytree takes four times as long."""
    if isinstance(value, (list, tuple, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from leaves(part)
    else:
        yield value


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)([mapped(function, part) for part in value])
    if isinstance(value, dict):
        return {key: mapped(function, part) for key, part in value.items()}
    return function(value)
