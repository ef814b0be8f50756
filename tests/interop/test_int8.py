"""A directory with int8 weights translates as its model does in int8, bit for bit, and is refused if damaged."""

import ctypes
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

from mt import Translator
from mt.checkpoint import load_model, save_confidence
from mt.cli.export import main
from mt.data.shortlist import build_shortlist
from mt.description import Confidence
from mt.errors import ModelError
from mt.interop.int8 import HEADING, export_int8
from mt.kernels.shortlist import save_shortlist
from mt.pipeline.results import Translation
from tests.conftest import sentences
from tests.kernels.conftest import library as library
from tests.weights import change_weights, edit_json

FROZEN = Path(__file__).resolve().parents[1] / "frozen" / "model"
OUTER = "encoder.layers.0.feed_forward.outer.weight"
WEIGHTS = "model.safetensors"


@pytest.fixture(scope="module")
def int8(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("int8") / "model"
    assert main([str(FROZEN), str(out), "--to", "int8"]) == 0
    return out


@pytest.fixture
def folder(int8: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(int8, tmp_path / "model"))


def translate(model: Path, dtype: str) -> list[Translation]:
    translator = Translator.load(model, "cpu", dtype=dtype)
    assert translator.dtype == dtype or dtype == "auto"
    return translator.translate_many(sentences(20))


def dtype_of(model: Path) -> str:
    return Translator.load(model, "cpu").dtype


def state(model: Path) -> dict[str, Tensor]:
    return load_model(model).model.state_dict()


def equal(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_it_translates_as_int8_does_bit_for_bit(library: ctypes.CDLL, int8: Path) -> None:
    expected = translate(FROZEN, "int8")
    assert dtype_of(int8) == "int8"
    assert translate(int8, "auto") == translate(int8, "int8") == expected != translate(FROZEN, "float32")


def test_what_a_directory_holds_comes_along(small_model: Path, tmp_path: Path) -> None:
    source = Path(shutil.copytree(small_model, tmp_path / "source"))
    loaded = load_model(source)
    tokenizer, confidence = loaded.tokenizer, Confidence(slope=1, intercept=0, sentences=9)
    save_confidence(source, confidence)
    save_shortlist(source, build_shortlist(tokenizer.pieces(range(len(tokenizer))), 3, [5], []), tokenizer.digest)
    export_int8(source, tmp_path / "out")
    found = load_model(tmp_path / "out")
    assert found.confidence == confidence and found.shortlist is not None
    assert found.tokenizer.digest == tokenizer.digest
    assert found.description == loaded.description.with_weights("int8")
    config = json.loads((tmp_path / "out" / "config.json").read_text(encoding="utf-8"))
    assert (config["weights"], config["format_version"]) == ("int8", 2)
    export_int8(tmp_path / "out", tmp_path / "again")
    for path in (tmp_path / "out").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes(), path.name
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert card.startswith("# small\n") and HEADING in card


def test_float_weights_kept_beside(library: ctypes.CDLL, tmp_path: Path) -> None:
    assert main([str(FROZEN), str(tmp_path / "kept"), "--to", "int8", "--keep-float"]) == 0
    assert equal(state(tmp_path / "kept"), state(FROZEN))
    expected = translate(FROZEN, "int8")
    assert dtype_of(tmp_path / "kept") == "int8" and translate(tmp_path / "kept", "auto") == expected
    (tmp_path / "kept" / "float.safetensors").unlink()
    assert not equal(state(tmp_path / "kept"), state(FROZEN)) and translate(tmp_path / "kept", "auto") == expected
    with pytest.raises(ModelError, match=r"int8 weights without float\.safetensors; accepted: a model with float32"):
        export_int8(tmp_path / "kept", tmp_path / "out", keep_float=True)


def changed(change: Callable[[dict[str, Tensor]], object]) -> Callable[[Path], None]:
    return lambda folder: change_weights(folder, change)


def config(**changes: object) -> Callable[[Path], None]:
    return lambda folder: edit_json(folder / "config.json", **changes)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (changed(lambda w: w.pop(f"{OUTER}_scale")), f"damaged int8 weights:\n  - {OUTER} is int8 and .* is missing"),
        (changed(lambda w: w[f"{OUTER}_scale"].fill_(float("inf"))), "values that are negative or not finite"),
        (changed(lambda w: w[OUTER].fill_(-128)), f"{OUTER} has the value -128"),
        (changed(lambda w: w.update(a_scale=torch.ones(3))), "a_scale is unknown"),
        (changed(lambda w: w.update({OUTER: w[OUTER][:, 1:]})), rf"{OUTER} has the shape \[32, \d+\], not"),
        (config(format_version=1), "weights is int8 and format_version is 1; accepted: version 2"),
        (config(format_version=3), "format_version is 3; accepted: 1 or 2"),
        (config(weights="int4"), "weights: .*'float32' or 'int8'"),
        (config(weights="float32", format_version=1), "key.weight has the type int8; accepted: float16"),
        (lambda f: (f / WEIGHTS).write_bytes((f / WEIGHTS).read_bytes()[:-1]), "not a complete safetensors file"),
        (lambda f: (f / "float.safetensors").write_bytes(b"version https://git"), "safetensors: a pointer of Git LFS"),
    ],
)
def test_a_damaged_directory_is_refused(folder: Path, spoil: Callable[[Path], object], says: str) -> None:
    spoil(folder)
    with pytest.raises(ModelError, match=says):
        load_model(folder)
