"""A simulated accelerator on the CPU: it has real values, and it logs what a GPU would wait for.

    with SimulatedDevice() as simulated:
        x = torch.ones(3, device=simulated.device)
        float(x.sum())
    simulated.waits       # ["tests/test_x.py:12 aten._local_scalar_dense"]

Tensors of the device are wrappers around tensors on the CPU. An operation on tensors of the host and of the device
raises the error of torch. Not simulated: streams, several devices, and the rounding of kernels.
"""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Self
from weakref import finalize

import pytest
import torch
from torch import Tensor
from torch.utils import backend_registration
from torch.utils._foreach_utils import _foreach_supported_types
from torch.utils._python_dispatch import TorchDispatchMode

from mt.kernels.cuda.graphs import Eager, Fetched, Program, Work
from tests.recording import Record, leaves, mapped

ROOT = Path(__file__).resolve().parents[1]
aten = torch.ops.aten
NAME = "simulated"
COMPOSITE = torch._C.DispatchKey.CompositeImplicitAutograd

WAITING = {
    aten._local_scalar_dense.default,
    aten.nonzero.default,
    aten.masked_select.default,
    aten.equal.default,
    aten.repeat_interleave.Tensor,
    aten._unique2.default,
}
"""Operations whose result has a size or a value that the host reads."""

PINNING = {aten.pin_memory.default, aten._pin_memory.default, aten.is_pinned.default}
INDEXING = {aten.index.Tensor, aten.index_put_.default, aten.index_put.default}
NO_KERNEL = {"view", "t", "transpose", "expand", "slice", "select", "unsqueeze", "squeeze", "permute", "detach"}
NO_KERNEL |= {"alias", "as_strided", "unbind", "split", "split_with_sizes", "_unsafe_view", "_reshape_alias", "unfold"}
NO_KERNEL |= {"diagonal", "empty", "empty_like", "empty_strided", "new_empty", "lift_fresh", "detach_"}
"""Operations without a kernel."""


class SimulatedTensor(Tensor):
    """Tensor of the simulated device, with its values on the CPU."""

    on_host: Tensor

    @staticmethod
    def __new__(cls, on_host: Tensor) -> "SimulatedTensor":
        with torch.inference_mode(on_host.is_inference()):  # a view of a parameter is not an inference tensor
            made = Tensor._make_wrapper_subclass(
                cls,
                on_host.shape,
                strides=on_host.stride(),
                storage_offset=on_host.storage_offset(),
                dtype=on_host.dtype,
                device=torch.device(NAME, 0),
            )
        made.on_host = on_host
        return made

    @property
    def data(self) -> Tensor:
        return self.detach()

    @data.setter
    def data(self, value: Tensor) -> None:
        assert isinstance(value, SimulatedTensor)
        torch._C.TensorBase.data.__set__(self, value)  # type: ignore[attr-defined]
        self.on_host = value.on_host

    def tolist(self) -> Any:
        """Return the values. torch refuses this for subclasses."""
        return self.cpu().tolist()

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Simulated({self.on_host!r})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, *arguments: Any) -> Any:
        raise RuntimeError(f"{func}: a tensor of the simulated device is used outside of its context")


def _register() -> None:
    if torch._C._get_privateuse1_backend_name() != NAME:
        setup = getattr(backend_registration, "_setup_privateuseone_for_python_backend", None)
        if setup is None:
            pytest.skip("this torch has no backends in Python")
        setup(NAME)
        types: list[type[Tensor]] = _foreach_supported_types
        types.append(SimulatedTensor)  # as on a GPU, optimizers run on lists of tensors
        for func in (aten.empty_strided.default, aten._copy_from.default):
            _library.impl(func, partial(_hidden, func), "PrivateUse1")


_library = torch.library.Library("aten", "IMPL")
_entered: list["SimulatedDevice"] = []


def _hidden(func: Any, *args: Any, **kwargs: Any) -> Any:
    """Run an operation that torch hides from modes: `torch.tensor` copies its values by these."""
    return _entered[-1].__torch_dispatch__(func, (), args, kwargs)


