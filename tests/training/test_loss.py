from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import log_softmax

from mt.config import ModelConfig
from mt.data.batching import TrainingBatch, make_batch
from mt.model.embedding import NEVER
from mt.model.transformer import Transformer
from mt.tokenizer import PAD
from mt.training import loss as loss_module
from mt.training.loss import batch_loss, chunk_size, projected_cross_entropy, smoothed_cross_entropy

VOCABULARY = 12


def tiny(**changes: bool) -> Transformer:
    torch.manual_seed(1)
    sizes = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "d_ff": 32, "heads": 2, "dropout": 0.0}
    return Transformer(ModelConfig.model_validate({**sizes, **changes}), VOCABULARY).eval()


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
    assert logits.grad is not None
    distribution = logits.softmax(-1) - logits.grad  # the gradient of cross-entropy is softmax - distribution
    torch.testing.assert_close(distribution[0], torch.tensor(expected))
    assert loss.item() == pytest.approx(-(torch.tensor(expected) * log_softmax(logits, -1)).sum().item())


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("chunk", [1, 50, 1 << 25])
def test_the_projected_loss_is_the_plain_one(monkeypatch: pytest.MonkeyPatch, smoothing: float, chunk: int) -> None:
    monkeypatch.setattr(loss_module, "CPU_CHUNK", chunk)  # one token at a time, four, or all
    generator = torch.Generator().manual_seed(1)
    states, weight = torch.randn(7, 5, generator=generator), torch.randn(12, 5, generator=generator)
    labels = torch.tensor([0, 11, 2, 3, 3, 3, 9])
    found: list[torch.Tensor | None] = []
    expected: list[torch.Tensor | None] = []
    for into, projected in ((found, True), (expected, False)):
        x, w = states.clone().requires_grad_(), weight.clone().requires_grad_()
        if projected:
            loss = projected_cross_entropy(x, w, labels, smoothing)
        else:
            loss = smoothed_cross_entropy(x @ w.t(), labels, smoothing)
        (3 * loss).backward()
        into += [loss, x.grad, w.grad]
    for ours, plain in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, plain, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(
    ("dtype", "gigabytes", "logits"),
    [(torch.bfloat16, 80, 1 << 28), (torch.bfloat16, 16, 1 << 27), (torch.float32, 16, 1 << 26)],
)
def test_a_chunk_of_logits_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch, dtype: torch.dtype, gigabytes: int, logits: int
) -> None:
    properties = SimpleNamespace(total_memory=gigabytes << 30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    states = SimpleNamespace(device=torch.device("cuda"), is_cuda=True, element_size=lambda: dtype.itemsize)
    assert chunk_size(cast(torch.Tensor, states)) == logits


def test_a_label_without_probability_counts_87_and_has_the_gradients_of_the_plain_loss() -> None:
    states, weight, labels = torch.tensor([[300.0, 0.0]]), torch.eye(2), torch.tensor([1])
    gradients = []
    for loss_of in (projected_cross_entropy, lambda x, w, y, e: smoothed_cross_entropy(x @ w.t(), y, e)):
        x, w = states.clone().requires_grad_(), weight.clone().requires_grad_()
        loss = loss_of(x, w, labels, 0.0)
        loss.backward()
        gradients.append((x.grad, w.grad))
        assert loss.item() == pytest.approx(87.34 if len(gradients) == 1 else 300.0, abs=0.01)
    torch.testing.assert_close(*gradients)


def test_in_bf16_the_projected_loss_is_near_that_in_fp32() -> None:
    generator = torch.Generator().manual_seed(1)
    states = torch.randn(2000, 16, generator=generator).bfloat16()
    weight = torch.randn(300, 16, generator=generator).bfloat16()
    labels = torch.randint(300, (2000,), generator=generator)
    exact = [states.float().requires_grad_(), weight.float().requires_grad_()]
    rounded = [states.requires_grad_(), weight.requires_grad_()]
    losses = [projected_cross_entropy(x, w, labels, 0.1) for x, w in (exact, rounded)]
    for loss in losses:
        loss.backward()
    assert losses[1].dtype == torch.float32
    assert losses[1].item() == pytest.approx(losses[0].item(), rel=1e-3)
    for ours, plain in zip(rounded, exact, strict=True):
        assert ours.grad is not None and plain.grad is not None
        assert (ours.grad.float() - plain.grad).norm() < 0.01 * plain.grad.norm()


sentence = st.lists(st.integers(4, VOCABULARY - 1), min_size=1, max_size=6)


@given(st.lists(st.tuples(sentence, sentence), min_size=1, max_size=5))
@settings(max_examples=30)
def test_a_batch_is_the_sum_of_its_pairs_however_much_padding_it_has(pairs: list[tuple[list[int], list[int]]]) -> None:
    """In training as in validation, where no gradient is needed."""
    model = tiny()
    sources, targets = [[*source, 3] for source, _ in pairs], [target for _, target in pairs]
    batch = make_batch(sources, targets, np.arange(len(pairs)))
    together = batch_loss(model, batch, 0.1)
    alone = [batch_loss(model, make_batch([s], [t], np.array([0])), 0.1) for s, t in zip(sources, targets, strict=True)]
    torch.testing.assert_close(together, torch.stack(alone).sum())
    tensors = (batch.source, batch.target, batch.labels)
    source, target, labels = (torch.nn.functional.pad(x, (0, 3), value=PAD) for x in tensors)
    padded = TrainingBatch.of(source, target, labels, tuple(range(len(pairs))))
    torch.testing.assert_close(batch_loss(model, padded, 0.1), together)
    with torch.no_grad():
        plain = batch_loss(model, batch, 0.1)
    assert not plain.requires_grad
    torch.testing.assert_close(together.detach(), plain)


@pytest.mark.parametrize("never", [[], [0, 2]])
def test_an_output_layer_of_its_own_and_its_bias_count(never: list[int]) -> None:
    """Smoothing leaves out what never comes out, as if it were no piece; it gets no gradient."""
    model = tiny(tie_output=False, logits_bias=True)
    embedding = model.embedding
    assert embedding.output is not None and embedding.bias is not None
    with torch.no_grad():
        embedding.bias.normal_()[never] = NEVER
    batch = make_batch([[4, 5, 3]], [[6, 7]], np.array([0]))
    loss = batch_loss(model, batch, 0.1)
    loss.backward()
    kept = [id for id in range(VOCABULARY) if id not in never]
    logits = model(batch.source, batch.source_mask, batch.target)[0][:, kept]
    expected = smoothed_cross_entropy(logits, torch.tensor([kept.index(id) for id in batch.labels[0].tolist()]), 0.1)
    torch.testing.assert_close(loss, expected)
    gradients = torch.autograd.grad(expected, [embedding.output, embedding.bias])
    torch.testing.assert_close([embedding.output.grad, embedding.bias.grad], list(gradients))
    assert embedding.bias.grad is not None and not embedding.bias.grad[never].any() and embedding.bias.grad[kept].all()
