"""The ONNX graphs of our models: an encoder, and one step of a decoder.

They are written node by node, in the order of `mt/model`, out of the operators of one opset. torch's own exporter gives
the same numbers, but takes seconds where this takes milliseconds, and changes with torch.

Shapes: B sentences, K beams, S source length, T tokens written before, L decoder layers, H heads, D d_model, V pieces.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from mt.model.attention import MultiHeadAttention
from mt.model.embedding import Embedding
from mt.model.layers import DecoderLayer, EncoderLayer, FeedForward, Sublayer
from mt.model.transformer import Transformer

try:
    from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, checker, helper, numpy_helper
except ModuleNotFoundError:  # an optional dependency: `export_onnx` says so
    helper = None  # type: ignore[assignment]

OPSET = 17  # the first with LayerNormalization
IR_VERSION = 8  # that of its time, so that every runtime of the last years reads the files

MASK = {"source_mask": "bool [B, S]"}
CROSS = {"cross_keys": "float [L, B, H, S, d_k]", "cross_values": "float [L, B, H, S, d_k]"}
CACHE = "float [L, B, K, H, T, d_k]"
GROWN = "float [L, B, K, H, T + 1, d_k]"
ENCODER = ({"source": "int64 [B, S]", **MASK}, CROSS)
DECODER = (
    {"tokens": "int64 [B, K]", "keys": CACHE, "values": CACHE, **CROSS, **MASK},
    {"logits": "float [B, K, V]", "new_keys": GROWN, "new_values": GROWN},
)
"""Inputs and outputs of the two graphs."""

AXES = {"B": "sentences", "K": "beams", "S": "source_length", "T": "target_length", "T + 1": "target_length + 1"}
"""The axes whose sizes are open, as the files call them."""


class Graph:
    """The nodes of a graph in the making. A value is known by its name; weights are called as in our models."""

    def __init__(self, model: Transformer) -> None:
        self.config = model.config
        self.sizes = {
            "L": model.config.decoder_layers,
            "H": model.config.heads,
            "d_k": model.config.d_model // model.config.heads,
            "V": model.vocabulary_size,
        }
        self._names = {id(tensor): name for name, tensor in (*model.named_parameters(), *model.named_buffers())}
        self._nodes: list[NodeProto] = []
        self._constants: dict[str, TensorProto] = {}

    def add(
        self, kind: str, *inputs: str, options: Mapping[str, Any] | None = None, outputs: Sequence[str] = ()
    ) -> str:
        """A node of this kind; returns the name of its output."""
        outputs = outputs or [f"{kind}_{len(self._nodes)}"]
        self._nodes.append(helper.make_node(kind, inputs, outputs, **(options or {})))
        return outputs[0]

    def weight(self, tensor: Tensor) -> str:
        """A parameter or buffer of the model."""
        name = self._names[id(tensor)]
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(tensor.detach().contiguous().numpy(), name)
        return name

    def constant(self, value: float | Sequence[int]) -> str:
        """A number, or a list of whole ones."""
        name = str(value)
        self._constants.setdefault(name, numpy_helper.from_array(torch.tensor(value).numpy(), name))
        return name

    def finish(self, name: str, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> "ModelProto":
        """The checked graph."""
        given, found = ([self._described(*each) for each in side.items()] for side in (inputs, outputs))
        graph = helper.make_graph(self._nodes, name, given, found, list(self._constants.values()))
        opsets = [helper.make_opsetid("", OPSET)]
        whole = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="mt")
        checker.check_model(whole)
        return whole

    def _described(self, name: str, shape: str) -> "ValueInfoProto":
        kind, _, axes = shape.partition(" ")
        kinds = {"int64": TensorProto.INT64, "bool": TensorProto.BOOL, "float": TensorProto.FLOAT}
        sizes = [self.sizes.get(axis) or AXES[axis] for axis in axes.strip("[]").split(", ")]
        return helper.make_tensor_value_info(name, kinds[kind], sizes)


def encoder(model: Transformer) -> "ModelProto":
    """Sources to the keys and values of the decoder's cross-attention."""
    graph = Graph(model)
    length = graph.add("Shape", "source", options={"start": 1, "end": 2})
    embedding = model.embedding if model.source_embedding is None else model.source_embedding
    positions = graph.add("Slice", graph.weight(embedding.positions), graph.constant([0]), length, graph.constant([0]))
    x = _embed(graph, embedding, "source", positions)
    mask = _mask(graph)
    for layer in model.encoder.layers:
        assert isinstance(layer, EncoderLayer)
        x = _encoder_layer(graph, layer, x, mask)
    memory = _norm(graph, model.encoder.norm, x)
    keys, values = [], []
    for layer in model.decoder.layers:
        assert isinstance(layer, DecoderLayer) and layer.cross_attention is not None
        keys.append(_heads(graph, _linear(graph, layer.cross_attention.key, memory)))
        values.append(_heads(graph, _linear(graph, layer.cross_attention.value, memory)))
    _stack(graph, keys, "cross_keys")
    _stack(graph, values, "cross_values")
    return graph.finish("encoder", *ENCODER)


