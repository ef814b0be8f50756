"""Parameters, gradients and Adam's moments in pieces, one in each process: for models that outgrow one GPU.

Fully sharded data parallelism (Rajbhandari et al. 2020; Zhao et al. 2023). A layer is gathered when it runs, forward
and backward; its gradients are summed over all processes and split again. Checkpoints know nothing of it.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from mt.data.batching import Batch
from mt.distributed import World
from mt.model.layers import layers_of
from mt.model.transformer import AnyModel

Loss = Callable[[AnyModel, Batch, float, float], Tensor]


class ShardedLoss(nn.Module):
    """A loss of a model that is split here, in place, among the processes of `world` and onto `device`.

    Every process must call it equally often. In bfloat16 the pieces stay in float32, as do the sums of gradients.
    The loss is one module because what lies outside the layers, above all the embeddings, serves it from begin to end.
    """

    def __init__(self, loss: Loss, model: AnyModel, precision: str, device: torch.device, world: World) -> None:
        super().__init__()
        self.loss = loss
        self.model = model
        mesh = init_device_mesh(device.type, (world.size,))
        policy = MixedPrecisionPolicy(getattr(torch, precision), reduce_dtype=torch.float32)
        for module in (*layers_of(model), self):
            sharded = fully_shard(module, mesh=mesh, mp_policy=policy)
            sharded.set_gradient_divide_factor(1.0)  # sums, where FSDP would take means
            sharded.set_force_sum_reduction_for_comms(True)  # gloo knows no other

    def forward(self, model: AnyModel, batch: Batch, smoothing: float, r_drop: float) -> Tensor:
        """As the loss; `model` is the one that was split."""
        return self.loss(model, batch, smoothing, r_drop)


def whole(tensor: Tensor) -> Tensor:
    """A tensor in one piece. If it is split, every process must ask for it."""
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def gathered(tensors: Mapping[str, Tensor], world: World) -> dict[str, Tensor]:
    """`whole` tensors on the CPU of the leading process, one after the other; nothing in the others."""
    found = {}
    for name, tensor in tensors.items():
        complete = whole(tensor)
        if world.leads:
            found[name] = complete.cpu()
    return found


def placed(tensor: Tensor, like: Tensor) -> Tensor:
    """A copy of a whole tensor, where `like` lies and split as it is."""
    if isinstance(like, DTensor):
        return distribute_tensor(tensor.to(like.device), like.device_mesh, like.placements, src_data_rank=None)
    return tensor.to(like.device, copy=True)
