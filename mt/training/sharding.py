"""Sharded training: each process stores a part of the parameters, gradients and Adam moments.

This is fully sharded data parallelism (Rajbhandari et al. 2020; Zhao et al. 2023), for models that do not fit on one
GPU. For the forward and the backward pass of a layer, each process gathers all parameters of the layer. Afterwards, the
gradients of the layer are summed over all processes, and each process keeps its part. Checkpoints are the same as
without sharding.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from mt.data.batching import TrainingBatch
from mt.distributed import World
from mt.model.layers import layers_of
from mt.model.transformer import Transformer

Loss = Callable[[Transformer, TrainingBatch, float], Tensor]


class ShardedLoss(nn.Module):
    """Module that computes the loss of a model whose parameters are sharded among the processes of `world`.

    The constructor shards `model` in place and moves it to `device`. All processes must call `forward` equally often.
    With precision bfloat16, parameters and sums of gradients stay in float32. This module contains the model because
    the embeddings, which belong to no layer, must stay gathered until the loss has been computed.
    """

    def __init__(self, loss: Loss, model: Transformer, precision: str, device: torch.device, world: World) -> None:
        super().__init__()
        self.loss = loss
        self.model = model
        mesh = init_device_mesh(device.type, (world.size,))
        policy = MixedPrecisionPolicy(getattr(torch, precision), reduce_dtype=torch.float32)
        for module in (*layers_of(model), self):
            sharded = fully_shard(module, mesh=mesh, mp_policy=policy)
            sharded.set_gradient_divide_factor(1.0)  # sums in place of means
            sharded.set_force_sum_reduction_for_comms(True)  # gloo supports no other reduction

    def forward(self, model: Transformer, batch: TrainingBatch, smoothing: float) -> Tensor:
        """Return the loss of a batch. `model` must be the model that the constructor has sharded."""
        return self.loss(model, batch, smoothing)


def unshard(tensor: Tensor) -> Tensor:
    """Return the complete tensor of which `tensor` is a shard, or `tensor` itself if it is not sharded.

    All processes must call this function.
    """
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def gather(tensors: Mapping[str, Tensor], world: World) -> dict[str, Tensor]:
    """Return the complete tensors, on the CPU, in rank 0, and {} in all other ranks. All processes must call this."""
    result = {}
    for name, tensor in tensors.items():
        complete = unshard(tensor)
        if world.is_main:
            result[name] = complete.cpu()
    return result


def distribute_like(tensor: Tensor, like: Tensor) -> Tensor:
    """Copy `tensor` to the device of `like`, and shard the copy in the same way as `like`, if `like` is sharded."""
    if isinstance(like, DTensor):
        return distribute_tensor(tensor.to(like.device), like.device_mesh, like.placements, src_data_rank=None)
    return tensor.to(like.device, copy=True)