class SimulatedDevice(TorchDispatchMode):
    """The device while it is entered. Counters can be reset at any time.

    `waits` lists what the host waited for: the line in the project, and the operation. `operations` counts kernels by
    the name of their operation, `memory` and `peak` are bytes, `allocations` counts allocations. Allocation number
    `fail_at` (from 1) and those beyond `capacity` bytes raise OutOfMemoryError; `failures` counts them. If `broken`,
    every operation raises AcceleratorError.
    """

    def __init__(self, capacity: int = sys.maxsize) -> None:
        _register()
        super().__init__()  # type: ignore[no-untyped-call]
        self.device = torch.device(NAME, 0)
        self.waits: list[str] = []
        self.operations: Counter[str] = Counter()
        self.capacity = capacity
        self.fail_at = 0
        self.broken = False
        self.capturing = False
        self.memory = self.peak = self.allocations = self.failures = 0
        self._storages: Counter[int] = Counter()  # tensors of each storage
        self._pinned: set[int] = set()  # addresses of page-locked storages

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled, and torch's wrapper would import its compiler

    def __enter__(self) -> Self:
        _entered.append(self)
        self._single_thread = torch.autograd.set_multithreading_enabled(False)  # the threads of a device are others'
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)  # type: ignore[no-untyped-call]
        self._single_thread.__exit__(*exception)
        _entered.pop()

    def reset(self) -> Self:
        """Forget waits and operations; the peak becomes the present memory."""
        self.waits, self.operations, self.peak = [], Counter(), self.memory
        return self

    def wait(self, reason: object) -> None:
        """Record that the host waits. Raises: RuntimeError during a capture, as CUDA does."""
        if self.capturing:
            raise RuntimeError(f"{reason}: operation not permitted when stream is capturing")
        self.waits.append(f"{_location()} {reason}")

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        tensors = [leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        simulated = [tensor for tensor in tensors if isinstance(tensor, SimulatedTensor)]
        target = torch.device(kwargs["device"]) if kwargs.get("device") is not None else None
        here = target is not None and target.type == NAME
        if func in PINNING or kwargs.get("pin_memory"):
            return self._pin(func, args, kwargs)
        if not simulated and not here:
            return func(*args, **kwargs)
        if _is_composite(func):  # in inference mode, torch leaves it whole
            with self:
                return func._op_dk(COMPOSITE, *args, **kwargs)
        if self.broken:
            raise torch.AcceleratorError("CUDA error: device-side assert triggered")
        if func in (aten._to_copy.default, aten.copy_.default, aten._copy_from.default):
            return self._copy(func, args, kwargs)
        self._check(func, args, tensors)
        if here:
            kwargs["device"] = torch.device("cpu")
        return self._run(func, args, kwargs, simulated)

    def _run(self, func: Any, args: Any, kwargs: Any, simulated: Sequence[Tensor]) -> Any:
        """Run an operation on the values; results of the device are wrapped."""
        if func is aten.mm.dtype:  # only for GPUs
            out = args[0].on_host.to(args[2]) @ args[1].on_host.to(args[2])
        else:
            out = func(*mapped(_host, args), **mapped(_host, kwargs))
        name = func.overloadpacket.__name__
        if name not in NO_KERNEL:
            self.operations[name] += 1
        known = {id(tensor.on_host): tensor for tensor in simulated if isinstance(tensor, SimulatedTensor)}
        return mapped(lambda value: self._wrap(value, known) if isinstance(value, Tensor) else value, out)

    def _wrap(self, on_host: Tensor, known: dict[int, Any]) -> Tensor:
        """Return the tensor of the device with these values: that of an operation in place, or a new one."""
        if id(on_host) in known:
            return known[id(on_host)]  # type: ignore[no-any-return]
        storage = on_host.untyped_storage()
        address, size = storage._cdata, storage.nbytes()
        if not self._storages[address]:
            self._allocate(size)
        self._storages[address] += 1
        made = SimulatedTensor(on_host)
        finalize(made, self._free, address, size).atexit = False
        return made

    def _allocate(self, size: int) -> None:
        self.allocations += 1
        if self.allocations == self.fail_at or self.memory + size > self.capacity:
            self.failures += 1
            raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {size} bytes")
        self.memory += size
        self.peak = max(self.peak, self.memory)

    def _free(self, address: int, size: int) -> None:
        self._storages[address] -= 1
        if not self._storages[address]:
            del self._storages[address]
            self.memory -= size

    def _copy(self, func: Any, args: Any, kwargs: Any) -> Any:
        """Copy within the device, from it, or to it. Only copies of page-locked memory do not make the host wait."""
        if func is not aten._to_copy.default:
            target, source = args[:2] if func is aten.copy_.default else args[1::-1]
            free = kwargs.get("non_blocking", False) or (len(args) > 2 and args[2])
        else:
            source, free = args[0], kwargs.pop("non_blocking", False)
            target = torch.device(kwargs.pop("device", None) or source.device)
        from_here = isinstance(source, SimulatedTensor)
        to_here = isinstance(target, SimulatedTensor) or (isinstance(target, torch.device) and target.type == NAME)
        self.operations[func.overloadpacket.__name__] += 1
        if from_here != to_here:
            locked = source if to_here else target  # a copy to a new host tensor allocates page-locked memory
            if not free or (isinstance(locked, Tensor) and not self._is_pinned(locked)):
                self.wait(func)
        if func is not aten._to_copy.default:
            _host(target).copy_(_host(source))
            return target
        copied = func(_host(source), **kwargs)
        return self._wrap(copied, {}) if to_here else copied

    def _pin(self, func: Any, args: Any, kwargs: Any) -> Any:
        if func is aten.is_pinned.default:
            return self._is_pinned(args[0])
        pinned = args[0].clone() if "_memory" in str(func) else func(*args, **{**kwargs, "pin_memory": False})
        address = pinned.untyped_storage()._cdata
        self._pinned.add(address)
        finalize(pinned, self._pinned.discard, address).atexit = False
        return pinned

    def _is_pinned(self, tensor: Tensor) -> bool:
        return tensor.untyped_storage()._cdata in self._pinned

    def _check(self, func: Any, args: Any, tensors: Sequence[Tensor]) -> None:
        """Record what the operation waits for. Raises: RuntimeError if it mixes devices."""
        indices: Sequence[Tensor] = [x for x in args[1] if x is not None] if func in INDEXING else []
        given = {id(index) for index in indices}  # indices may be on the host, from where they are copied
        for tensor in tensors:
            # Numbers of the host may take part in operations on each element, and are passed by value.
            if not isinstance(tensor, SimulatedTensor) and tensor.dim() > 0 and id(tensor) not in given:
                raise RuntimeError(f"{func}: Expected all tensors to be on the same device, but one is on the CPU")
        waits = func in WAITING or any(x.dtype == torch.bool or not isinstance(x, SimulatedTensor) for x in indices)
        if waits:
            self.wait(func)


@pytest.fixture
def simulated() -> Iterator[SimulatedDevice]:
    with SimulatedDevice() as device:
        yield device


class SimulatedGraphs(Eager):
    """Executor of the simulated device: work is recorded at its second run and then replayed, as by CudaGraphs."""

    def __init__(self, simulated: SimulatedDevice) -> None:
        super().__init__(simulated.device)
        self.simulated = simulated
        self.captures = 0
        self.replays = 0

    def program(self, work: Work) -> Program:
        return _Counted(self, work)

    def send(self, tensor: Tensor, into: Tensor | None = None) -> Tensor:
        pinned = tensor.pin_memory()
        return pinned.to(self.device, non_blocking=True) if into is None else into.copy_(pinned, non_blocking=True)

    def fetch(self, tensor: Tensor) -> Fetched:
        """Copy to the host. If no later work is queued when the host reads it, the device stands still: a wait."""
        assert tensor.is_contiguous(), "the copy would need another one"
        replays = self.replays
        host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(tensor, non_blocking=True)

        def read() -> Tensor:
            if self.replays == replays:
                self.simulated.wait("the newest step")
            return host

        return read

    def select(self, table: Tensor, entries: Sequence[int]) -> Tensor:
        return table.index_select(0, self.send(torch.tensor(entries))).cpu()


class _Counted(Record):
    """Program that counts its replays, and whose capture is counted and must not wait."""

    def __init__(self, graphs: SimulatedGraphs, work: Work) -> None:
        super().__init__(work, self._captured)
        self._graphs = graphs

    def _captured(self) -> None:
        self._graphs.simulated.capturing = True
        self._graphs.captures += 1
        try:
            self.work()
        finally:
            self._graphs.simulated.capturing = False

    def __call__(self) -> None:
        self._graphs.replays += 1
        super().__call__()


@cache
def _is_composite(func: Any) -> bool:
    """Return whether an operation calls others on every device. A GPU has a kernel of attention."""
    attention = aten.scaled_dot_product_attention.default
    return func is not attention and torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), COMPOSITE)


def _host(value: Any) -> Any:
    return value.on_host if isinstance(value, SimulatedTensor) else value


def _location() -> str:
    """Return file and line of the innermost frame in the project, else in the tests."""
    frame, test = sys._getframe(2), ""
    while frame is not None:
        path = Path(frame.f_code.co_filename)
        name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
        if name.startswith(("mt/", "service/")):
            return f"{name}:{frame.f_lineno}"
        if not test and name.startswith("tests/") and path.name not in ("simulated_device.py", "recording.py"):
            test = f"{name}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return test
