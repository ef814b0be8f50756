"""Captures of CUDA graphs, with doubles for what needs a GPU; the compiled kernels belong to their sources."""

import gzip
import re
from contextlib import nullcontext
from hashlib import sha256

import pytest
import torch

from mt.kernels.cuda.compiled import FOLDER
from mt.kernels.cuda.graphs import CudaGraphs


class Calls(list[str]):
    """The calls of torch in their order. Ending a capture that failed raises an error of its own, as CUDA does."""

    failed = False

    def capture_begin(self, pool: object, capture_error_mode: str) -> None:
        self.append("begin")

    def capture_end(self) -> None:
        self.append("end")
        if self.failed:
            raise RuntimeError("operation failed due to a previous error during capture")

    def wait_stream(self, other: object) -> None:
        self.append("wait")


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Calls:
    calls = Calls()
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: (0, 0))
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: calls)
    monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: calls)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: calls)
    monkeypatch.setattr(torch.cuda, "current_blas_handle", lambda: calls.append("handle"))
    return calls


def test_the_blas_handle_of_the_thread_exists_before_the_capture(calls: Calls) -> None:
    CudaGraphs(torch.device("cpu")).capture(lambda: calls.append("work"))
    assert calls[-4:] == ["handle", "begin", "work", "end"]


def test_a_capture_that_fails_reports_its_cause(calls: Calls) -> None:
    def work() -> None:
        calls.failed = True
        raise ValueError("the host reads a tensor")

    graphs = CudaGraphs(torch.device("cpu"))
    with pytest.raises(ValueError, match="the host reads a tensor"):
        graphs.capture(work)
    assert calls[-1] == "end"


def test_a_warm_up_that_fails_is_waited_for(calls: Calls) -> None:
    graphs = CudaGraphs(torch.device("cpu"))
    calls.clear()
    with pytest.raises(ZeroDivisionError):
        graphs.warm_up(lambda: calls.append("work") or 1 // 0)  # type: ignore[func-returns-value]
    assert calls == ["wait", "work", "wait"]


@pytest.mark.parametrize("name", ["attention", "beam_step"])
def test_the_compiled_kernels_are_those_of_the_source(name: str) -> None:
    """scripts/compile_kernels.sh writes the digest of the source that it compiles."""
    source = (FOLDER / f"{name}.cu").read_bytes()
    assert (FOLDER / f"{name}.sha256").read_text().strip() == sha256(source).hexdigest()
    entries = re.findall(rb"\.entry (\w+)\(", gzip.decompress((FOLDER / f"{name}.ptx.gz").read_bytes()))
    assert len(entries) == {"attention": 6, "beam_step": 10}[name]
