"""Compilation of functions by torch, which calls a C compiler."""

import os
import shutil
from collections.abc import Callable
from typing import TypeVar, cast

import torch

from mt.errors import TrainingError

COMPILERS = ("g++", "gcc", "clang++", "clang", "c++", "cc")

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Return the function compiled by torch, for tensors of any shape.

    Raises: TrainingError if the machine has no C compiler. torch would otherwise fail at the first update.
    """
    named = [os.environ[name] for name in ("CC", "CXX") if os.environ.get(name)]
    if not any(map(shutil.which, [*named, *COMPILERS])):
        raise TrainingError(
            "training.compile is true, but torch finds no C compiler on this machine, such as an image of the service; "
            f"accepted: false, or one of {', '.join(COMPILERS)} in PATH"
        )
    return cast(F, torch.compile(function, dynamic=True))
