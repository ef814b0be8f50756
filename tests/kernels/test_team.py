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


def threads() -> set[str]:
    return set(os.listdir("/proc/self/task"))


def new_threads(before: set[str], expected: int) -> int:
    """Return the number of threads that were not there before: the system lists an ended one for a while."""
    until = monotonic() + PATIENCE
    while len(threads() - before) != expected and monotonic() < until:
        sleep(0.01)
    return len(threads() - before)


@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("options", [GREEDY, BEAM])
def test_helpers_do_not_change_a_result(target_library: ctypes.CDLL, int8: bool, options: SearchOptions) -> None:
    sources = some_sources(12, vocabulary=900)
    expected = translate(large_model(target_library, int8), sources, options)
    for count in (2, 4):
        model = large_model(target_library, int8, count)
        assert [translate(model, [source], options)[0] for source in sources] == expected
        assert translate(model, sources, options) == expected


def test_helpers_start_at_the_first_product_and_end_with_the_model(library: ctypes.CDLL) -> None:
    source = some_sources(1, vocabulary=900, longest=20, seed=5)
    before = threads()
    model = large_model(library, threads=3)
    assert not threads() - before
    for count in (3, 1, 4):
        model.use_threads(count)
        translate(model, source, BEAM)
        assert new_threads(before, count - 1) == count - 1
    del model
    assert new_threads(before, 0) == 0


def test_idle_helpers_sleep(library: ctypes.CDLL) -> None:
    model = large_model(library, threads=3)
    others = threads()
    translate(model, some_sources(1, vocabulary=900), BEAM)
    helpers = threads() - others
    assert helpers

    def states() -> set[str]:
        texts = [Path(f"/proc/self/task/{helper}/stat").read_text(encoding="utf-8") for helper in helpers]
        return {text.rpartition(")")[2].split()[0] for text in texts}

    until = monotonic() + PATIENCE
    while states() != {"S"} and monotonic() < until:
        sleep(0.01)
    assert states() == {"S"}


def test_two_batches_do_not_share_the_helpers(library: ctypes.CDLL) -> None:
    before = threads()
    model = large_model(library, threads=2)
    other = CpuBatch(model)
    sources = some_sources(30, vocabulary=900)
    expected = [translate(model, [source], BEAM) for source in sources]
    assert not threads() - before
    del other
    with ThreadPoolExecutor(3) as pool:
        for _ in range(3):
            assert list(pool.map(lambda source: translate(model, [source], BEAM), sources)) == expected
