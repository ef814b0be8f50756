import json
import os
import pickle
import shutil
import struct
import weakref
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from shutil import copytree
from typing import Literal

import numpy as np
import pytest
import torch
from torch import Tensor

from mt import checkpoint
from mt.arrays import Array, average_arrays, load_arrays, save_arrays
from mt.checkpoint import FILES, LoadedModel, load_model, model_digest, save_confidence, save_model, to_arrays
from mt.config import DecodingConfig, ModelConfig
from mt.description import Confidence, Description
from mt.errors import ModelError, MTError, TokenizerError
from mt.languages import DirectionSet
from mt.model.transformer import Transformer
from mt.tokenizer import Tokenizer, train_tokenizer
from mt.vocabulary import load_tokenizer
from tests.weights import change_weights, edit_json, save_weights

CPU = torch.device("cpu")
TEXT = ["The cat sat on the mat.", "Die Katze saß auf der Matte."] * 10
NUMBERS = {"encoder_layers": 1, "decoder_layers": 2, "d_model": 8, "d_ff": 12, "heads": 2}
CONFIDENCE = '{{"slope": {}, "intercept": 0, "sentences": 5}}'


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer(train_tokenizer(TEXT, vocabulary_size=290, languages=["de", "en"]))


@pytest.fixture(scope="module")
def description() -> Description:
    config = ModelConfig.model_validate(NUMBERS)
    return Description(
        name="cat",
        directions=DirectionSet.parse(["en-de", "de-en"]),
        vocabulary_size=290,
        model=config,
        decoding=DecodingConfig(beam_size=3),
    )


@pytest.fixture(scope="module")
def original(description: Description) -> Transformer:
    torch.manual_seed(0)
    return Transformer(description.model, 290)


@pytest.fixture
def folder(tmp_path: Path, original: Transformer, tokenizer: Tokenizer, description: Description) -> Path:
    save_model(tmp_path / "model", LoadedModel(original, tokenizer, description), "# A card\n")
    return tmp_path / "model"


def cut(share: float, folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])


def make_folder(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").mkdir()


def make_pipe(name: str, folder: Path) -> None:
    (folder / name).unlink(missing_ok=True)
    os.mkfifo(folder / name)


def write_tokenizer(content: bytes, folder: Path) -> None:
    (folder / "tokenizer.model").write_bytes(content)


class Canary:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str, str], object], tuple[str, str]]:
        return open, (str(self.path), "w")


def test_saved_model(folder: Path, original: Transformer, tokenizer: Tokenizer, description: Description) -> None:
    loaded = load_model(folder)
    assert loaded.description == description
    assert loaded.tokenizer.serialised == tokenizer.serialised
    assert not loaded.model.training
    weights = loaded.model.state_dict()
    assert weights.keys() == original.state_dict().keys()
    assert all(torch.equal(weights[name], tensor) for name, tensor in original.state_dict().items())
    source, target = torch.tensor([[5, 6, 3]]), torch.tensor([[2, 7]])
    mask = torch.ones(1, 3, dtype=torch.bool)
    assert torch.equal(loaded.model(source, mask, target), original.eval()(source, mask, target))


def test_digest_and_permissions(folder: Path) -> None:
    """A service in a container is seldom the user who trained the model."""
    before = model_digest(folder)
    (folder / "README.md").write_text("another card")
    assert model_digest(folder) == before
    digests = {before}
    for name in FILES:
        with (folder / name).open("ab") as file:
            file.write(b" ")
        digests.add(model_digest(folder))
    assert len(digests) == 1 + len(FILES)
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {folder.stat().st_mode & 0o666}


