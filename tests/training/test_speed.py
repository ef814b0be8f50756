import numpy as np
import pytest

from mt.config import ModelConfig
from mt.data.batching import make_batch
from mt.model.transformer import Transformer
from mt.training.speed import batch_operations, peak_operations


def test_a_token_is_multiplied_with_each_matrix_once() -> None:
    config = ModelConfig(encoder_layers=2, decoder_layers=3, d_model=8, d_ff=16, heads=2)
    model = Transformer(config, 50)
    weights = sum(p.numel() for p in model.parameters() if p.dim() == 2)
    batch = make_batch([[5, 6, 7], [8]], [[5, 6], []], np.array([0, 1]))  # 4 source tokens and, with EOS, 4 targets
    assert batch_operations(model, batch) == 6 * 4 * weights


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H100 PCIe", 756e12),
        ("NVIDIA H100 NVL", 835e12),
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("NVIDIA GH200 480GB", 989e12),
        ("NVIDIA A100-SXM4-80GB", 312e12),
        ("Tesla T4", 65e12),
        ("NVIDIA L40", None),
        ("NVIDIA L40S", 362e12),
        ("NVIDIA L4", 121e12),
        ("NVIDIA A10G", None),
        ("NVIDIA RTX A1000", None),
        ("NVIDIA T400 4GB", None),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", None),  # a seventh of the GPU
        ("Some card", None),
    ],
)
def test_the_most_specific_name_counts(name: str, peak: float | None) -> None:
    assert peak_operations(name) == peak
