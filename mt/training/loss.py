"""Cross-entropy with label smoothing, and its gradient without a pass over the logits that could be spared.

Shapes: N target tokens, D d_model, V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from mt.data.batching import Batch
from mt.model.transformer import Transformer
from mt.tokenizer import PAD

CHUNK = 1 << 25  # logits at a time; they and their gradient are never there for all tokens of a large batch


def smoothed_cross_entropy(logits: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """The sum over N tokens of the cross-entropy with (1 - e) * one-hot + e / V (Szegedy et al. 2016, section 7).

    logits [N, V], labels [N] -> a scalar, computed in fp32.
    """
    return cross_entropy(logits.float(), labels, reduction="sum", label_smoothing=smoothing)


def projected_cross_entropy(states: Tensor, weight: Tensor, labels: Tensor, smoothing: float) -> Tensor:
    """`smoothed_cross_entropy` of the logits states weight^T: states [N, D], weight [V, D], labels [N] -> a scalar.

    The gradient is computed together with the loss, chunk by chunk (as Wijmans et al. 2024 do it on a GPU).
    """
    return _ProjectedCrossEntropy.apply(states, weight, labels, smoothing)  # type: ignore[no-any-return, no-untyped-call]


class _ProjectedCrossEntropy(torch.autograd.Function):
    """With z = W x, p = softmax(z), label y:  loss = log sum exp z - (1 - e) z_y - e / V sum z.

    Its gradient to z is p - (1 - e) one-hot(y) - e / V. The last term, the same for all z, never touches [N, V]: to x
    it is a multiple of the sum of all rows of W, to W one of the sum of all x.
    """

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, labels: Tensor, smoothing: float) -> Tensor:
        even = smoothing / weight.shape[0]
        all_rows = even * weight.sum(0, dtype=torch.float32)  # [D]
        to_weight = (-even * states.sum(0, dtype=torch.float32)).to(weight.dtype).expand_as(weight)
        to_states = torch.empty_like(states)
        loss = states.new_zeros((), dtype=torch.float32)
        size = max(1, CHUNK // weight.shape[0])
        for x, y, to_x in zip(
            torch.split(states, size), torch.split(labels, size), torch.split(to_states, size), strict=True
        ):
            logits = x @ weight.t()  # [n, V]
            label = (torch.arange(len(y), device=y.device), y)
            at_label, largest = logits[label].float(), logits.amax(-1).float()
            probabilities = torch.softmax(logits, -1, out=logits)
            # p = exp(z - log sum exp z), taken where p is largest, for there it cannot be 0
            log_sum = largest - probabilities.amax(-1).float().log()
            loss += (log_sum - (1 - smoothing) * at_label).sum() - all_rows @ x.sum(0, dtype=torch.float32)
            probabilities[label] -= 1 - smoothing
            torch.addmm(-all_rows.to(x.dtype), probabilities, weight, out=to_x)
            to_weight = torch.addmm(to_weight, probabilities.t(), x)
        ctx.save_for_backward(to_states, to_weight)
        return loss

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        to_states, to_weight = ctx.saved_tensors
        (scale,) = gradients
        return to_states * scale.to(to_states.dtype), to_weight * scale.to(to_weight.dtype), None, None


def batch_loss(model: Transformer, batch: Batch, smoothing: float) -> Tensor:
    """The summed loss of a batch. Logits are computed for real target tokens only, never for padding."""
    memory = model.encode(batch.source, batch.source_mask)
    states = model.decode(batch.target, memory, batch.source_mask)  # [B, T, D]
    real = batch.labels != PAD
    states, labels, weight = states[real], batch.labels[real], model.embedding.tokens.weight
    if torch.is_grad_enabled():
        return projected_cross_entropy(states, weight, labels, smoothing)
    return smoothed_cross_entropy(model.embedding.project(states), labels, smoothing)
