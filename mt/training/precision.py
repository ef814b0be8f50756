"""Training in bfloat16 with master weights in float32 (Micikevicius et al. 2018, section 3.1)."""

import copy

import torch

from mt.model.transformer import AnyModel


class WorkingCopy:
    """What forward and backward run on: the model itself or, in bfloat16, a copy of it that is made once an update.

    Adam, checkpoints and the published model know `master` only. Unlike autocast, which casts back and forth at each
    operation, all activations stay in bfloat16; softmax, LayerNorm and the loss compute in float32 inside.
    """

    def __init__(self, master: AnyModel, precision: str) -> None:
        self.master = master
        self.model = copy.deepcopy(master).to(torch.bfloat16) if precision == "bfloat16" else master
        self._pairs = list(zip(master.parameters(), self.model.parameters(), strict=True))

    @property
    def dtype(self) -> torch.dtype:
        """What gradients are computed in."""
        return self._pairs[0][1].dtype

    @torch.no_grad()
    def refresh(self) -> None:
        """Take over the master's weights."""
        if self.model is not self.master:
            for master, mine in self._pairs:
                mine.copy_(master)

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
