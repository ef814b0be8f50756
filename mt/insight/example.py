"""A worked example of self-attention with whole numbers: three inputs, one head, unscaled scores.

The numbers are those of R. Karim, "Illustrated: Self-Attention" (2019). That text approximates the softmax by tenths.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from mt.model.attention import attention_weights

INPUTS = ((1, 0, 1, 0), (0, 2, 0, 2), (1, 1, 1, 1))
KEY_WEIGHTS = ((0, 0, 1), (1, 1, 0), (0, 1, 0), (1, 1, 0))
QUERY_WEIGHTS = ((1, 0, 1), (1, 0, 0), (0, 0, 1), (0, 1, 1))
VALUE_WEIGHTS = ((0, 2, 0), (0, 3, 0), (1, 0, 3), (1, 1, 0))


@dataclass(frozen=True)
class WorkedExample:
    """Every matrix of the example, float64. Row i belongs to input i.

    `weighted` [3, 3, 3] are the values times their weights for each query: weighted[i, j] = weights[i, j] values[j].
    """

    inputs: Tensor
    keys: Tensor
    queries: Tensor
    values: Tensor
    scores: Tensor
    weights: Tensor
    weighted: Tensor
    outputs: Tensor


def worked_example(in_tenths: bool = False) -> WorkedExample:
    """Compute the example. If `in_tenths` is true, the softmax is rounded to tenths, as in the published text.

    The rounded softmax is also used in the steps after it.
    """
    inputs, to_keys, to_queries, to_values = (
        torch.tensor(matrix, dtype=torch.float64) for matrix in (INPUTS, KEY_WEIGHTS, QUERY_WEIGHTS, VALUE_WEIGHTS)
    )
    keys, queries, values = inputs @ to_keys, inputs @ to_queries, inputs @ to_values
    # The model divides scores by sqrt(d_k). The example does not, so the queries are multiplied by it.
    weights = attention_weights(queries * math.sqrt(queries.shape[-1]), keys)
    weights = rounded_to_tenths(weights) if in_tenths else weights
    weighted = weights[:, :, None] * values
    return WorkedExample(inputs, keys, queries, values, queries @ keys.T, weights, weighted, weighted.sum(1))


def rounded_to_tenths(weights: Tensor) -> Tensor:
    """Round `weights` [T, S] to tenths such that each row sums to 1. The largest remainders are rounded up.

    The row 0.06, 0.47, 0.47 becomes 0, 0.5, 0.5. Rounding each number alone would give 0.1, 0.5, 0.5, with the sum 1.1.
    """
    tenths = weights * 10
    missing = (10 - tenths.floor().sum(1)).round().long()
    rank = tenths.frac().argsort(dim=1, descending=True, stable=True).argsort(dim=1)
    return (tenths.floor() + (rank < missing[:, None])) / 10


def describe_example() -> str:
    """Return every step of the example as text: with exact weights, then with the weights rounded to tenths."""
    exact, rounded = worked_example(), worked_example(in_tenths=True)
    parts = [
        "Self-attention of three inputs, one head, scores not divided by sqrt(d_k)",
        _matrix("inputs x", exact.inputs, 0),
        _matrix("weights of the keys W^K", torch.tensor(KEY_WEIGHTS), 0),
        _matrix("weights of the queries W^Q", torch.tensor(QUERY_WEIGHTS), 0),
        _matrix("weights of the values W^V", torch.tensor(VALUE_WEIGHTS), 0),
        _matrix("keys K = x W^K", exact.keys, 0),
        _matrix("queries Q = x W^Q", exact.queries, 0),
        _matrix("values V = x W^V", exact.values, 0),
        _matrix("scores Q K^T (row: query, column: key)", exact.scores, 0),
    ]
    for name, example, digits in (("exact", exact, 4), ("rounded to tenths", rounded, 1)):
        parts.append(_matrix(f"softmax of the scores, {name}", example.weights, digits))
        parts += [
            _matrix(f"values times weights for query {number}, {name}", rows, digits)
            for number, rows in enumerate(example.weighted, start=1)
        ]
        parts.append(_matrix(f"outputs: sums of the weighted values, {name}", example.outputs, digits))
    return "\n\n".join(parts)


def _matrix(name: str, rows: Tensor, digits: int) -> str:
    lines = ("[" + ", ".join(f"{value:.{digits}f}" for value in row) + "]" for row in rows.tolist())
    return f"{name}\n" + "\n".join(f"  {line}" for line in lines)
