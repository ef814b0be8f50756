import pytest

from mt.config import ModelConfig
from mt.model.transformer import Transformer
from mt.training.speed import peak_operations, training_operations


def test_a_token_pair_meets_each_matrix_once() -> None:
    config = ModelConfig(encoder_layers=2, decoder_layers=3, d_model=8, d_ff=16, heads=2)
    model = Transformer(config, 50)
    weights = sum(p.numel() for p in model.parameters() if p.dim() == 2)
    assert training_operations(config, 50, 7, 7) == 6 * 7 * weights


@pytest.mark.parametrize(
    ("name", "peak"),
    [
        ("NVIDIA H200", 989e12),
        ("NVIDIA H100 PCIe", 756e12),
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("NVIDIA A100-SXM4-80GB", 312e12),
        ("NVIDIA L40S", 362e12),
        ("NVIDIA L4", 121e12),
        ("Some card", None),
    ],
)
def test_peaks_by_name(name: str, peak: float | None) -> None:
    assert peak_operations(name) == peak
