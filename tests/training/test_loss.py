from math import log

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy, log_softmax

from mt.config import ModelConfig
from mt.data.batching import Batch, make_batch
from mt.model.transformer import Transformer
from mt.tokenizer import PAD
from mt.training.loss import batch_loss, precision_context, smoothed_cross_entropy

VOCABULARY = 12


@pytest.fixture
def model() -> Transformer:
    torch.manual_seed(1)
    config = ModelConfig(encoder_layers=1, decoder_layers=1, d_model=16, d_ff=32, heads=2, dropout=0.0)
    return Transformer(config, VOCABULARY).eval()


@pytest.mark.parametrize(
    ("smoothing", "expected"),
    [
        # V = 4 and the label is 1: (1 - e) * one-hot + e / V
        (0.0, [0.0, 1.0, 0.0, 0.0]),
        (0.4, [0.1, 0.7, 0.1, 0.1]),
        (0.1, [0.025, 0.925, 0.025, 0.025]),
    ],
)
def test_the_smoothed_distribution(smoothing: float, expected: list[float]) -> None:
    logits = torch.tensor([[0.3, -1.0, 2.0, 0.5]], requires_grad=True)
    loss = smoothed_cross_entropy(logits, torch.tensor([1]), smoothing)
    loss.backward()
    distribution = logits.softmax(-1) - logits.grad  # the gradient of cross-entropy is softmax - distribution
    torch.testing.assert_close(distribution[0], torch.tensor(expected))
    assert loss.item() == pytest.approx(-(torch.tensor(expected) * log_softmax(logits, -1)).sum().item())


@pytest.mark.parametrize(
    ("probabilities", "label", "smoothing", "loss"),
    [
        ([0.5, 0.25, 0.125, 0.125], 0, 0.0, log(2)),
        ([0.5, 0.25, 0.125, 0.125], 1, 0.0, 2 * log(2)),
        # 0.7 * 2 bits, and 0.1 each of 1, 3 and 3 bits
        ([0.5, 0.25, 0.125, 0.125], 1, 0.4, 2.1 * log(2)),
        ([0.25, 0.25, 0.25, 0.25], 3, 0.4, 2 * log(2)),
    ],
)
def test_the_loss_by_hand(probabilities: list[float], label: int, smoothing: float, loss: float) -> None:
    logits = torch.tensor([probabilities]).log()
    assert smoothed_cross_entropy(logits, torch.tensor([label]), smoothing).item() == pytest.approx(loss)


def test_without_smoothing_it_is_the_summed_cross_entropy_of_torch() -> None:
    logits, labels = torch.randn(7, 5), torch.tensor([0, 1, 2, 3, 4, 0, 1])
    expected = cross_entropy(logits, labels, reduction="sum")
    torch.testing.assert_close(smoothed_cross_entropy(logits, labels, 0.0), expected)


def test_bf16_logits_give_an_fp32_loss() -> None:
    logits = torch.randn(1000, 5, dtype=torch.bfloat16)
    labels = torch.zeros(1000, dtype=torch.long)
    loss = smoothed_cross_entropy(logits, labels, 0.1)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, smoothed_cross_entropy(logits.float(), labels, 0.1))


def test_autocast_only_where_the_recipe_asks_for_it(model: Transformer) -> None:
    batch = make_batch([[4, 5, 3]], [[6, 7]], np.array([0]))
    cpu = torch.device("cpu")
    with precision_context(cpu, "float32"):
        plain = model.encode(batch.source, batch.source_mask) @ torch.eye(16)
    with precision_context(cpu, "bfloat16"):
        half = model.encode(batch.source, batch.source_mask) @ torch.eye(16)
        loss = batch_loss(model, batch, 0.1)
    assert (plain.dtype, half.dtype, loss.dtype) == (torch.float32, torch.bfloat16, torch.float32)


sentence = st.lists(st.integers(4, VOCABULARY - 1), min_size=1, max_size=6)


@given(st.lists(st.tuples(sentence, sentence), min_size=1, max_size=5))
@settings(max_examples=30, deadline=None)
def test_a_batch_is_the_sum_of_its_pairs_however_much_padding_it_has(pairs: list[tuple[list[int], list[int]]]) -> None:
    torch.manual_seed(1)
    config = ModelConfig(encoder_layers=1, decoder_layers=1, d_model=16, d_ff=32, heads=2, dropout=0.0)
    model = Transformer(config, VOCABULARY).eval()
    sources, targets = [[*source, 3] for source, _ in pairs], [target for _, target in pairs]
    together = batch_loss(model, make_batch(sources, targets, np.arange(len(pairs))), 0.1)
    alone = [batch_loss(model, make_batch([s], [t], np.array([0])), 0.1) for s, t in zip(sources, targets, strict=True)]
    torch.testing.assert_close(together, torch.stack(alone).sum())


def test_padding_does_not_count(model: Transformer) -> None:
    batch = make_batch([[4, 5, 3]], [[6, 7]], np.array([0]))
    more = [torch.nn.functional.pad(tensor, (0, 3), value=PAD) for tensor in (batch.source, batch.target, batch.labels)]
    padded = Batch(more[0], more[0] != PAD, more[1], more[2], (0,))
    torch.testing.assert_close(batch_loss(model, padded, 0.1), batch_loss(model, batch, 0.1))
