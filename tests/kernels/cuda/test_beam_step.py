"""The fused kernel of beam search, compiled for the CPU, finds what the plain operations find."""

import ctypes
import shutil
import subprocess
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from mt.decoding.constraints import Features
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.sampling import Filters
from mt.engine.backends.cuda import GraphDecoder
from mt.engine.backends.static_batch import GraphLimits, ProgramKey, StaticBatch
from mt.kernels.cuda.fused import BeamStep, beam_step_source
from mt.kernels.cuda.graphs import Eager
from mt.kernels.cuda.static_decoder import Shape, StaticDecoder
from tests.engine.backends.test_cuda import CPU, PLAIN, ask, assert_same, begin, plain, run, sources, tiny
from tests.simulated_device import SimulatedDevice

THREADS = 2
COMPILER = shutil.which("g++")


@pytest.fixture(scope="module")
def beam_step(tmp_path_factory: pytest.TempPathFactory) -> BeamStep:
    if COMPILER is None:
        pytest.skip("needs g++")
    folder = tmp_path_factory.mktemp("kernel")
    (folder / "kernel.cu").write_text(beam_step_source(THREADS))
    shim, library = Path(__file__).with_name("beam_step_shim.cpp"), folder / "kernel.so"
    flags = ["-std=c++20", "-O1", "-shared", "-fPIC", "-pthread", f"-DTHREADS={THREADS}", f"-I{folder}"]
    subprocess.run([COMPILER, *flags, str(shim), "-o", str(library)], check=True)
    function = ctypes.CDLL(str(library)).run

    def call(slots: int, arguments: Sequence[Tensor | int]) -> None:
        function(slots, *(ctypes.c_void_p(a.data_ptr()) if isinstance(a, Tensor) else a for a in arguments))

    return call


@pytest.mark.parametrize(
    "options",
    [
        PLAIN,
        replace(PLAIN, n_best=1, length_penalty=0.6, beam_size=2),
        replace(PLAIN, max_length_offset=1, beam_size=8),
    ],
)
def test_the_kernel_finds_what_the_plain_path_finds(beam_step: BeamStep, options: SearchOptions) -> None:
    model = tiny()
    requests = ask([(source, options, ()) for source in sources(4)])
    decoder = GraphDecoder(model, SpecialIds(), CPU, limits=GraphLimits(rows=32))
    calls = Counter[int]()

    def counted(slots: int, arguments: Sequence[Tensor | int]) -> None:
        calls[slots] += 1
        beam_step(slots, arguments)

    decoder.pool.beam_step = counted
    found = run(decoder, [requests[:1], requests[1:]], gap=4)
    assert calls.total() > 10
    for number, expected in enumerate(plain(model, requests)):
        assert_same(found[number], expected)


def test_the_kernel_leaves_constraints_to_the_plain_operations(beam_step: BeamStep) -> None:
    model = tiny()
    requests = ask([(source, replace(PLAIN, min_length=5, no_repeat_ngram=2), ()) for source in sources(2)])
    decoder = GraphDecoder(model, SpecialIds(), CPU, limits=GraphLimits(rows=32))
    decoder.pool.beam_step = beam_step
    found = run(decoder, [requests], gap=1)
    for number, expected in enumerate(plain(model, requests)):
        assert_same(found[number], expected)


def test_not_a_number_stays_with_its_sentence(beam_step: BeamStep) -> None:
    """NaN ends a sentence without results, as on the plain path."""
    model = tiny()
    decoder = GraphDecoder(model, SpecialIds(), CPU, limits=GraphLimits(rows=32))
    decoder.pool.beam_step = beam_step
    requests = ask([((5, 6, 3), PLAIN, ()), ((8, 9, 3), PLAIN, ())])
    batch = begin(decoder, requests)
    with torch.inference_mode():
        batch._waiting[0].cross[0].fill_(torch.nan)
    found: dict[int, list[Hypothesis]] = {}
    while len(found) < 2:
        places = batch.advance()
        found.update(zip(places, batch.results(places), strict=True))
    assert found[0] == []
    assert_same(found[1], plain(model, requests)[1])


@pytest.mark.parametrize(("norm", "most"), [("post", 80), ("pre", 81)])
def test_operations_of_a_step_with_the_kernel(norm: str, most: int) -> None:
    with SimulatedDevice() as simulated, torch.inference_mode():
        decoder = StaticDecoder(tiny(decoder_layers=6, norm=norm).to(simulated.device))
        static = StaticBatch(decoder, Shape(2, 4, 128, 128), True, SpecialIds(), Eager(simulated.device))

        def kernel(slots: int, arguments: Sequence[Tensor | int]) -> None:
            newest = arguments[3]
            assert isinstance(newest, Tensor)
            newest.zero_()

        static.beam_step = kernel
        features = Features(minimum=False, prefix=False, repetition=False, ngram=0)
        work = static.step(ProgramKey(2, 32, 32, features, Filters(sample=False, top_k=False, top_p=False)))
        simulated.reset()
        work()
        del simulated.operations["clone"]  # attention on a CPU returns another layout than on a GPU
        assert simulated.operations.total() == most and simulated.waits == []
