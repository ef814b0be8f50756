"""Helper threads of a model: the results stay the same, and the threads end with the model."""

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep

import pytest

from mt.decoding.options import SearchOptions
from mt.kernels.library import CpuBatch, CpuModel
from tests.kernels.conftest import compile_model, odd_model, some_sources, translate

GREEDY, BEAM = (SearchOptions(beam_size=beams, max_length_factor=1.0, max_length_offset=6) for beams in (1, 4))
PATIENCE = 60  # seconds until a test that waits gives up


def large_model(library: ctypes.CDLL, int8: bool = True, threads: int = 1) -> CpuModel:
    """Return a model whose products are so large that they are split."""
    model = compile_model(library, odd_model(vocabulary=900, d_model=136, d_ff=520, heads=2), int8)
    model.use_threads(threads)
    return model


def thread_count() -> int:
    return len(os.listdir("/proc/self/task"))


@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("options", [GREEDY, BEAM])
def test_helpers_do_not_change_a_result(target_library: ctypes.CDLL, int8: bool, options: SearchOptions) -> None:
    sources = some_sources(12, vocabulary=900)
    expected = translate(large_model(target_library, int8), sources, options)
    for threads in (2, 4):
        model = large_model(target_library, int8, threads)
        assert [translate(model, [source], options)[0] for source in sources] == expected
        assert translate(model, sources, options) == expected


def test_helpers_start_at_the_first_product_and_end_with_the_model(library: ctypes.CDLL) -> None:
    source = some_sources(1, vocabulary=900, longest=20, seed=5)
    before = thread_count()
    model = large_model(library, threads=3)
    assert thread_count() == before
    translate(model, source, BEAM)
    assert thread_count() == before + 2
    model.use_threads(1)
    translate(model, source, BEAM)
    assert thread_count() == before
    model.use_threads(4)
    translate(model, source, BEAM)
    assert thread_count() == before + 3
    del model
    assert thread_count() == before


def test_idle_helpers_sleep(library: ctypes.CDLL) -> None:
    model = large_model(library, threads=3)
    others = set(os.listdir("/proc/self/task"))
    translate(model, some_sources(1, vocabulary=900), BEAM)
    helpers = set(os.listdir("/proc/self/task")) - others
    assert helpers

    def states() -> set[str]:
        texts = [Path(f"/proc/self/task/{helper}/stat").read_text(encoding="utf-8") for helper in helpers]
        return {text.rpartition(")")[2].split()[0] for text in texts}

    until = monotonic() + PATIENCE
    while states() != {"S"} and monotonic() < until:
        sleep(0.01)
    assert states() == {"S"}


def test_two_batches_do_not_share_the_helpers(library: ctypes.CDLL) -> None:
    before = thread_count()
    model = large_model(library, threads=2)
    other = CpuBatch(model)
    sources = some_sources(30, vocabulary=900)
    expected = [translate(model, [source], BEAM) for source in sources]
    assert thread_count() == before
    del other
    with ThreadPoolExecutor(3) as pool:
        for _ in range(3):
            assert list(pool.map(lambda source: translate(model, [source], BEAM), sources)) == expected
