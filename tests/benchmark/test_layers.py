"""Table 1 of the paper, on sizes whose costs and paths a person can compute."""

import json
from pathlib import Path

import pytest
import torch

from scripts.benchmark.layer_types import (
    LayerType,
    RestrictedAttention,
    SelfAttention,
    chain_length,
    dilated_depth,
    layer_types,
    measured_path,
)
from scripts.benchmark.layers import fit, main, operations

KINDS = layer_types(5, 3)


def test_an_exact_power_law() -> None:
    exact = fit([1, 2, 4, 8], [3.0, 12.0, 48.0, 192.0])
    assert (exact.value, exact.low, exact.high) == pytest.approx((2, 2, 2))
    assert str(exact) == "2.00 ± 0.00"
    noisy = fit([1, 10, 100], [1.0, 10.0, 1000.0])
    assert noisy.value == pytest.approx(1.5)
    assert noisy.high - noisy.value == pytest.approx(12.706 / 12**0.5, rel=1e-3)  # residuals 1/6, -1/3, 1/6 of a decade


def test_operations_by_hand() -> None:
    """n = 8, d = 16, r = 5, k = 3, two operations for a multiplication and an addition."""
    n, d = 8, 16
    weights = n * d * d
    expected = [4 * n * n * d, 4 * n * n * d + 8 * weights, 4 * 5 * n * d, 12 * weights, 6 * weights, 2 * 6 * weights]
    x = torch.randn(1, n, d)
    assert [operations(kind.layer(n, d), x) for kind in KINDS] == expected


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("n", [2, 5, 9, 10, 28])
def test_paths_are_exact(kind: LayerType, n: int) -> None:
    assert measured_path(kind, n) == kind.path_length(n)


def test_path_lengths_by_hand() -> None:
    assert [[kind.path_length(n) for n in (9, 10)] for kind in KINDS] == [
        [1, 1],
        [1, 1],
        [4, 5],
        [9, 10],
        [8, 9],
        [2, 3],
    ]
    assert [dilated_depth(n, 3) for n in (2, 3, 4, 9, 10, 27, 28)] == [1, 1, 2, 2, 3, 3, 4]


def test_only_a_recurrent_layer_has_a_long_chain() -> None:
    chains = [
        [chain_length(kind.layer(n, 16)(torch.randn(1, n, 16, requires_grad=True))) for n in (9, 27)] for kind in KINDS
    ]
    assert [first == second for first, second in chains] == [True, True, True, False, True, False]
    assert chains[3][1] - chains[3][0] >= 27 - 9
    assert chains[5][1] / chains[5][0] == pytest.approx(3 / 2, abs=0.2)  # log 27 / log 9
    x = torch.randn(3, requires_grad=True)
    assert chain_length((x * 2 + 1) * (x + 1)) == 3


def test_restricted_attention_is_masked_attention() -> None:
    x = torch.randn(1, 12, 16, dtype=torch.float64)
    near = (torch.arange(12)[:, None] - torch.arange(12)).abs() <= 2
    scores = (x[0] @ x[0].T / 4).masked_fill(~near, -torch.inf)
    torch.testing.assert_close(RestrictedAttention(2)(x)[0], scores.softmax(1) @ x[0])
    wide = RestrictedAttention(11)(x)
    torch.testing.assert_close(wide, SelfAttention()(x))


def test_the_files_of_a_small_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--lengths", "8", "16", "32", "--widths", "16", "32", "48", "--rounds", "1"]
    assert main(["--output", str(tmp_path), *sizes]) == 0
    assert "self-attention" in capsys.readouterr().out
    values = json.loads((tmp_path / "results.json").read_text())
    exponents = values["exponents"]["self-attention"]
    assert exponents["operations n"]["value"] == pytest.approx(2)
    assert exponents["operations d"]["value"] == pytest.approx(1)
    assert all(path["measured"] == path["exact"] for rows in values["paths"].values() for path in rows)
    assert "n² d" in (tmp_path / "table.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--widths", "16", "20", "32"], r"--widths has [20]; accepted: multiples of 16"),
        (["--lengths", "16", "16", "32"], "fewer than three numbers"),
    ],
)
def test_sizes_that_cannot_be_used(
    tmp_path: Path, options: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--output", str(tmp_path), *options]) == 2
    assert problem in capsys.readouterr().err