CUT = "model.safetensors: not a complete safetensors file"
LARGE = {**NUMBERS, "encoder_layers": 20_000, "max_length": 10**13}
WIDE = {**NUMBERS, "d_model": 1 << 20, "d_ff": 1 << 24}  # 2 ^ 44 numbers a matrix
BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "no directory": (shutil.rmtree, "no model here"),
    "bad JSON": (lambda f: (f / "config.json").write_text("{"), "config.json: not a JSON file"),
    "deep": (lambda f: (f / "config.json").write_text("[" * 100_000), "config.json: not a JSON"),
    "version": (lambda f: edit_json(f / "config.json", format_version=3), "version is 3; accepted: 1 or 2"),
    "bad direction": (lambda f: edit_json(f / "config.json", directions=["ende"]), "directions: .*'ende'"),
    "large": (lambda f: edit_json(f / "config.json", model=LARGE), r"layers: .* 1000\n.*max_length: .* 1000000"),
    "calibration in no direction": (
        lambda f: (f / "calibration.json").write_text('[{"direction":"ende","source":"a","target":"b"}]'),
        "calibration.json: not a list of objects with direction",
    ),
    "vocabulary": (lambda f: edit_json(f / "config.json", vocabulary_size=291), "has 290 pieces, .* 291"),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "model.safetensors: there is no"),
    "empty": (lambda f: (f / "model.safetensors").write_bytes(b""), CUT),
    "header of an exabyte": (lambda f: (f / "model.safetensors").write_bytes(struct.pack("<Q", 1 << 60) + b"{}"), CUT),
    **{f"cut to {share}": (partial(cut, share), CUT) for share in (0.0005, 0.999)},
    "a folder in place of weights": (make_folder, "model.safetensors"),
    **{
        f"a pipe in place of {name}": (partial(make_pipe, name), f"in place of {name}; accepted: files")
        for name in FILES
    },
    "more memory than there is": (lambda f: edit_json(f / "config.json", model=WIDE), r"shape \[8\], not \[1048576\]"),
    "rubbish": (partial(write_tokenizer, b"rubbish"), "tokenizer.model"),
    "int8": (lambda f: (f / "int8.json").write_text("{}"), r"int8\.json: not a file that mt-service wrote"),
    "no tokenizer": (lambda f: (f / "tokenizer.model").unlink(), "tokenizer.model"),
}


@pytest.mark.parametrize(("spoil", "says"), BAD.values(), ids=BAD)
def test_a_bad_model_directory_is_refused(folder: Path, spoil: Callable[[Path], object], says: str) -> None:
    spoil(folder)
    with pytest.raises((ModelError, TokenizerError), match=says) as caught:
        load_model(folder)
    assert str(folder) in str(caught.value)


def test_saved_confidence(folder: Path, original: Transformer, tokenizer: Tokenizer, description: Description) -> None:
    assert load_model(folder).confidence is None
    first, second = (Confidence(slope=1.5, intercept=-0.1 * n, sentences=n) for n in (1, 2))
    save_model(folder, LoadedModel(original, tokenizer, description, confidence=first), "# A card\n")
    assert load_model(folder).confidence == first
    before = {path.name for path in folder.iterdir()}
    save_confidence(folder, second)
    assert load_model(folder).confidence == second
    assert {path.name for path in folder.iterdir()} == before


