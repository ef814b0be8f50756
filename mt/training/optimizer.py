"""Optimizers: Adam, or Muon for the matrices of the layers and Adam for all other parameters."""

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from mt.config import TrainingConfig
from mt.distributed import World, all_reduce
from mt.model.layers import layers_of

QUINTIC = (3.4445, -4.7750, 2.0315)  # a, b, c: 5 iterations of a x + b x^3 + c x^5 map [0.002, 1] into (0.68, 1.21)
ITERATIONS = 5
MOMENTUM = 0.95
ADAM_BETAS, ADAM_EPSILON = (0.9, 0.98), 1e-9  # Vaswani et al. 2017, section 5.3
ADAM_RMS = 0.2  # root mean square of the elements of a step of Adam at learning rate 1


def orthogonal(matrices: Tensor, dtype: torch.dtype) -> Tensor:
    """Return an approximation of U V^T for each matrix U S V^T: [k, m, n] -> [k, m, n] for k matrices m x n.

    Singular values from 0.002 to 1 times the Frobenius norm become about 0.7 to 1.2; smaller ones stay smaller. This is
    the Newton-Schulz iteration with the quintic polynomial of Jordan et al. 2024 ("Muon"), computed in `dtype`;
    bfloat16 is exact enough.
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
    """Optimizer that changes each matrix in the direction of its orthogonalised momentum (Jordan et al. 2024).

    A step is as large as that of Adam at the same learning rate (Liu et al. 2025, "Muon is scalable", equation 4).
    """

    grad_scale: Tensor  # divisor of each gradient, an attribute that torch's fused optimizers have too
    _step_supports_amp_scaling = True

    def __init__(self, matrices: Iterable[nn.Parameter], dtype: torch.dtype, world: World) -> None:
        """Create an optimizer that orthogonalises in `dtype` and divides this work among the processes of `world`."""
        super().__init__(matrices, {"lr": 0.0})
        self.dtype = dtype
        self.world = world

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Update all matrices that have a gradient. Matrices of equal shape are orthogonalised together."""
        for group in self.param_groups:
            shapes: dict[torch.Size, list[Tensor]] = defaultdict(list)
            for matrix in group["params"]:
                if matrix.grad is not None:
                    shapes[matrix.shape].append(matrix)
            for shape, matrices in shapes.items():
                size = group["lr"] * ADAM_RMS * max(shape) ** 0.5
                steps = self._orthogonal_momenta(matrices)
                torch._foreach_add_(matrices, list(steps), alpha=-size)

    def _orthogonal_momenta(self, matrices: list[Tensor]) -> Tensor:
        """Update the momenta of `matrices`, and return their orthogonalised Nesterov momenta: [k, m, n].

        k is the number of matrices. All of them have the shape [m, n].
        """
        for matrix in matrices:
            if not self.state[matrix]:
                self.state[matrix]["momentum"] = torch.zeros_like(matrix)
        buffers = [self.state[matrix]["momentum"] for matrix in matrices]
        gradients = torch.stack([matrix.grad for matrix in matrices if matrix.grad is not None]) / self.grad_scale
        momenta = torch.stack(buffers).lerp_(gradients, 1 - MOMENTUM)
        torch._foreach_copy_(buffers, list(momenta))
        nesterov = gradients.lerp_(momenta, MOMENTUM)
        steps = torch.zeros_like(nesterov)
        part = slice(self.world.rank, None, self.world.size)
        steps[part] = orthogonal(nesterov[part], self.dtype)
        all_reduce(self.world, steps)
        return steps


def layer_matrices(model: nn.Module) -> list[nn.Parameter]:
    """Return all matrices of the encoder and decoder layers that are not frozen. Embeddings are not among them."""
    return [p for layer in layers_of(model) for p in layer.parameters() if p.ndim == 2 and p.requires_grad]


def state_keys(optimizer: torch.optim.Optimizer) -> tuple[str, ...]:
    """Return the keys of `optimizer.state[parameter]`. They are the same for each parameter."""
    return ("momentum",) if isinstance(optimizer, Muon) else ("step", "exp_avg", "exp_avg_sq")


def optimizers(
    model: nn.Module, config: TrainingConfig, dtype: torch.dtype, world: World
) -> list[torch.optim.Optimizer]:
    """Return the optimizers that together update all parameters that are not frozen.

    `dtype` and `world` are used only by Muon.
    """
    matrices = layer_matrices(model) if config.optimizer == "muon" else []
    of_muon = set(matrices)
    rest = [p for p in model.parameters() if p.requires_grad and p not in of_muon]
    result: list[torch.optim.Optimizer] = []
    if rest:
        result.append(torch.optim.Adam(rest, lr=0.0, betas=ADAM_BETAS, eps=ADAM_EPSILON, fused=True))
    if matrices:
        result.append(Muon(matrices, dtype, world))
    return result


def scaled_step(optimizer: torch.optim.Optimizer, rate: float, divisor: Tensor) -> None:
    """Update the parameters of `optimizer` with the learning rate `rate` and the gradients divided by `divisor`.

    Raises: TypeError if the optimizer cannot divide gradients.
    """
    if not getattr(optimizer, "_step_supports_amp_scaling", False):
        raise TypeError(f"{type(optimizer).__name__} ignores grad_scale; accepted: a fused optimizer of torch, or Muon")
    optimizer.grad_scale = divisor  # type: ignore[attr-defined]
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()
