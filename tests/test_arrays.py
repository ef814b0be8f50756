"""Files of arrays."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from mt.arrays import Array, load_arrays, save_arrays
from mt.errors import ModelError
from tests.weights import save_weights


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_float_tensors_of_torch_are_read(tmp_path: Path, dtype: torch.dtype) -> None:
    values = torch.tensor([[0.0, -1.5, 3.140625], [1e-30, 65504.0, -0.0]]).to(dtype)
    tensors: dict[str, Tensor] = {"x": values, "scale": torch.ones(2), "small": torch.tensor([-128], dtype=torch.int8)}
    save_weights(tmp_path / "a.safetensors", tensors)
    result = load_arrays(tmp_path / "a.safetensors")
    assert result["x"].tolist() == values.tolist()
    assert result["scale"].dtype == np.float32 and result["small"].tolist() == [-128]


def test_other_types_are_refused(tmp_path: Path) -> None:
    save_weights(tmp_path / "a.safetensors", {"x": torch.ones(2), "y": torch.ones(2, dtype=torch.float8_e4m3fn)})
    with pytest.raises(ModelError, match=r"accepted types: F16, F32.*\n  - y has the type F8_E4M3"):
        load_arrays(tmp_path / "a.safetensors")


def test_a_change_of_a_mapped_array_does_not_reach_the_file(tmp_path: Path) -> None:
    save_arrays(tmp_path / "a.safetensors", {"a": np.ones((2, 3), np.float32)})
    result = load_arrays(tmp_path / "a.safetensors")["a"]
    assert not result.flags.owndata
    result[0, 0] = 9
    assert load_arrays(tmp_path / "a.safetensors")["a"].tolist() == [[1, 1, 1], [1, 1, 1]]


def test_numbers_are_aligned(tmp_path: Path) -> None:
    """Files of other programs may store a float32 at any place; ours have wide numbers first."""
    arrays: dict[str, Array] = {"a": np.full(3, 7, np.int8), "b": np.ones(2, np.float32), "c": np.ones(1, np.float64)}
    fields = {"dtype": "F32", "shape": [1], "data_offsets": [1, 5]}
    header = json.dumps({"a": {"dtype": "I8", "shape": [1], "data_offsets": [0, 1]}, "b": fields}).encode()
    content = len(header).to_bytes(8, "little") + header + b"\1" + np.float32(2.5).tobytes()
    (tmp_path / "odd.safetensors").write_bytes(content)
    save_arrays(tmp_path / "ours.safetensors", arrays)
    odd, ours = (load_arrays(tmp_path / f"{name}.safetensors") for name in ("odd", "ours"))
    assert all(array.flags.aligned for array in (*odd.values(), *ours.values()))
    assert odd["b"].tolist() == [2.5] and all(np.array_equal(ours[name], array) for name, array in arrays.items())
