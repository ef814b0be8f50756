"""Typed modules. torch declares neither the type of a module's result nor the type of the modules in a ModuleList."""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar, cast

from torch import Tensor, nn

AnyModule = TypeVar("AnyModule", bound=nn.Module)


class Module(nn.Module):
    """Base class of all modules of this package: an `nn.Module` that returns a tensor."""

    __call__: Callable[..., Tensor]


def module_list(modules: Iterable[AnyModule]) -> Sequence[AnyModule]:
    """Return an `nn.ModuleList`, typed as a sequence of its modules."""
    return cast(Sequence[AnyModule], nn.ModuleList(modules))
