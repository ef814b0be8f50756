"""Devices that models run on."""

import torch

from mt.errors import ModelError


def select_device(name: str) -> torch.device:
    """Return the torch device of a name. `auto` is a GPU if torch finds one, else the CPU.

    Raises:
        ModelError: The device cannot be used.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device).tolist()  # fails on the device `meta`, which stores no values
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ModelError(f"device {name!r} cannot be used ({error}); accepted: auto, cpu, cuda, cuda:N") from error
    return device
