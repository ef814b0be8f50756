"""Where the compiled kernels come from, and that nothing brings the process down."""

import ctypes
import platform
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from mt import Translator
from mt.checkpoint import to_arrays
from mt.engine.backends.cpu import CompiledDecoder, with_positions
from mt.engine.engine import Engine
from mt.engine.requests import Request
from mt.errors import ModelError
from mt.kernels import build
from mt.kernels.build import TARGETS, cache_folder, find_libraries, fitting_targets, main
from mt.kernels.library import INTERFACE, SIGNATURES, CpuBatch, CpuModel, load_library, open_library
from mt.kernels.structs import scores_only, search_params
from tests.decoding.reference import drain
from tests.kernels.conftest import BEAM, Ids, compile_model, odd_model, some_sources, translate

COMPILER = shutil.which("c++")
HERE = [target.name for target in TARGETS if target.compiles_on(platform.machine())]
BEST = fitting_targets()[0].name


# Where they come from ----------------------------------------------------------------------------


@pytest.fixture
def workshop(tmp_path: Path, library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a `compiler` that copies the library that is there; an empty cache, nothing prebuilt."""
    (tmp_path / "ready.so").write_bytes(Path(library._name).read_bytes()[: -len(fingerprint())])
    program(tmp_path / "compiler", f'for out; do :; done; echo $out >> {tmp_path}/calls; cp {tmp_path}/ready.so "$out"')
    monkeypatch.setenv("CXX", str(tmp_path / "compiler"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "PREBUILT", tmp_path / "prebuilt")
    load_library.cache_clear()
    yield tmp_path
    load_library.cache_clear()


def fingerprint() -> bytes:
    folder = cache_folder()
    assert folder is not None
    return folder.name.encode()


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def cached(workshop: Path) -> Path:
    load_library.cache_clear()
    assert load_library() is not None
    return next((workshop / "cache").glob(f"mt-service/*/{BEST}.so"))


def calls(workshop: Path) -> int:
    return len((workshop / "calls").read_text().split())


@pytest.mark.parametrize("compiler", ["{}/compiler", "sh {}/compiler"])
def test_a_library_is_compiled_once(workshop: Path, compiler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", compiler.format(workshop))
    path = cached(workshop)
    assert cached(workshop) == path and calls(workshop) == 1
    assert str(path) not in (workshop / "calls").read_text(), "it is renamed when it is whole"
    assert [file.name for file in path.parent.iterdir()] == [path.name], "nothing is left beside it"


def test_processes_that_start_together_compile_it_once(workshop: Path) -> None:
    """The second waits for the lock, and then finds the library."""
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: build.compile_library(fitting_targets()[0], workshop / "cache"), range(2))
    assert first == second and calls(workshop) == 1


@pytest.mark.parametrize("cache", ["", "/dev/null/x", "relative"])
def test_a_prebuilt_library_is_taken_first(
    workshop: Path, cache: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if cache:
        monkeypatch.setenv("XDG_CACHE_HOME", cache)
        assert list(find_libraries()) == []
    assert main([]) == 0
    assert sorted(path.stem for path in (workshop / "prebuilt").iterdir()) == sorted(HERE)
    assert capsys.readouterr().out.startswith(f"{workshop}/prebuilt: ")
    library = load_library()
    assert library is not None and Path(library._name).parent == workshop / "prebuilt"
    assert not (workshop / "cache").exists()


@pytest.mark.parametrize(
    ("cpuinfo", "machine", "expected"),
    [
        ("processor\t: 0\nFeatures\t: fp asimd asimddp\n", "aarch64", ["dotprod", "plain"]),
        ("processor\t: 0\nFeatures\t: fp asimd\n", "aarch64", ["plain"]),
        ("flags\t\t: avx2 fma bmi1 bmi2 f16c movbe sse\n", "x86_64", ["avx2", "plain"]),
        ("", "x86_64", ["plain"]),
    ],
)
def test_the_targets_of_a_processor(cpuinfo: str, machine: str, expected: list[str]) -> None:
    assert [target.name for target in fitting_targets(machine, cpuinfo)] == expected


@pytest.mark.parametrize("damage", ["empty", "half", "text", "missing tail", "other sources"])
def test_a_damaged_library_is_made_again(workshop: Path, damage: str) -> None:
    path = cached(workshop)
    whole, tail = path.read_bytes(), len(fingerprint())
    damages = {
        "empty": b"",
        "half": whole[: len(whole) // 2],
        "text": b"not a library\n" * 5,
        "missing tail": whole[:-tail],
        "other sources": whole[:-tail] + b"0" * tail,
    }
    path.unlink()  # and not overwritten, for it is loaded
    path.write_bytes(damages[damage])
    assert cached(workshop) == path and path.read_bytes() == whole
    assert calls(workshop) == 2


@pytest.mark.skipif(COMPILER is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("change", [-1, 1, None])
def test_a_library_with_another_interface_is_not_used(workshop: Path, change: int | None) -> None:
    """It has all functions, but another number of the interface, or none."""
    functions = [f"void {name}() {{}}" for name in SIGNATURES if name != "mt_interface"]
    functions += [f"int mt_interface() {{ return {INTERFACE + change}; }}"] if change else []
    (workshop / "stale.cpp").write_text(f'extern "C" {{ {" ".join(functions)} }}\n')
    subprocess.run([str(COMPILER), "-shared", "-fPIC", workshop / "stale.cpp", "-o", workshop / "stale.so"], check=True)
    assert open_library(workshop / "stale.so") is None
    (workshop / "prebuilt").mkdir()
    (workshop / "prebuilt" / f"{BEST}.so").write_bytes((workshop / "stale.so").read_bytes() + fingerprint())
    library = load_library()
    assert library is not None and Path(library._name).is_relative_to(workshop / "cache")


FAILS = "#!/bin/sh\necho 'library.cpp:7: unknown type' >&2; exit 1\n"
DAMAGED = '#!/bin/sh\nfor out; do :; done; echo x > "$out"\n'  # as a library that needs a newer C++ library


@pytest.mark.parametrize("compiler", [None, "", "\0\1\2", FAILS, DAMAGED], ids=repr)
def test_without_a_compiler_there_is_no_library(
    workshop: Path, compiler: str | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = workshop / "other"
    if compiler is not None:
        path.write_text(compiler)
        path.chmod(0o700)
    monkeypatch.setenv("CXX", str(path))
    assert load_library() is None
    assert "models decode in plain torch, which is slower" in caplog.text
    if compiler == FAILS:
        assert f"CPU kernels for {BEST}: {path} -std=c++17" in caplog.text
        assert caplog.text.count("library.cpp:7: unknown type") == len(fitting_targets())


def test_without_a_compiler_torch_translates(
    workshop: Path, small_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "/nonexistent")
    translator = Translator.load(small_model, "cpu")
    assert isinstance(translator.engine, Engine)
    assert not isinstance(translator.engine.decoder, CompiledDecoder)
    assert translator.dtype == "float32" and translator.translate("The dog sees the cat.").text
    message = r"int8 on device cpu:\n  - cpu: the compiled kernels are not available.* C\+\+ compiler"
    with pytest.raises(ModelError, match=message):
        Translator.load(small_model, "cpu", dtype="int8")


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("target", HERE)
def test_compilers_have_no_warnings(tmp_path: Path, compiler: str, target: str) -> None:
    if shutil.which(compiler) is None or platform.machine() != "x86_64":
        pytest.skip(f"no {compiler}, or another processor")
    options = next(known.options for known in TARGETS if known.name == target)
    command = [compiler, *build.OPTIONS, *options, str(build.SOURCES / "library.cpp"), "-o", str(tmp_path / "out.so")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == ""


# Invalid input becomes an exception ---------------------------------------------------------------


def test_sources_that_cannot_be_used(library: ctypes.CDLL) -> None:
    batch = CpuBatch(compile_model(library, odd_model(max_length=16)))
    for source, problem in [
        ((), "a source is empty"),
        ((77, 3), "outside of the vocabulary"),
        ((-1, 3), "outside of the vocabulary"),
        ((5,) * 17, "longer than the model has positions"),
    ]:
        with pytest.raises(RuntimeError, match=problem):
            batch.join([(5, 3), source], [search_params(BEAM, 2)] * 2)
    for beams in (0, 65536):
        with pytest.raises(RuntimeError, match="beams must be from 1 to 65535"):
            batch.join([(5, 3)], [scores_only(beams)])
    batch.join([(5,) * 16], [search_params(BEAM, 16)])
    with pytest.raises(RuntimeError, match="outside of the vocabulary"):
        batch.logits([2, 2, 2, 77])
    assert np.isfinite(batch.logits([2] * 4)).all()


def test_an_invalid_request_fails_alone(library: ctypes.CDLL) -> None:
    sources: list[Ids] = [(5, 3), (), (6, 99, 3), (7, 3), (8, 3)]
    requests = [Request(id, source, BEAM, (99,) if id == 4 else ()) for id, source in enumerate(sources)]
    results = drain(Engine(CompiledDecoder(compile_model(library, odd_model()))), requests)
    assert [id for id in range(5) if not results[id].problem] == [0, 3]
    assert "a source is empty" in results[1].problem and "vocabulary" in results[2].problem


def test_weights_that_do_not_fit(library: ctypes.CDLL) -> None:
    model = odd_model()
    weights = dict(with_positions(to_arrays(model.state_dict()), model.config))
    del weights["decoder.layers.1.feed_forward.inner.bias"]
    with pytest.raises(RuntimeError, match=r"decoder\.layers\.1\.feed_forward\.inner\.bias is missing"):
        CpuModel(library, model.config, weights, (0, 1, 2, 3), False)
    weights["decoder.layers.1.feed_forward.inner.bias"] = np.zeros(41, np.float32)
    with pytest.raises(RuntimeError, match="another shape"):
        CpuModel(library, model.config, weights, (0, 1, 2, 3), False)


def test_memory_that_is_exhausted_is_a_problem_of_one_request(library: ctypes.CDLL) -> None:
    code = """
import resource
from mt.decoding.options import SearchOptions
from mt.engine.backends.cpu import CompiledDecoder
from mt.engine.engine import Engine
from mt.engine.requests import Request
from mt.kernels.library import load_library
from tests.decoding.reference import drain
from tests.kernels.conftest import compile_model, odd_model
engine = Engine(CompiledDecoder(compile_model(load_library(), odd_model())))
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (300 << 20), used + (300 << 20)))
requests = [Request(id, (5, 3), SearchOptions(beam_size=beams)) for id, beams in enumerate([2, 20_000, 3])]
for id, result in sorted(drain(engine, requests).items()):
    print(id, len(result.hypotheses), result.problem)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "0 1 \n1 0 RuntimeError: std::bad_alloc\n2 1 \n"


