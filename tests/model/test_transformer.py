from collections.abc import Iterator
from typing import Any, TypeVar

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from mt.config import ModelConfig
from mt.model.attention import MultiHeadAttention, attention_mask
from mt.model.layers import DecoderLayer, EncoderLayer
from mt.model.shapes import transformer_shapes
from mt.model.transformer import Transformer
from tests.kernels.conftest import FOREIGN, ODD
from tests.model.conftest import small_config
from tests.simulated_device import SimulatedDevice

V = 30
M = TypeVar("M", bound=nn.Module)
INPUT_LAYERS = [{"positions": "learned"}, {"embedding_norm": True}, {"positions": "learned", "embedding_norm": True}]


def source_of(lengths: list[int]) -> tuple[Tensor, Tensor]:
    mask = torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]
    return torch.randint(4, V, mask.shape) * mask, mask


def stirred(model: M) -> M:
    """Random biases and norms too, so that a forgotten one shows; in evaluation mode."""
    for parameter in model.parameters():
        if parameter.dim() == 1:
            nn.init.normal_(parameter, mean=0.3, std=0.5)
    return model.eval()


def torch_attention(ours: MultiHeadAttention, name: str) -> Iterator[tuple[str, Tensor]]:
    projections = (ours.query, ours.key, ours.value)
    yield f"{name}.in_proj_weight", torch.cat([projection.weight for projection in projections])
    yield f"{name}.in_proj_bias", torch.cat([projection.bias for projection in projections])
    yield f"{name}.out_proj.weight", ours.output.weight
    yield f"{name}.out_proj.bias", ours.output.bias


def torch_layer(ours: EncoderLayer | DecoderLayer, prefix: str) -> Iterator[tuple[str, Tensor]]:
    yield from torch_attention(ours.self_attention, f"{prefix}.self_attn")
    sublayers = [ours.around_self_attention]
    if isinstance(ours, DecoderLayer):
        yield from torch_attention(ours.cross_attention, f"{prefix}.multihead_attn")
        sublayers.append(ours.around_cross_attention)
    sublayers.append(ours.around_feed_forward)
    modules: dict[str, nn.Module] = {"linear1": ours.feed_forward.inner, "linear2": ours.feed_forward.outer}
    modules |= {f"norm{number}": sublayer.norm for number, sublayer in enumerate(sublayers, start=1)}
    for name, module in modules.items():
        yield from ((f"{prefix}.{name}.{key}", parameter) for key, parameter in module.named_parameters())