def decoder(model: Transformer) -> "ModelProto":
    """The newest token of each beam to logits of the next one."""
    graph = Graph(model)
    written = graph.add("Shape", "keys", options={"start": 4, "end": 5})
    position = graph.add("Gather", graph.weight(model.embedding.positions), written)
    x = _embed(graph, model.embedding, "tokens", position)
    mask = _mask(graph)
    caches: tuple[list[str], list[str]] = ([], [])
    for index, layer in enumerate(model.decoder.layers):
        assert isinstance(layer, DecoderLayer)
        x = _decoder_layer(graph, layer, index, x, mask, caches)
    states = _norm(graph, model.decoder.norm, x)
    weight, bias = model.embedding.projection, model.embedding.bias
    logits = graph.add("MatMul", states, graph.add("Transpose", graph.weight(weight), options={"perm": [1, 0]}))
    last = graph.constant(0.0) if bias is None else graph.weight(bias)
    graph.add("Add", logits, last, outputs=["logits"])
    _stack(graph, caches[0], "new_keys")
    _stack(graph, caches[1], "new_values")
    return graph.finish("decoder", *DECODER)


def _embed(graph: Graph, embedding: Embedding, tokens: str, positions: str) -> str:
    """[B, T] -> [B, T, D]."""
    found = graph.add("Gather", graph.weight(embedding.tokens.weight), tokens)
    return graph.add("Add", graph.add("Mul", found, graph.constant(embedding.scale)), positions)


def _mask(graph: Graph) -> str:
    """What is added to the scores of the source's keys: [B, 1, 1, S]."""
    added = graph.add("Where", "source_mask", graph.constant(0.0), graph.constant(-math.inf))
    return graph.add("Unsqueeze", added, graph.constant([1, 2]))


def _encoder_layer(graph: Graph, layer: EncoderLayer, x: str, mask: str) -> str:
    attention = layer.self_attention

    def attend(h: str) -> str:
        keys, values = (_heads(graph, _linear(graph, each, h)) for each in (attention.key, attention.value))
        return _attend(graph, attention, h, keys, values, mask)

    x = _around(graph, layer.around_self_attention, x, attend)
    return _around(graph, layer.around_feed_forward, x, lambda h: _feed_forward(graph, layer.feed_forward, h))


def _decoder_layer(
    graph: Graph, layer: DecoderLayer, index: int, x: str, mask: str, caches: tuple[list[str], list[str]]
) -> str:
    attention, cross = layer.self_attention, layer.cross_attention
    assert cross is not None

    def of_layer(name: str) -> str:
        return graph.add("Gather", name, graph.constant(index))

    def split(h: str) -> str:
        """[B, K, D] -> [B, K, H, 1, d_k]: each beam attends to its own."""
        return graph.add("Reshape", h, graph.constant([0, 0, graph.sizes["H"], 1, graph.sizes["d_k"]]))

    def attend_to_written(h: str) -> str:
        for name, projection, cache in zip(("keys", "values"), (attention.key, attention.value), caches, strict=True):
            new = split(_linear(graph, projection, h))
            cache.append(graph.add("Concat", of_layer(name), new, options={"axis": 3}))
        queries = split(_linear(graph, attention.query, h))
        heads = _weighted(graph, queries, caches[0][-1], caches[1][-1], [0, 1, 2, 4, 3])
        joined = graph.add("Reshape", heads, graph.constant([0, 0, graph.config.d_model]))
        return _linear(graph, attention.output, joined)

    def attend_to_source(h: str) -> str:
        return _attend(graph, cross, h, of_layer("cross_keys"), of_layer("cross_values"), mask)

    x = _around(graph, layer.around_self_attention, x, attend_to_written)
    x = _around(graph, layer.around_cross_attention, x, attend_to_source)
    return _around(graph, layer.around_feed_forward, x, lambda h: _feed_forward(graph, layer.feed_forward, h))


