"""Mixed precision: training in bfloat16 with master weights in float32 (Micikevicius et al. 2018, section 3.1)."""

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from mt.distributed import World, all_reduce
from mt.engine.devices import has_bfloat16
from mt.model.transformer import Transformer

INSTRUCTIONS = ("avx512_bf16", "amx_bf16", "bf16")  # instruction sets with bfloat16 products: two of x86, one of Arm


def has_fast_bfloat16(device: torch.device) -> bool:
    """Return whether the device has bfloat16 instructions that torch can use.

    A CPU without them, for example with AVX2 only, is about fifteen times slower in bfloat16 than in float32.
    """
    if device.type == "cuda":
        return has_bfloat16(device)
    capabilities: Mapping[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # some torch since 2.11 lack it
    has_onednn: bool = torch.backends.mkldnn.is_available()
    return has_onednn and any(capabilities.get(name) for name in INSTRUCTIONS)


def choose_precision(precision: str, device: torch.device, world: World) -> str:
    """Return `precision`, or for `auto` the name of the faster precision, `float32` or `bfloat16`.

    For `auto`, all processes of `world` must call this function. They choose bfloat16 only if the devices of all
    processes have fast bfloat16.
    """
    if precision != "auto":
        return precision
    supported = torch.tensor(float(has_fast_bfloat16(device)), device=device)
    return "bfloat16" if all_reduce(world, supported) == world.size else "float32"


class WorkingCopy:
    """Model for forward and backward passes: `model` is a bfloat16 copy of `master`, or `master` itself.

    `master` is in float32. Optimizers, checkpoints and the published model use only `master`. The copy is refreshed
    before each update. All activations of the copy are in bfloat16. Softmax and LayerNorm compute in float32 and return
    bfloat16. The loss is the logarithm of a probability in bfloat16, summed in float32; it differs from a loss in
    float32 by at most 0.0007 nats per token. Unlike autocast, the copy needs no cast at each operation.
    """

    def __init__(self, master: Transformer, precision: str) -> None:
        self.master = master
        self.dtype: torch.dtype = getattr(torch, precision)
        self.model = master if self.dtype == torch.float32 else copy.deepcopy(master).to(self.dtype)
        self._pairs = list(zip(master.parameters(), self.model.parameters(), strict=True))

    @torch.no_grad()
    def refresh(self) -> None:
        """Set the weights of the copy to those of `master`, and delete the gradients of the copy.

        The copy only has gradients if a backward pass ran out of memory.
        """
        if self.model is not self.master:
            masters, copies = zip(*self._pairs, strict=True)
            torch._foreach_copy_(copies, masters)
            for copied in copies:
                copied.grad = None

    @torch.no_grad()
    def collect(self) -> None:
        """Move the gradients of the copy to `master`: add them in float32 to the gradients of `master`."""
        if self.model is self.master:
            return
        first: tuple[list[Tensor], list[Tensor]] = [], []  # sums and gradients of parameters without a sum
        later: tuple[list[Tensor], list[Tensor]] = [], []
        for master, copied in self._pairs:
            if copied.grad is None:
                continue
            sums, gradients = first if master.grad is None else later
            if master.grad is None:
                master.grad = torch.empty_like(master)
            sums.append(master.grad)
            gradients.append(copied.grad)
            copied.grad = None
        if first[0]:
            torch._foreach_copy_(*first)
        if later[0]:
            torch._foreach_add_(*later)
