"""Kernels for ARM in an emulator, against the kernels for this processor."""

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mt.bundled import STARTER_MODEL
from mt.checkpoint import load_model
from mt.decoding.options import SearchOptions, SpecialIds
from mt.engine.backends.cpu import with_positions
from mt.kernels.build import OPTIONS, SOURCES, TARGETS, Target
from mt.kernels.library import CpuModel
from mt.kernels.quantization import Int8Weights
from mt.kernels.structs import SearchParams, search_params
from tests.conftest import sentences
from tests.kernels.conftest import Ids, compile_model, odd_model, some_sources, translate

Scored = list[tuple[float, tuple[int, ...]]]
DecodeOnArm = Callable[["Recorder", Sequence[Ids]], Scored]
EMULATOR = "qemu-aarch64"
COMPILERS = {"gcc": ("aarch64-linux-gnu-g++",), "clang": ("clang++", "--target=aarch64-linux-gnu")}
ARM = [target for target in TARGETS if target.compiles_on("aarch64")]
BEAM = SearchOptions(beam_size=4, max_length_factor=1.0, max_length_offset=10)

pytestmark = [
    pytest.mark.slow,
    *(
        pytest.mark.skipif(shutil.which(tool) is None, reason=f"there is no {tool}")
        for tool in (EMULATOR, "aarch64-linux-gnu-g++")
    ),
]


class Recorder:
    """Library that records the calls by which a model is built, in the format of decode.cpp."""

    _name = "recorder.so"

    def __init__(self) -> None:
        self.config = b""
        self.tensors: list[bytes] = []

    def mt_tensors_new(self) -> int:
        return 1

    def mt_tensors_free(self, tensors: int) -> None:
        pass

    def mt_tensors_add(
        self,
        tensors: int,
        name: bytes,
        floats: int | None,
        int8: int | None,
        scales: int | None,
        rows: int,
        columns: int,
    ) -> int:
        head = np.array([len(name) + 1, int8 is not None, rows, columns], np.int32).tobytes() + name + b"\0"
        content = ctypes.string_at(int8 or floats or 0, rows * columns * (1 if int8 else 4))
        self.tensors.append(head + content + (ctypes.string_at(scales, rows * 4) if scales else b""))
        return 0

    def mt_model_size(self, config: Any, tensors: int) -> int:
        self.config = bytes(config._obj)
        return 1

    def mt_model_new(self, *arguments: object) -> int:
        return 1

    def mt_model_free(self, handle: int) -> None:
        pass

    def file(self, sources: Sequence[Ids], options: SearchOptions) -> bytes:
        params = [search_params(options, len(source)) for source in sources]
        ids = [id for source in sources for id in source]
        numbers = np.array([len(sources), len(ids), *map(len, sources), *ids], np.int32).tobytes()
        count = np.int32(len(self.tensors)).tobytes()
        return b"".join([self.config, count, *self.tensors, numbers, bytes((SearchParams * len(params))(*params))])


def assert_same_or_ties(found: Scored, model: CpuModel, sources: Sequence[Ids], rounding: float) -> None:
    """Assert that scores differ by `rounding` at most. One sentence in twenty may have other tokens of such a score."""
    expected = [hypotheses[0] for hypotheses in translate(model, sources, BEAM)]
    assert [score for score, _ in found] == pytest.approx([best.score for best in expected], abs=rounding)
    different = sum(tokens != best.tokens for (_, tokens), best in zip(found, expected, strict=True))
    assert different <= len(sources) // 20


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    """decode.cpp for each compiler and target."""
    folder = tmp_path_factory.mktemp("arm")
    options = [option for option in OPTIONS if option not in ("-shared", "-fPIC")]
    programs = {}
    for name, command in COMPILERS.items():
        for target in ARM if shutil.which(command[0]) else ():
            path = folder / f"{name}-{target.name}"
            source = str(Path(__file__).with_name("decode.cpp"))
            compiling = [*command, *options, *target.options, "-static", f"-I{SOURCES}", source, "-o", str(path)]
            done = subprocess.run(compiling, capture_output=True, text=True, check=False)
            assert done.returncode == 0 and done.stderr == "", done.stderr
            programs[name, target.name] = path
    return programs


@pytest.fixture
def decode_on_arm(
    programs: dict[tuple[str, str], Path],
    tmp_path: Path,
    compiler: str,
    target: Target,
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    """Function from a recorder, sources and options to the scores and tokens of an emulated ARM processor."""
    if (compiler, target.name) not in programs:
        pytest.skip(f"there is no {COMPILERS[compiler][0]}")

    def run(recorder: Recorder, sources: Sequence[Ids]) -> Scored:
        (tmp_path / "model").write_bytes(recorder.file(sources, BEAM))
        command = [EMULATOR, str(programs[compiler, target.name]), str(tmp_path / "model")]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        return [(float(line.split()[0]), tuple(map(int, line.split()[1:]))) for line in lines]

    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # no cache, which would hold the weights of a recorder
    return run


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("target", ARM, ids=lambda target: target.name)
@pytest.mark.parametrize("int8", [False, True], ids=["float32", "int8"])
def test_random_models(library: ctypes.CDLL, decode_on_arm: DecodeOnArm, int8: bool) -> None:
    sources = some_sources(20)
    for changes in ({}, {"norm": "post", "activation": "gelu"}, {"d_model": 128, "d_ff": 192, "heads": 4}):
        model, recorder = odd_model(seed=3, **changes), Recorder()
        compile_model(recorder, model, int8)  # type: ignore[arg-type]
        rounding = 0.02 if int8 else 1e-4  # a number between two bytes may be rounded to the other
        assert_same_or_ties(decode_on_arm(recorder, sources), compile_model(library, model, int8), sources, rounding)


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("target", ARM, ids=lambda target: target.name)
def test_sentences_of_the_starter_model(library: ctypes.CDLL, decode_on_arm: DecodeOnArm) -> None:
    loaded, special = load_model(STARTER_MODEL, "cpu"), SpecialIds()
    weights, config = loaded.arrays(), loaded.description.model
    assert isinstance(weights, Int8Weights)
    packed = with_positions(weights.stored, config), (special.pad, special.unk, special.bos, special.eos), True
    recorder = Recorder()
    CpuModel(recorder, config, *packed)  # type: ignore[arg-type]
    tag = loaded.tokenizer.tag_id("de")
    sources = [(tag, *loaded.tokenizer.encode(text), special.eos) for text in sentences(100)]
    assert_same_or_ties(decode_on_arm(recorder, sources), CpuModel(library, config, *packed), sources, 0.02)
