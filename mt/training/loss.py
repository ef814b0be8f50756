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
from mt.model.transformer import AnyModel, LanguageModel

CHUNK = 1 << 25  # maximum number of logits in memory at a time
CPU_CHUNK = 1 << 22  # the same on a CPU: smaller products are slower, larger ones leave the cache before the next pass
SMALLEST = torch.finfo(torch.float32).tiny  # a label with a smaller probability counts as having this one: -log p is 87
IN_CACHE = 1 << 17  # maximum number of logits of R-Drop at a time on a CPU, which reads them in more passes


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


class _LossWithGradients(torch.autograd.Function):
    """Base class of losses. `forward` saves the gradients of states and weight, and `backward` only scales them."""

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        to_states, to_weight = ctx.saved_tensors
        (scale,) = gradients
        to_weight = None if to_weight is None else to_weight * scale.to(to_weight.dtype)
        others = [None] * (len(ctx.needs_input_grad) - 2)
        return to_states * scale.to(to_states.dtype), to_weight, *others


class _ProjectedCrossEntropy(_LossWithGradients):
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
        to_weight = None
        if ctx.needs_input_grad[1]:  # False if the weight is frozen
            to_weight = (-even * states.sum(0, dtype=torch.float32)).to(weight.dtype).expand_as(weight)
        to_states = torch.empty_like(states)
        loss = states.new_zeros((), dtype=torch.float32)
        size = max(1, (CHUNK if states.is_cuda else CPU_CHUNK) // weight.shape[0])
        for x, y, to_x in zip(
            torch.split(states, size), torch.split(labels, size), torch.split(to_states, size), strict=True
        ):
            logits = x @ weight.t()  # [n, V]
            label = (torch.arange(len(y), device=y.device), y)
            at_label = logits[label].float()
            probabilities = torch.softmax(logits, -1, out=logits)
            surprise = -probabilities[label].float().clamp_min(SMALLEST).log()  # log sum exp z - z_y
            loss += (surprise + smoothing * at_label).sum() - all_rows @ x.sum(0, dtype=torch.float32)
            probabilities[label] -= 1 - smoothing
            torch.addmm(-all_rows.to(x.dtype), probabilities, weight, out=to_x)
            if to_weight is not None:
                to_weight = torch.addmm(to_weight, probabilities.t(), x)
        ctx.save_for_backward(to_states, to_weight)
        return loss


def agreeing_cross_entropy(states: Tensor, weight: Tensor, labels: Tensor, smoothing: float, r_drop: float) -> Tensor:
    """Return half of the loss of R-Drop (Wu et al. 2021, equation 4) for two passes with different dropout.

    states [2, N, D] (first dimension: the two passes), weight [V, D], labels [N] -> a scalar. The loss is the mean of
    the `projected_cross_entropy` of both passes, plus r_drop / 4 * (KL(p || q) + KL(q || p)) summed over all tokens.
    p and q are the distributions that the two passes predict.
    """
    return _AgreeingCrossEntropy.apply(states, weight, labels, smoothing, r_drop)  # type: ignore[no-any-return, no-untyped-call]


class _AgreeingCrossEntropy(_LossWithGradients):
    """Autograd function of `agreeing_cross_entropy`.

    For a state x of one pass and its label y, with the weight W, the logits are z = W x, and p = softmax(z). q is the
    softmax of the same token in the second pass, and d = log p - log q. The gradient with respect to z is
    1/2 (p - (1 - e) one-hot(y) - e / V) + r_drop / 4 (p (d - KL(p || q)) + p - q).
    """

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, labels: Tensor, smoothing: float, r_drop: float) -> Tensor:
        to_states, to_weight = torch.empty_like(states), torch.zeros_like(weight)
        loss = states.new_zeros((), dtype=torch.float32)
        size = max(1, CHUNK // (2 * weight.shape[0]))
        chunks = (torch.split(states, size, 1), torch.split(labels, size), torch.split(to_states, size, 1))
        for x, y, to_x in zip(*chunks, strict=True):
            logits = x @ weight.t()  # [2, n, V], overwritten by their gradient
            part = len(y) if logits.is_cuda else max(1, IN_CACHE // (2 * weight.shape[0]))
            for z, label in zip(torch.split(logits, part, 1), torch.split(y, part), strict=True):
                loss += _overwrite_with_gradient(z, label, smoothing, r_drop)
            to_x.copy_(logits @ weight)
            to_weight.addmm_(logits.flatten(0, 1).t(), x.flatten(0, 1))
        ctx.save_for_backward(to_states, to_weight)
        return loss


def _overwrite_with_gradient(logits: Tensor, labels: Tensor, smoothing: float, r_drop: float) -> Tensor:
    """Return the loss of `agreeing_cross_entropy` for `logits` [2, n, V], and overwrite `logits` with its gradient."""
    even = smoothing / logits.shape[-1]
    index = labels.expand(2, -1).unsqueeze(-1)  # [2, n, 1]
    log = torch.log_softmax(logits.float(), -1)
    p = log.exp()
    difference = log[0] - log[1]  # [n, V]
    divergence = torch.stack(
        ((p[0] * difference).sum(-1), -(p[1] * difference).sum(-1))
    )  # [2, n]: KL(p || q), KL(q || p)
    loss = -0.5 * ((1 - smoothing) * log.gather(-1, index).sum() + even * log.sum()) + r_drop / 4 * divergence.sum()
    gap = p[0] - p[1]
    gradient = p * (0.5 - r_drop / 4 * divergence.unsqueeze(-1)) - even / 2
    gradient[0] += r_drop / 4 * (p[0] * difference + gap)
    gradient[1] -= r_drop / 4 * (p[1] * difference + gap)
    logits.copy_(gradient.scatter_add_(-1, index, gradient.new_full(index.shape, (smoothing - 1) / 2)))
    return loss


def target_states(model: AnyModel, batch: TrainingBatch) -> Tensor:
    """Return the output states of the decoder for `batch.target`: [B, T, D] for B pairs of target length T.

    A language model ignores the sources.
    """
    if isinstance(model, LanguageModel):
        return model.decode(batch.target)
    mask = attention_mask(batch.source_mask, model.embedding.projection.dtype)
    return model.decode(batch.target, model.encode(batch.source, mask), mask)


def batch_loss(model: AnyModel, batch: TrainingBatch, smoothing: float, r_drop: float = 0.0) -> Tensor:
    """Return the sum of the losses of all target tokens of a batch, without padding.

    If `r_drop` is above 0 and gradients are enabled, the model runs twice on each pair, and the loss is
    `agreeing_cross_entropy`. Otherwise it is `smoothed_cross_entropy`.
    """
    if r_drop and torch.is_grad_enabled():
        batch = batch.repeat()
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
    if r_drop:
        passes = states.view(2, -1, states.shape[1])
        return agreeing_cross_entropy(passes, weight, labels[: passes.shape[1]], smoothing, r_drop)
    return projected_cross_entropy(states, weight, labels, smoothing)