def _around(graph: Graph, sublayer: Sublayer, x: str, function: Callable[[str], str]) -> str:
    if sublayer.pre:
        return graph.add("Add", x, function(_norm(graph, sublayer.norm, x)))
    return _norm(graph, sublayer.norm, graph.add("Add", x, function(x)))


def _norm(graph: Graph, norm: nn.Module, x: str) -> str:
    if not isinstance(norm, nn.LayerNorm):
        return x
    weights = graph.weight(norm.weight), graph.weight(norm.bias)
    return graph.add("LayerNormalization", x, *weights, options={"epsilon": norm.eps})


def _linear(graph: Graph, module: nn.Linear, x: str) -> str:
    product = graph.add("MatMul", x, graph.add("Transpose", graph.weight(module.weight), options={"perm": [1, 0]}))
    return graph.add("Add", product, graph.weight(module.bias))


def _feed_forward(graph: Graph, module: FeedForward, x: str) -> str:
    inner = _linear(graph, module.inner, x)
    return _linear(graph, module.outer, ACTIVATIONS[graph.config.activation](graph, inner))


def _swish(graph: Graph, x: str) -> str:
    return graph.add("Mul", x, graph.add("Sigmoid", x))


def _gelu(graph: Graph, x: str) -> str:
    """x (1 + erf(x / sqrt(2))) / 2."""
    erf = graph.add("Erf", graph.add("Mul", x, graph.constant(math.sqrt(0.5))))
    return graph.add("Mul", graph.add("Mul", x, graph.constant(0.5)), graph.add("Add", erf, graph.constant(1.0)))


ACTIVATIONS: Mapping[str, Callable[[Graph, str], str]] = {
    "relu": lambda graph, x: graph.add("Relu", x),
    "gelu": _gelu,
    "swish": _swish,
}


def _heads(graph: Graph, x: str) -> str:
    """[B, T, D] -> [B, H, T, d_k]."""
    split = graph.add("Reshape", x, graph.constant([0, 0, graph.sizes["H"], graph.sizes["d_k"]]))
    return graph.add("Transpose", split, options={"perm": [0, 2, 1, 3]})


def _attend(graph: Graph, module: MultiHeadAttention, x: str, keys: str, values: str, mask: str) -> str:
    """x [B, T, D], keys and values [B, H, S, d_k], mask [B, 1, 1, S] -> [B, T, D]."""
    queries = _heads(graph, _linear(graph, module.query, x))
    heads = _weighted(graph, queries, keys, values, [0, 1, 3, 2], mask)
    joined = graph.add("Transpose", heads, options={"perm": [0, 2, 1, 3]})
    return _linear(graph, module.output, graph.add("Reshape", joined, graph.constant([0, 0, graph.config.d_model])))


def _weighted(graph: Graph, queries: str, keys: str, values: str, perm: Sequence[int], mask: str = "") -> str:
    """softmax(Q K^T / sqrt(d_k)) V; `perm` transposes the keys."""
    product = graph.add("MatMul", queries, graph.add("Transpose", keys, options={"perm": list(perm)}))
    scores = graph.add("Mul", product, graph.constant(graph.sizes["d_k"] ** -0.5))
    masked = graph.add("Add", scores, mask) if mask else scores
    return graph.add("MatMul", graph.add("Softmax", masked, options={"axis": -1}), values)


def _stack(graph: Graph, layers: Sequence[str], name: str) -> None:
    each = [graph.add("Unsqueeze", layer, graph.constant([0])) for layer in layers]
    graph.add("Concat", *each, options={"axis": 0}, outputs=[name])