@pytest.mark.parametrize("text", ["", "[]", *map(CONFIDENCE.format, ("-1", "NaN", '1, "knots": 0'))])
def test_a_bad_confidence_is_refused(folder: Path, text: str) -> None:
    (folder / "confidence.json").write_text(text, encoding="utf-8")
    with pytest.raises(ModelError, match=r"confidence\.json: not a file that `mt-service calibrate` wrote"):
        load_model(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.model"])
@pytest.mark.parametrize("dump", [pickle.dump, torch.save], ids=["pickle", "torch.save"])
def test_a_pickle_is_never_run(folder: Path, name: str, dump: Callable[..., None]) -> None:
    canary = folder.parent / "canary"
    with (folder / name).open("wb") as file:
        dump(Canary(canary), file)
    with pytest.raises(MTError, match="a pickle" if name == "model.safetensors" else name):
        load_model(folder)
    assert not canary.exists()
    with (folder / name).open("rb") as file:  # the canary would sing
        pickle.load(file) if dump is pickle.dump else torch.load(file, weights_only=False)
    assert canary.exists()


def test_weights_that_do_not_fit_are_all_listed(folder: Path) -> None:
    def spoil(weights: dict[str, Tensor]) -> None:
        del weights["encoder.norm.bias"]
        weights["encoder.norm.biass"] = torch.zeros(8)
        weights["decoder.norm.weight"] = torch.zeros(9)
        weights["decoder.norm.bias"][3] = float("nan")
        weights["encoder.norm.weight"][0] = float("inf")
        weights["encoder.layers.0.feed_forward.outer.bias"] = torch.zeros(8, dtype=torch.int64)

    change_weights(folder, spoil)
    with pytest.raises(ModelError) as caught:
        load_model(folder)
    heading, *result = str(caught.value).split("\n  - ")
    assert heading == f"{folder / 'model.safetensors'} does not fit its config.json:"
    assert result == [
        "decoder.norm.bias has values that are not finite",
        "decoder.norm.weight has the shape [9], not [8]",
        "encoder.layers.0.feed_forward.outer.bias has the type int64; accepted: float16, float32, float64, bfloat16",
        "encoder.norm.bias is missing",
        "encoder.norm.biass is unknown",
        "encoder.norm.weight has values that are not finite",
    ]
    change_weights(folder, lambda weights: [weights.pop(name) for name in sorted(weights)[-20:]])
    with pytest.raises(ModelError) as caught:
        load_model(folder)
    heading, *result = str(caught.value).split("\n  - ")
    assert len(result) == 11 and result[-1].startswith("and ") and result[-1].endswith(" more")


def test_an_average_does_not_lose_small_differences(tmp_path: Path) -> None:
    # In float32 2^25 + 1 is 2^25, and the sum would be too small.
    for number, value in enumerate((1.0, 2.0**25, 1.0, 2.0)):
        save_weights(tmp_path / f"{number}.safetensors", {"w": torch.tensor([value])})
    [mean] = average_arrays(sorted(tmp_path.iterdir()))["w"].tolist()
    assert mean == torch.tensor((2**25 + 4) / 4).item()


@pytest.mark.parametrize("other", [{"v": torch.zeros(2)}, {"w": torch.zeros(1)}, {}, {"w": torch.zeros(2, 2)}])
def test_other_arrays_are_not_averaged(tmp_path: Path, other: dict[str, Tensor]) -> None:
    save_weights(tmp_path / "first.safetensors", {"w": torch.zeros(2)})
    save_weights(tmp_path / "other.safetensors", other)
    with pytest.raises(ModelError, match=r"other\.safetensors: the arrays have other names or shapes than in .*first"):
        average_arrays([tmp_path / "first.safetensors", tmp_path / "other.safetensors"])


@pytest.mark.parametrize("weights", ["float32", "int8"])
def test_weights_are_computed_one_at_a_time(
    tmp_path: Path,
    original: Transformer,
    tokenizer: Tokenizer,
    description: Description,
    weights: Literal["float32", "int8"],
) -> None:
    """So that a model needs no memory for all of its weights while it is saved."""
    state, read, limit = to_arrays(original.state_dict()), list[weakref.ref[Array]](), 0

    class Computed(Mapping[str, Array]):
        def __getitem__(self, name: str) -> Array:
            nonlocal limit
            limit = max(limit, sum(array() is not None for array in read))
            weight = state[name].copy()
            read.append(weakref.ref(weight))
            return weight

        def __iter__(self) -> Iterator[str]:
            return iter(state)

        def __len__(self) -> int:
            return len(state)

    stored = description.with_weights(weights)
    save_model(tmp_path / "model", LoadedModel(Computed(), tokenizer, stored), "", keep_float=weights == "int8")
    assert limit == 1 and len(read) == len(state) * (1 + (weights == "int8"))
    loaded = load_model(tmp_path / "model").arrays()
    assert all(np.array_equal(loaded[name], array) for name, array in state.items())


def test_a_folder_that_takes_the_name_while_another_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tokenizer of the one would go with the weights of the other."""
    loaded: list[Tokenizer] = []

    def replaced(path: Path) -> Tokenizer:
        tokenizer = load_tokenizer(path)
        if not loaded:
            copytree(folder, folder.with_name("other"))
            for name in ("config.json", "README.md"):
                other = folder.with_name("other") / name
                other.write_text(other.read_text().replace("cat", "dog"))
            folder.rename(folder.with_name("gone"))
            folder.with_name("other").rename(folder)
        loaded.append(tokenizer)
        return tokenizer

    monkeypatch.setattr(checkpoint, "load_tokenizer", replaced)
    assert load_model(folder).description.name == "dog" and len(loaded) == 2


def test_a_disk_that_is_full_is_said() -> None:
    with pytest.raises(ModelError, match=r"/dev/full: cannot be written \(.*No space left.*\); accepted: a disk"):
        save_arrays(Path("/dev/full"), {"w": np.zeros(2)})


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_float_tensors_of_torch_are_read(tmp_path: Path, dtype: torch.dtype) -> None:
    values = torch.tensor([[0.0, -1.5, 3.140625], [1e-30, 65504.0, -0.0]]).to(dtype)
    tensors: dict[str, Tensor] = {"x": values, "scale": torch.ones(2), "small": torch.tensor([-128], dtype=torch.int8)}
    save_weights(tmp_path / "a.safetensors", tensors)
    result = load_arrays(tmp_path / "a.safetensors")
    assert result["x"].tolist() == values.tolist()
    assert result["scale"].dtype == np.float32 and result["small"].tolist() == [-128]


def test_other_types_are_refused_and_changes_stay_in_memory(tmp_path: Path) -> None:
    save_weights(tmp_path / "a.safetensors", {"x": torch.ones(2), "y": torch.ones(2, dtype=torch.float8_e4m3fn)})
    with pytest.raises(ModelError, match=r"accepted types: F16, F32.*\n  - y has the type F8_E4M3"):
        load_arrays(tmp_path / "a.safetensors")
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
