"""Steps from gradients to weights: by Adam, or by Muon for the matrices of the layers and by Adam for the rest.

Both divide each gradient by `grad_scale`, which turns a clipped sum into a mean without a pass of its own.
"""

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from mt.config import TrainingConfig
from mt.distributed import World, all_reduce
from mt.model.layers import layers_of

QUINTIC = (3.4445, -4.7750, 2.0315)  # a x + b x^3 + c x^5 drives an x in (0.01, 1] to between 0.7 and 1.2 ...
ITERATIONS = 5  # ... in so many
MOMENTUM = 0.95
LIKE_ADAM = 0.2  # the root mean square of a step of Adam at rate 1


def orthogonal(matrices: Tensor, dtype: torch.dtype) -> Tensor:
    """U V^T of each U S V^T, roughly: [k, m, n] -> [k, m, n], singular values between 0.7 and 1.2.

    Newton and Schulz's iteration with the quintic of Jordan et al. 2024, "Muon"; bfloat16 is exact enough for it.
    """
    tall = matrices.shape[-2] > matrices.shape[-1]
    x: Tensor = (matrices.mT if tall else matrices).to(dtype)
    x = x / x.norm(dim=(-2, -1), keepdim=True).clamp_min(1e-7)
    a, b, c = QUINTIC
    for _ in range(ITERATIONS):
        square = x @ x.mT
        factor = torch.baddbmm(square, square, square, beta=b, alpha=c)
        x = torch.baddbmm(x, factor, x, beta=a)  # a x + (b x x^T + c (x x^T)^2) x
    return (x.mT if tall else x).to(matrices.dtype)


class Muon(torch.optim.Optimizer):
    """Momentum made orthogonal (Jordan et al. 2024): a step goes equally far in every direction that a matrix has.

    Its size is that of Adam's at the same rate (Liu et al. 2025, "Muon is scalable", equation 4), so that one learning
    rate serves both.
    """

    grad_scale: Tensor

    def __init__(self, matrices: Iterable[nn.Parameter], weight_decay: float, dtype: torch.dtype, world: World) -> None:
        """The iteration computes in `dtype`, and each process of `world` does a part of the matrices."""
        super().__init__(matrices, {"lr": 0.0, "weight_decay": weight_decay})
        self.dtype = dtype
        self.world = world

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """One step of each matrix that has a gradient; those of a shape go through the iteration together."""
        for group in self.param_groups:
            shapes: dict[torch.Size, list[Tensor]] = defaultdict(list)
            for matrix in group["params"]:
                if matrix.grad is not None:
                    shapes[matrix.shape].append(matrix)
            for shape, matrices in shapes.items():
                size = group["lr"] * LIKE_ADAM * max(shape) ** 0.5
                steps = self._orthogonal_momenta(matrices)
                if group["weight_decay"]:
                    torch._foreach_mul_(matrices, 1 - group["lr"] * group["weight_decay"])
                torch._foreach_add_(matrices, list(steps), alpha=-size)

    def _orthogonal_momenta(self, matrices: list[Tensor]) -> Tensor:
        """The momentum of each, brought up to date and made orthogonal: k of [m, n] -> [k, m, n]."""
        for matrix in matrices:
            if not self.state[matrix]:
                self.state[matrix]["momentum"] = torch.zeros_like(matrix)
        buffers = [self.state[matrix]["momentum"] for matrix in matrices]
        gradients = torch.stack([matrix.grad for matrix in matrices if matrix.grad is not None]) / self.grad_scale
        momenta = torch.stack(buffers).lerp_(gradients, 1 - MOMENTUM)
        torch._foreach_copy_(buffers, list(momenta))
        ahead = gradients.lerp_(momenta, MOMENTUM)  # as Nesterov's
        steps = torch.zeros_like(ahead)
        mine = slice(self.world.rank, None, self.world.size)
        steps[mine] = orthogonal(ahead[mine], self.dtype)
        all_reduce(self.world, steps)
        return steps


def layer_matrices(model: nn.Module) -> list[nn.Parameter]:
    """The weights of the products inside the layers: neither embeddings, nor an output layer, nor vectors."""
    return [p for layer in layers_of(model) for p in layer.parameters() if p.ndim == 2 and p.requires_grad]


def kept_by(optimizer: torch.optim.Optimizer) -> tuple[str, ...]:
    """The names of what it keeps of a parameter that it has stepped."""
    return ("momentum",) if isinstance(optimizer, Muon) else ("step", "exp_avg", "exp_avg_sq")


def optimizers(
    model: nn.Module, config: TrainingConfig, dtype: torch.dtype, world: World
) -> list[torch.optim.Optimizer]:
    """Those that together step every trained parameter, at a rate of 0 until one is set; `dtype` as for Muon."""
    matrices = layer_matrices(model) if config.optimizer == "muon" else []
    theirs = set(matrices)
    rest = [p for p in model.parameters() if p.requires_grad and p not in theirs]
    found: list[torch.optim.Optimizer] = []
    if rest:
        found.append(
            torch.optim.AdamW(
                rest,
                lr=0.0,
                betas=config.adam_betas,
                eps=config.adam_epsilon,
                weight_decay=config.weight_decay,
                fused=True,
            )
        )
    if matrices:
        found.append(Muon(matrices, config.weight_decay, dtype, world))
    return found
