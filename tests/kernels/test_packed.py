"""int8 weights: their numbers by hand, and packed ones in a private file that processes share."""

import ctypes
import logging
import mmap
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from mt.arrays import Array
from mt.checkpoint import load_model, to_arrays
from mt.engine.backends.cpu import compile_model as compile_loaded
from mt.interop.int8 import export_int8
from mt.kernels import packed
from mt.kernels.build import cache_folder
from mt.kernels.library import CpuBatch, CpuModel
from mt.kernels.packed import UNUSED_SECONDS, digest, shared_memory
from mt.kernels.quantization import Int8Weights, flaws, quantize, quantize_weights
from mt.kernels.structs import scores_only
from mt.pipeline.translator import Translator
from tests.kernels.conftest import FOREIGN, compile_model, odd_model, some_sources, translate

FROZEN = Path(__file__).parents[1] / "frozen" / "model"


def fill(memory: mmap.mmap) -> None:
    memory[:4] = b"abcd"


def never(memory: mmap.mmap) -> None:
    raise AssertionError("it exists")


@pytest.fixture
def cache(tmp_path: Path, library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the packed weights, empty at first."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = cache_folder()
    assert found is not None
    found.mkdir(parents=True)
    shutil.copy(library._name, found)  # for other processes, which would build it again
    return found / "weights"


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*"))


def test_a_directory_with_int8_weights_shares_those_of_its_model(cache: Path, tmp_path: Path) -> None:
    export_int8(FROZEN, tmp_path / "int8")
    for folder in (FROZEN, tmp_path / "int8"):
        compile_loaded(load_model(folder), int8=True)
    assert len(files(cache)) == 1


def test_a_file_is_written_once_and_is_private(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    fills: list[int] = []

    def fill_slowly(memory: mmap.mmap) -> None:
        fills.append(len(memory))
        sleep(0.1)
        fill(memory)

    with ThreadPoolExecutor(2) as threads:
        memory, _ = threads.map(lambda _: shared_memory(folder, "name", 5000, fill_slowly), range(2))
    assert fills == [5000] and memory is not None and memory[:6] == b"abcd\0\0" and len(memory) == 5000
    with pytest.raises(TypeError):
        memory[0] = 1
    (path,) = files(folder)
    assert (folder.stat().st_mode & 0o777, path.stat().st_mode & 0o777) == (0o700, 0o400)
    again = shared_memory(folder, "name", 5000, never)
    assert again is not None and again[:4] == b"abcd"


@pytest.mark.parametrize("damage", ["folder is open", "file is open", "link", "other size", "no folder", "full disk"])
def test_what_is_not_private_or_whole_is_not_used(
    tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    folder = tmp_path / "cache"
    assert shared_memory(folder, "name", 5000, fill) is not None
    path = folder / "name"
    if damage == "folder is open":
        folder.chmod(0o770)
    elif damage == "file is open":
        path.chmod(0o666)
    elif damage == "link":
        path.rename(tmp_path / "other")
        path.symlink_to(tmp_path / "other")
    elif damage == "other size":
        path.chmod(0o600)
        path.write_bytes(b"abcd")
    elif damage == "no folder":
        folder = Path("/dev/null/x")
    else:
        path.unlink()
        monkeypatch.setattr(packed, "FREE_PART", 10**12)
    assert shared_memory(folder, "name", 5000, fill) is None
    assert "packed weights are not shared with other processes" in caplog.text


def test_old_files_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    for name, age in (("old", UNUSED_SECONDS + 60), ("used", 60)):
        assert shared_memory(folder, name, 100, fill) is not None
        then = (folder / name).stat().st_mtime - age
        os.utime(folder / name, (then, then))
    assert shared_memory(folder, "used", 100, never) is not None
    assert shared_memory(folder, "new", 100, fill) is not None
    assert [path.name for path in files(folder)] == ["new", "used"]


def test_the_digest_depends_on_everything() -> None:
    one: dict[str, Array] = {"a": np.zeros((2, 3), np.float32), "b": np.ones(4, np.int8)}
    others: list[dict[str, Array]] = [
        {**one, "a": np.zeros((3, 2), np.float32)},
        {**one, "a": np.zeros((2, 3), np.int32)},
        {**one, "b": np.array([1, 1, 1, 2], np.int8)},
        {"a": one["a"], "c": one["b"]},
    ]
    found = {digest(arrays) for arrays in (one, *others)} | {digest(one, b"x")}
    assert len(found) == 6 and digest(dict(one)) == digest(one)


def test_models_share_their_packed_weights(cache: Path, library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is packed from floats, from int8, and mapped is the same to the last bit."""
    model, sources = odd_model(500, d_model=48), some_sources(9, 500)
    expected = translate(compile_model(library, model, int8=True), sources)
    (path,) = files(cache)
    content = path.read_bytes()
    assert path.name.endswith("." + Path(library._name).stem)
    mapped = compile_model(library, model, int8=True)
    assert translate(mapped, sources) == expected
    assert path.read_bytes() == content and str(path) in Path("/proc/self/maps").read_text()
    compile_model(library, model)  # float32 weights are not shared
    compile_model(library, odd_model(500, seed=1, d_model=48), int8=True)
    assert len(files(cache)) == 2
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # no cache
    assert translate(compile_model(library, model, int8=True), sources) == expected


def test_an_int8_directory_is_not_converted_to_floats(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starter = Path("mt/bundled/starter")
    expected = Translator.load(starter, "cpu", "int8").translate("Where is the station?", source="en", target="de").text
    loaded = load_model(starter)
    assert isinstance(loaded.weights, Int8Weights)
    monkeypatch.setattr(Int8Weights, "__getitem__", lambda self, name: pytest.fail(f"{name} becomes floats"))
    compile_loaded(loaded, int8=True)
    found = Translator.load(starter, "cpu", "int8").translate("Where is the station?", source="en", target="de")
    assert found.text == expected
    assert len(files(cache)) == 1


def test_numbers_by_hand() -> None:
    rows = [[2.0, -4.0, 0.5, 127.0], [0.0, 0.0, 0.0, 0.0], [1e-35, 0.0, 0.0, 0.0], [0.25, -127, 9, 1]]
    bytes_, scale = quantize(np.array(rows, np.float32))
    assert bytes_.tolist() == [[2, -4, 0, 127], [0] * 4, [0] * 4, [0, -127, 9, 1]]
    assert scale.tolist() == [1, 0, 0, 1]
    rows = [[127 * (1 + 2**-15)], [127 * (1 + 2**-16 + 2**-20)], [127 * (1 + 2**-18)]]
    assert quantize(np.array(rows, np.float32))[1].tolist() == [1 + 2**-15, 1 + 2**-15, 1], "sixteen significant bits"


def test_rounded_weights_are_rounded_to_themselves() -> None:
    random = np.random.default_rng(0)
    matrix = random.standard_normal((4000, 7)) * np.logspace(-34, 30, 4000)[:, None]
    weights = {"w": matrix.astype(np.float32), "b": random.standard_normal(3, np.float32)}
    stored = dict(quantize_weights(weights.items()))
    floats = Int8Weights(stored)
    again = dict(quantize_weights(floats.items()))
    assert stored.keys() == again.keys() == {"w", "w_scale", "b"} and floats.keys() == {"w", "b"}
    assert all(np.array_equal(stored[name], again[name]) for name in stored)
    error = abs(floats["w"] - weights["w"]).max(1)
    assert (error <= abs(weights["w"]).max(1) / 127 * 0.51 + 2e-30).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"w": np.zeros(2, np.int8)}, r"w is int8 with the shape [2]; accepted: a matrix"),
        ({"w_scale": None}, "w is int8 and w_scale is missing"),
        ({"w_scale": np.ones(3, np.float32)}, "w_scale is float32 [3]; accepted: float32 [2]"),
        ({"w_scale": np.ones(2, np.float16)}, "w_scale is float16 [2]; accepted: float32 [2]"),
        ({"w_scale": np.array([1.0, np.nan], np.float32)}, "w_scale has values that are negative or not finite"),
        ({"w_scale": np.array([1.0, -1.0], np.float32)}, "w_scale has values that are negative or not finite"),
        ({"w": np.full((2, 4), -128, np.int8)}, "w has the value -128; accepted: -127 to 127"),
    ],
)
def test_what_cannot_be_int8_weights(change: dict[str, Array | None], message: str) -> None:
    good = dict(quantize_weights({"w": np.ones((2, 4), np.float32), "b": np.ones(2, np.float32)}.items()))
    assert list(flaws(good)) == []
    assert list(flaws({name: array for name, array in {**good, **change}.items() if array is not None})) == [message]


def logits(model: CpuModel) -> NDArray[np.float32]:
    sources = some_sources(12)
    batch = CpuBatch(model)
    batch.join(sources, [scores_only(1)] * len(sources))
    return batch.logits(range(4, 4 + len(sources)))


@pytest.mark.parametrize("options", [{}, FOREIGN, {"d_model": 64, "heads": 4}], ids=["ours", "foreign", "whole panels"])
def test_the_kernels_round_to_the_same_numbers(target_library: ctypes.CDLL, options: dict[str, Any]) -> None:
    model = odd_model(**options)
    expected, exact = (logits(compile_model(target_library, model, int8)) for int8 in (True, False))
    rounded_weights = Int8Weights(dict(quantize_weights(to_arrays(model.state_dict()).items())))
    model.load_state_dict({name: torch.from_numpy(array) for name, array in rounded_weights.items()})
    assert np.array_equal(logits(compile_model(target_library, model, int8=True)), expected)
    rounded = logits(compile_model(target_library, model))
    assert not np.array_equal(rounded, exact) and np.allclose(rounded, expected, atol=0.5)
