"""Training in bfloat16 with master weights in float32 (Micikevicius et al. 2018, section 3.1)."""

import copy
from collections.abc import Mapping
from typing import Any

import torch

from mt.distributed import World, all_reduce
from mt.model.transformer import AnyModel

INSTRUCTIONS = ("avx512_bf16", "amx_bf16", "bf16")  # for products in bfloat16: two of x86, one of Arm


def computes_in_bfloat16(device: torch.device) -> bool:
    """Whether the device has instructions for it, and torch uses them. A CPU of AVX2 alone is some fifteen times slower
    in bfloat16 than in float32."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    capabilities: Mapping[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # not in every torch since 2.11
    used: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return used and any(capabilities.get(each) for each in INSTRUCTIONS)


def choose_precision(asked: str, device: torch.device, world: World) -> str:
    """`float32` or `bfloat16`: what is asked for, or for `auto` what every process's device computes fast in."""
    if asked != "auto":
        return asked
    able = torch.tensor(float(computes_in_bfloat16(device)), device=device)
    return "bfloat16" if all_reduce(world, able) == world.size else "float32"


class WorkingCopy:
    """What forward and backward run on: the model itself or, in bfloat16, a copy of it that is made once an update.

    Optimizers, checkpoints and the published model know `master` only. Unlike autocast, which casts back and forth at
    each operation, all activations stay in bfloat16; softmax, LayerNorm and the loss compute in float32 inside.
    """

    def __init__(self, master: AnyModel, precision: str) -> None:
        self.master = master
        self.dtype: torch.dtype = getattr(torch, precision)
        self.model = master if self.dtype == torch.float32 else copy.deepcopy(master).to(self.dtype)
        self._pairs = list(zip(master.parameters(), self.model.parameters(), strict=True))

    @torch.no_grad()
    def refresh(self) -> None:
        """Take over the master's weights. What gradients a pass left that did not fit in memory are dropped."""
        if self.model is not self.master:
            for master, mine in self._pairs:
                mine.copy_(master)
                mine.grad = None

    def collect(self) -> None:
        """Add the gradients of one backward pass to the master's, in float32."""
        if self.model is self.master:
            return
        for master, mine in self._pairs:
            if mine.grad is None:
                continue
            if master.grad is None:
                master.grad = mine.grad.to(master.dtype)
            else:
                master.grad += mine.grad
            mine.grad = None
