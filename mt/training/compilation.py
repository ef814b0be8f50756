"""Compilation of functions with torch.compile, which needs a C compiler."""

import os
import shutil
from collections.abc import Callable
from typing import TypeVar, cast

import torch

from mt.errors import TrainingError

COMPILERS = ("g++", "gcc", "clang++", "clang", "c++", "cc")

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Return `function`, compiled by torch for tensors of any shape.

    Raises: TrainingError if the machine has no C compiler. Without this check, the first update would fail.
    """
    named = [os.environ[name] for name in ("CC", "CXX") if os.environ.get(name)]
    if not any(map(shutil.which, [*named, *COMPILERS])):
        raise TrainingError(
            "training.compile is true, but this machine has no C compiler (the container image of the service has "
            f"none); accepted: false, or one of {', '.join(COMPILERS)} in PATH"
        )
    return cast(F, torch.compile(function, dynamic=True))
