"""Records of one forward pass: embeddings, attention, sizes of states, and logits. Hooks on modules collect them.

Shapes: H heads, T queries, S keys, D = d_model, d_k = D / H, V vocabulary. The batch has one sentence, so records have
no batch dimension.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from mt.decoding.scorer import padded, token_mask
from mt.model.attention import MultiHeadAttention, causal_mask
from mt.model.embedding import InputLayer
from mt.model.transformer import Transformer
from mt.tokenizer import BOS, PAD

PADDING = 2
"""Padding tokens after the source, as in a batch with a longer sentence, so that the padding mask has an effect."""

BLOCKS = {"encoder": "Encoder self-attention", "decoder": "Decoder self-attention", "cross": "Cross-attention"}


@dataclass(frozen=True)
class AttentionRecord:
    """One multi-head attention. Queries of padding tokens are left out; keys of padding tokens are included.

    `difference` is the largest absolute difference between the output of the module and the output that is computed
    again from `weights`: `weights` V W^O.
    """

    block: str  # a key of BLOCKS
    layer: int  # counts from 1
    q: Tensor  # [H, T, d_k]
    k: Tensor  # [H, S, d_k]
    v: Tensor  # [H, S, d_k]
    mask: Tensor  # bool [T, S], True where attending is allowed
    weights: Tensor  # [H, T, S]
    difference: float

    @property
    def scores(self) -> Tensor:
        """Q K^T / sqrt(d_k) before the mask: [H, T, S]."""
        return self.q @ self.k.transpose(-2, -1) / math.sqrt(self.q.shape[-1])

    @property
    def entropy(self) -> Tensor:
        """Entropy in bits of the weights of each head, averaged over the queries: [H]."""
        return -torch.xlogy(self.weights, self.weights).sum(-1).mean(-1) / math.log(2)


@dataclass(frozen=True)
class EmbeddingRecord:
    """Input of the encoder or decoder: scaled token embeddings, position encodings, and their sum, each [T, D].

    `output` is the sum or, if the model has `embedding_norm`, the LayerNorm of the sum.
    """

    tokens: Tensor
    positions: Tensor
    output: Tensor


@dataclass(frozen=True)
class NormRecord:
    """Sizes of the states before and after one LayerNorm: root mean square, averaged over the tokens.

    `residual` is the size before LayerNorm. With pre-norm, this state is the residual stream. With post-norm, it is
    x + f(x).
    """

    name: str  # such as "encoder 1 self-attention"
    residual: float
    normalised: float


@dataclass
class PassRecord:
    """One teacher-forced pass over a source and a target."""

    source: tuple[int, ...]  # ids with tag and EOS, without padding
    target: tuple[int, ...]  # ids with BOS, without EOS
    padding: int  # number of padding tokens after the source
    embeddings: list[EmbeddingRecord] = field(default_factory=list)  # two records: of the source and of the target
    attentions: list[AttentionRecord] = field(default_factory=list)  # in the order of computation
    norms: list[NormRecord] = field(default_factory=list)
    logits: Tensor = field(default_factory=lambda: torch.empty(0))  # [T, V]

    def of(self, block: str) -> list[AttentionRecord]:
        return [record for record in self.attentions if record.block == block]


@torch.inference_mode()
def record_pass(model: Transformer, source: Sequence[int], target: Sequence[int], padding: int = PADDING) -> PassRecord:
    """Run `model` on a source and a target, and return a record of the pass.

    `source` are ids with tag and EOS, and `target` are ids without BOS and EOS. `padding` is the number of PAD tokens
    to add after the source. Fewer are added if the source would exceed the maximum length of the model.
    """
    padding = min(padding, model.config.max_length - len(source))
    record = PassRecord(tuple(source), (BOS, *target), padding)
    device = model.embedding.tokens.weight.device
    with ExitStack() as hooks:
        for name, module in model.named_modules():
            observe = _observer(name, module, record)
            if observe is not None:
                hooks.callback(module.register_forward_hook(observe).remove)
        ids = padded([(*source, *[PAD] * padding)], PAD, device)
        mask = torch.cat((token_mask([source], device), torch.zeros(1, padding, dtype=torch.bool, device=device)), 1)
        record.logits = model(ids, mask, padded([record.target], PAD, device))[0].float().cpu()
    return record


Hook = Callable[[nn.Module, tuple[Any, ...], Tensor], None]


def _observer(name: str, module: nn.Module, record: PassRecord) -> Hook | None:
    """Return a forward hook that adds the computation of `module` to `record`.

    Return None if the module is no embedding, LayerNorm or attention.
    """
    tokens = len(record.source) if name.startswith(("encoder", "source")) else len(record.target)

    def observe_embedding(_: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
        assert isinstance(module, InputLayer)
        embedded, positions = args[0][0, :tokens], module.positions.weight[:tokens]
        record.embeddings.append(EmbeddingRecord(embedded, positions, output[0, :tokens]))

    def observe_norm(_: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
        sizes = [float(states[0, :tokens].float().square().mean(-1).sqrt().mean()) for states in (args[0], output)]
        record.norms.append(NormRecord(_norm_name(name), *sizes))

    def observe_attention(_: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
        assert isinstance(module, MultiHeadAttention)
        side, _layers, number, kind = name.split(".")
        x, memory, *masks = args
        [mask] = masks or [causal_mask(x.shape[1], x.device)]
        keys, values = module.keys_values(memory)
        weights = module.weights(x, memory, *masks)
        again = module.output((weights @ values).transpose(1, 2).flatten(2))
        queries = module.query(x).unflatten(-1, (module.heads, -1)).transpose(1, 2)
        record.attentions.append(
            AttentionRecord(
                block="cross" if kind == "cross_attention" else side,
                layer=int(number) + 1,
                q=queries[0, :, :tokens],
                k=keys[0],
                v=values[0],
                mask=mask.broadcast_to(weights.shape)[0, 0, :tokens],
                weights=weights[0, :, :tokens],
                difference=float((again - output).abs().max()),
            )
        )

    if isinstance(module, InputLayer):
        return observe_embedding
    if isinstance(module, nn.LayerNorm):
        return observe_norm
    return observe_attention if isinstance(module, MultiHeadAttention) else None


def _norm_name(name: str) -> str:
    """Return a readable name: encoder.layers.0.around_self_attention.norm is "encoder 1 self-attention"."""
    if ".layers." not in name:
        module = name.split(".")[0]
        return f"{module.removesuffix('_input')} embeddings" if module.endswith("_input") else f"{module} output"
    side, _, number, around, _ = name.split(".")
    kind = around.removeprefix("around_").replace("_attention", "-attention").replace("_forward", "-forward")
    return f"{side} {int(number) + 1} {kind}"