# Batches ------------------------------------------------------------------------------------------


def begun(model: CpuModel, sources: list[Ids]) -> CpuBatch:
    batch = CpuBatch(model)
    batch.join(sources, [search_params(BEAM, len(source)) for source in sources])
    return batch


def test_models_of_other_sizes_take_turns_in_one_thread(library: ctypes.CDLL) -> None:
    """They share its buffers, in which their rows lie differently."""
    sizes = [(24, 40), (128, 192), (8, 200), (64, 64)]
    plain = [odd_model(d_model=one, d_ff=other) for one, other in sizes]
    models = [compile_model(library, model, int8) for int8 in (False, True) for model in plain]
    expected = [translate(model, some_sources(6)) for model in models]
    batches = [begun(model, some_sources(6)) for model in models]
    for _ in range(40):
        done = [len(batch.advance()) for batch in batches]
    assert done == [6] * len(models)
    assert [batch.results(range(6)) for batch in batches] == expected


@pytest.mark.parametrize("int8", [False, True])
def test_several_steps_end_where_a_sentence_is_finished(library: ctypes.CDLL, int8: bool) -> None:
    model = compile_model(library, odd_model(), int8)
    batch, other, third = (begun(model, some_sources(5)) for _ in range(3))
    done = batch.advance(1000)
    for _ in range(batch.steps - 1):
        assert other.advance() == []
    assert third.advance(batch.steps - 1) == [] and third.steps == batch.steps - 1
    assert other.advance() == third.advance(50) == done and done
    assert other.steps == third.steps == batch.steps
    assert other.results(done) == third.results(done) == batch.results(done)
