"""The worked example, digit by digit, against the published matrices."""

import pytest
import torch

from mt.insight.example import describe_example, rounded_to_tenths, worked_example


def test_the_exact_matrices() -> None:
    example = worked_example()
    assert example.inputs.tolist() == [[1, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]
    assert example.keys.tolist() == [[0, 1, 1], [4, 4, 0], [2, 3, 1]]
    assert example.queries.tolist() == [[1, 0, 2], [2, 2, 2], [2, 1, 3]]
    assert example.values.tolist() == [[1, 2, 3], [2, 8, 0], [2, 6, 3]]
    assert example.scores.tolist() == [[2, 4, 4], [4, 16, 12], [4, 12, 10]]
    # e^2 / (e^2 + 2 e^4) = 1 / (1 + 2 e^2) = 0.06338
    published = [[6.3379e-02, 4.6831e-01, 4.6831e-01], [6.0337e-06, 9.8201e-01, 1.7986e-02]]
    assert example.weights[:2].tolist() == [pytest.approx(row, rel=1e-4) for row in published]
    assert example.weights[2].tolist() == pytest.approx([2.9539e-04, 8.8054e-01, 1.1917e-01], rel=1e-4)
    published = [[1.9366, 6.6831, 1.5951], [2.0000, 7.9640, 0.0540], [1.9997, 7.7599, 0.3584]]
    assert example.outputs.tolist() == [pytest.approx(row, abs=5e-5) for row in published]


def test_the_rounded_matrices_whose_rows_sum_to_one() -> None:
    """Each number alone would become 0.3, 0.3, 0.3."""
    example = worked_example(in_tenths=True)
    assert example.weights.tolist() == [[0.0, 0.5, 0.5], [0.0, 1.0, 0.0], [0.0, 0.9, 0.1]]
    assert example.weighted[0].tolist() == [[0, 0, 0], [1, 4, 0], [1, 3, 1.5]]
    published = [[2.0, 7.0, 1.5], [2.0, 8.0, 0.0], [2.0, 7.8, 0.3]]
    assert example.outputs.tolist() == [pytest.approx(row) for row in published]
    assert rounded_to_tenths(torch.tensor([[0.34, 0.33, 0.33]])).tolist() == [pytest.approx([0.4, 0.3, 0.3])]


def test_the_text_has_every_matrix() -> None:
    parts = describe_example().split("\n\n")
    assert "keys K = x W^K\n  [0, 1, 1]\n  [4, 4, 0]\n  [2, 3, 1]" in parts
    assert "softmax of the scores, exact\n  [0.0634, 0.4683, 0.4683]\n  [0.0000, 0.9820, 0.0180]" in "\n".join(parts)
    assert "softmax of the scores, rounded to tenths\n  [0.0, 0.5, 0.5]\n  [0.0, 1.0, 0.0]\n  [0.0, 0.9, 0.1]" in parts
    assert parts[-1].splitlines()[1:] == ["  [2.0, 7.0, 1.5]", "  [2.0, 8.0, 0.0]", "  [2.0, 7.8, 0.3]"]