def torch_twin(ours: Transformer) -> nn.Transformer:
    """torch's Transformer with our weights; its final norms, which the paper lacks, are removed from post-norm."""
    config = ours.config
    sizes = (config.d_model, config.heads, config.encoder_layers, config.decoder_layers, config.d_ff, 0.0)
    theirs = nn.Transformer(*sizes, config.activation, batch_first=True, norm_first=config.norm == "pre")
    weights: dict[str, Tensor] = {}
    for side, stack, twin in (("encoder", ours.encoder, theirs.encoder), ("decoder", ours.decoder, theirs.decoder)):
        for number, layer in enumerate(stack.layers):
            assert isinstance(layer, EncoderLayer | DecoderLayer)
            weights |= dict(torch_layer(layer, f"{side}.layers.{number}"))
        if config.norm == "pre":
            weights |= {f"{side}.norm.{key}": parameter for key, parameter in stack.norm.named_parameters()}
        else:
            twin.norm = None
    theirs.load_state_dict(weights)
    return theirs


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("depths", [(1, 3), (3, 1)])
def test_equals_torch(norm: str, activation: str, depths: tuple[int, int]) -> None:
    torch.manual_seed(0)
    config = small_config(norm=norm, activation=activation, encoder_layers=depths[0], decoder_layers=depths[1])
    ours = Transformer(config, V)
    stirred(ours)
    source, mask = source_of([7, 3, 5])
    target = torch.randint(4, V, (3, 6))
    states = torch_twin(ours)(
        ours.source_input(ours.embedding(source)),
        ours.embed_target(target),
        tgt_mask=nn.Transformer.generate_square_subsequent_mask(6),
        src_key_padding_mask=torch.zeros(mask.shape).masked_fill(~mask, float("-inf")),
        memory_key_padding_mask=torch.zeros(mask.shape).masked_fill(~mask, float("-inf")),
    )
    assert_close(ours.decode(target, ours.encode(source, mask), mask), states, atol=1e-5, rtol=0)
    assert_close(ours(source, mask, target), states @ ours.embedding.tokens.weight.T, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize(
    ("size", "d", "ff", "heads", "dropout", "millions"),
    [("base", 512, 2048, 8, 0.1, 63.1), ("big", 1024, 4096, 16, 0.3, 214.2)],
)
def test_sizes_are_those_of_table_3(size: str, d: int, ff: int, heads: int, dropout: float, millions: float) -> None:
    """Of the paper: six layers a side, and 37,000 pieces."""
    config = ModelConfig.model_validate({"size": size, "norm": "post"})
    with torch.device("meta"):
        model = Transformer(config, 37_000)
    assert (config.heads, config.dropout) == (heads, dropout)
    attending, feeding, norm = 4 * (d * d + d), 2 * d * ff + ff + d, 2 * d
    by_hand = 37_000 * d + 6 * (attending + feeding + 2 * norm) + 6 * (2 * attending + feeding + 3 * norm)
    counted = sum(parameter.numel() for parameter in model.parameters())
    assert counted == by_hand
    assert round(counted / 1e6, 1) == millions


@pytest.mark.parametrize("changes", [{"norm": "post"}, {"norm": "pre"}, *INPUT_LAYERS], ids=str)
def test_a_gradient_reaches_every_parameter(changes: dict[str, Any]) -> None:
    torch.manual_seed(5)
    model = Transformer(small_config(**changes), V)
    source, mask = source_of([5, 4])
    target = torch.randint(4, V, (2, 6))
    logits = model(source, mask, target)
    nn.functional.cross_entropy(logits.flatten(0, 1), torch.randint(4, V, (12,))).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        if not name.endswith("key.bias"):  # adds one number to all scores of a query, which softmax does not see
            assert parameter.grad.abs().max() > 1e-7, name


def test_dropout_is_on_in_training_only() -> None:
    torch.manual_seed(6)
    model = Transformer(small_config(dropout=0.2, attention_dropout=0.2, activation_dropout=0.2), V)
    source, mask = source_of([5])
    target = torch.randint(4, V, (1, 6))
    assert not torch.equal(model(source, mask, target), model(source, mask, target))
    model.eval()
    assert torch.equal(model(source, mask, target), model(source, mask, target))


@pytest.mark.parametrize("length", [1, 8, 27])
def test_layers_get_attention_masks_that_a_gpu_need_not_copy(length: int) -> None:
    """The memory-efficient kernel copies a mask with a stride, except the last, that is no multiple of 8."""
    strides = []

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float, causal: bool) -> Tensor:
        if mask is not None and not causal:
            assert mask.shape == (4, 1, 1, length)
            strides.append(mask.stride())
        return torch.empty_like(q)

    with SimulatedDevice() as simulated:
        model = Transformer(small_config(), V, attend).to(simulated.device)
        ids = torch.ones(4, length, dtype=torch.int64, device=simulated.device)
        mask = attention_mask(ids != 0, torch.float32)
        model.decode(ids, model.encode(ids, mask), mask)
    assert len(strides) == 5
    assert all(stride % 8 == 0 for *outer, _ in strides for stride in outer), strides
    assert all(last == 1 for *_, last in strides)


@pytest.mark.parametrize("source_size", [None, 50])
@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"norm": "post"},
        {"positions": "learned", "embedding_norm": True},
        {"encoder_layers": 3, "decoder_layers": 1},
        *({name: value} for name, value in FOREIGN.items()),
        FOREIGN,
    ],
    ids=str,
)
def test_shapes_are_those_of_the_modules(changed: dict[str, Any], source_size: int | None) -> None:
    config = ModelConfig.model_validate({**ODD, **changed, **({} if source_size is None else {"tie_source": False})})
    model = Transformer(config, 77, source_vocabulary_size=source_size)
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    assert transformer_shapes(config, 77, source_size) == expected
