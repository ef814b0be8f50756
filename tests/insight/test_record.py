"""Records of a forward pass, against the model's own computations."""

import pytest
import torch

from mt.checkpoint import LoadedModel
from mt.config import ModelConfig
from mt.insight.record import AttentionRecord, PassRecord, record_pass
from mt.model.transformer import Transformer
from mt.tokenizer import EOS
from tests.hypotheses import ROUNDING

HEADS = 2
SMALL = {"encoder_layers": 1, "decoder_layers": 1, "d_model": 8, "d_ff": 8, "heads": 2}


@pytest.fixture(scope="module")
def pair(loaded: LoadedModel) -> tuple[list[int], list[int]]:
    encode = loaded.tokenizer.encode
    return [*encode("My husband is very fast."), EOS], encode("Mein Mann ist sehr schnell.")


@pytest.fixture(scope="module")
def record(loaded: LoadedModel, pair: tuple[list[int], list[int]]) -> PassRecord:
    return record_pass(loaded.model, *pair)


def test_weights_sum_to_one_and_give_the_outputs(record: PassRecord) -> None:
    for item in record.attentions:
        assert float((item.weights.sum(-1) - 1).abs().max()) < ROUNDING
        assert not item.weights[:, ~item.mask].any(), "a masked weight is not exactly 0"
        assert item.weights[:, item.mask].all()
    assert not record.of("encoder")[0].mask[:, -2:].any() and record.of("encoder")[0].mask[:, :-2].all()
    assert torch.equal(record.of("decoder")[0].mask, torch.ones_like(record.of("decoder")[0].mask).tril())
    assert max(item.difference for item in record.attentions) < ROUNDING


def test_embeddings_and_norms(loaded: LoadedModel, record: PassRecord) -> None:
    source, target = record.embeddings
    assert len(source.output) == len(record.source) and len(target.output) == len(record.target)
    assert torch.allclose(source.tokens + source.positions, source.output, atol=ROUNDING)
    assert [norm.name for norm in record.norms[:5]] == [
        *("encoder 1 self-attention", "encoder 1 feed-forward", "encoder 2 self-attention", "encoder 2 feed-forward"),
        "encoder output",
    ]
    # Pre-norm: the first LayerNorm reads the embeddings.
    size = source.output.square().mean(-1).sqrt().mean()
    assert record.norms[0].residual == pytest.approx(float(size), rel=1e-5)


def test_variants_of_the_model() -> None:
    torch.manual_seed(0)
    config = ModelConfig.model_validate({**SMALL, "norm": "post", "tie_source": False, "max_length": 16})
    record = record_pass(Transformer(config, 20, source_vocabulary_size=30).eval(), [25, EOS], [19])
    assert [len(embedding.output) for embedding in record.embeddings] == [2, 2]
    assert [norm.name for norm in record.norms][-1] == "decoder 1 feed-forward"
    # A LayerNorm with the initial weights gives states with a root mean square of 1.
    assert [norm.normalised for norm in record.norms] == [pytest.approx(1, abs=1e-3)] * 5
    torch.manual_seed(0)
    config = ModelConfig.model_validate({**SMALL, "positions": "learned", "embedding_norm": True})
    model = Transformer(config, 20).eval()
    record = record_pass(model, [15, EOS], [19])
    for layer, embedding in zip((model.source_input, model.target_input), record.embeddings, strict=True):
        assert torch.equal(embedding.positions, layer.positions.weight[:2])
    assert {"source embeddings", "target embeddings"} <= {norm.name for norm in record.norms}


def test_entropy_of_a_uniform_and_of_a_certain_head() -> None:
    weights = torch.tensor([[[0.25, 0.25, 0.25, 0.25]], [[0.0, 1.0, 0.0, 0.0]]])
    nothing = torch.zeros(2, 4, 1)
    record = AttentionRecord("cross", 1, nothing, nothing, nothing, torch.ones(1, 4, dtype=torch.bool), weights, 0.0)
    assert record.entropy.tolist() == pytest.approx([2.0, 0.0])
