"""Cross-entropy with label smoothing. Loss and gradient are computed together, with few passes over the logits.

Shapes: N target tokens, D d_model, V vocabulary; a chunk has n of the N tokens. e is the parameter `smoothing`.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, pad

from mt.data.batching import TrainingBatch
from mt.model.attention import attention_mask
from mt.model.embedding import NEVER
from mt.model.transformer import Transformer

GPU_CHUNK = 1 << 28  # maximum number of logits in memory at a time: half a gigabyte in bfloat16
GPU_SHARE = 64  # the logits in memory take at most 1 / GPU_SHARE of the memory of the GPU
CPU_CHUNK = 1 << 22  # as GPU_CHUNK: smaller products are slower, larger ones leave the cache before the next pass
SMALLEST = torch.finfo(torch.float32).tiny  # a label with a smaller probability counts as having this one: -log p is 87


def smoothed_cross_entropy(logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """Return the sum over all tokens of the cross-entropy with the target distribution (1 - e) * one-hot + e / V.

    logits [N, V], labels [N] -> a scalar, computed in float32. See Szegedy et al. 2016, section 7.
    """
    return cross_entropy(logits.float(), labels, reduction="sum", label_smoothing=smoothing)


def projected_cross_entropy(states: Tensor, weight: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """Return the `smoothed_cross_entropy` of the logits `states @ weight.T`.

    states [N, D], weight [V, D], labels [N] -> a scalar. The forward pass also computes the gradients. It computes
    only the logits of one chunk of tokens at a time, as in Wijmans et al. 2024.
    """
    return _ProjectedCrossEntropy.apply(states, weight, labels, smoothing)  # type: ignore[no-any-return, no-untyped-call]


class _ProjectedCrossEntropy(torch.autograd.Function):
    """Autograd function of `projected_cross_entropy`.

    For a state x and its label y, with the weight W, the logits are z = W x, and p = softmax(z). The loss is
    log sum exp z - (1 - e) z_y - e / V sum z. The gradient with respect to z is p - (1 - e) one-hot(y) - e / V. The
    term e / V is the same for all tokens and pieces. What it adds to the gradients is computed without logits: for x, a
    multiple of the sum of all rows of W, and for W, a multiple of the sum of all x.
    """

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, labels: Tensor, smoothing: float) -> Tensor:
        even = smoothing / weight.shape[0]
        all_rows = even * weight.sum(0, dtype=torch.float32)  # [D]
        all_states = states.sum(0, dtype=torch.float32)  # [D]
        to_weight = None
        if ctx.needs_input_grad[1]:  # False if the weight is frozen
            to_weight = (-even * all_states).to(weight.dtype).expand_as(weight)
        to_states = torch.empty_like(states)
        at_labels = states.new_empty(2, len(labels), dtype=torch.float32)  # logits and probabilities of the labels
        size = max(1, chunk_size(states) // weight.shape[0])
        read = torch.split(states, size), torch.split(labels, size)
        written = torch.split(to_states, size), torch.split(at_labels, size, 1)
        for x, y, to_x, at_label in zip(*read, *written, strict=True):
            logits = x @ weight.t()  # [n, V]
            label = (torch.arange(len(y), device=y.device), y)
            at_label[0].copy_(logits[label])
            probabilities = torch.softmax(logits, -1, out=logits)
            right = probabilities[label]
            at_label[1].copy_(right)
            probabilities[label] = right - (1 - smoothing)
            torch.addmm(-all_rows.to(x.dtype), probabilities, weight, out=to_x)
            if to_weight is not None:
                to_weight = torch.addmm(to_weight, probabilities.t(), x)
        surprise = -at_labels[1].clamp_min(SMALLEST).log()  # log sum exp z - z_y
        loss = (surprise + smoothing * at_labels[0]).sum() - all_rows @ all_states
        ctx.save_for_backward(to_states, to_weight)
        return loss

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        to_states, to_weight = ctx.saved_tensors
        (scale,) = gradients
        to_weight = None if to_weight is None else to_weight * scale.to(to_weight.dtype)
        return to_states * scale.to(to_states.dtype), to_weight, None, None


def chunk_size(states: Tensor) -> int:
    """Return the maximum number of logits in memory at a time, for the device and the dtype of `states`.

    It does not depend on the memory that is free at the moment: the size of the chunks changes the rounding of the
    gradients, and a run that is resumed must repeat them exactly.
    """
    if states.device.type == "cpu":
        return CPU_CHUNK
    if not states.is_cuda:
        return GPU_CHUNK
    memory = torch.cuda.get_device_properties(states.device).total_memory
    return min(GPU_CHUNK, memory // (GPU_SHARE * states.element_size()))


def target_states(model: Transformer, batch: TrainingBatch) -> Tensor:
    """Return the output states of the decoder for `batch.target`: [B, T, D] for B pairs of target length T."""
    mask = attention_mask(batch.source_mask, model.embedding.projection.dtype)
    return model.decode(batch.target, model.encode(batch.source, mask), mask)


def batch_loss(model: Transformer, batch: TrainingBatch, smoothing: float) -> Tensor:
    """Return the sum of the `smoothed_cross_entropy` of all target tokens of a batch, without padding."""
    states = target_states(model, batch).flatten(0, 1).index_select(0, batch.label_indices)
    labels, weight = batch.labels.flatten().index_select(0, batch.label_indices), model.embedding.projection
    if not torch.is_grad_enabled():
        return smoothed_cross_entropy(model.embedding.project(states), labels, smoothing)
    bias = model.embedding.bias
    if bias is not None:  # W x + b = [W b] [x 1]
        states = pad(states, (0, 1), value=1.0)
        # Label smoothing skips pieces with bias -1000: each would add e / V * 1000 to the loss of every token.
        possible = bias > NEVER / 2
        weight = torch.cat((weight, bias[:, None]), 1)[possible]
        labels = (possible.cumsum(0) - 1)[labels]
    return projected_cross_entropy(states, weight, labels, smoothing)
