"""How a device is chosen on a machine with GPUs, which the functions of torch that answer for them play here."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from mt.checkpoint import LoadedModel, load_model
from mt.cli.build import stage_device
from mt.engine import devices as module
from mt.engine.backends import cuda
from mt.engine.backends import torch as reference
from mt.engine.backends.protocol import Dtype
from mt.engine.devices import has_bfloat16, select_device, why_no_gpu
from mt.errors import ModelError
from mt.kernels.cuda.graphs import Eager


@pytest.fixture
def chosen(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[torch.device]]:
    """Two GPUs; the devices that became the current one."""
    devices: list[torch.device] = []

    def zeros(size: int, device: torch.device) -> Tensor:
        if device.type != "cuda":
            raise RuntimeError(f"PyTorch is not linked with support for {device.type} devices")
        if (device.index or 0) > 1:
            raise RuntimeError("invalid device ordinal")
        assert device.index is None or device in devices, "a context would open on the first GPU"
        return torch.ones(size)

    monkeypatch.setattr(module, "has_driver", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "set_device", devices.append)
    monkeypatch.setattr(torch, "zeros", zeros)
    before = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(True)
    yield devices
    torch.backends.cuda.enable_cudnn_sdp(before)


@pytest.mark.parametrize(
    ("name", "rank", "device", "contexts"),
    [
        ("cpu", None, "cpu", set()),
        ("cpu", 1, "cpu", set()),
        ("auto", None, "cuda", set()),
        ("cuda", None, "cuda", set()),
        ("cuda:1", None, "cuda:1", {"cuda:1"}),
        ("auto", 1, "cuda:1", {"cuda:1"}),
        ("cuda", 1, "cuda:1", {"cuda:1"}),
    ],
)
def test_a_process_opens_a_context_only_on_its_gpu(
    chosen: list[torch.device], name: str, rank: int | None, device: str, contexts: set[str]
) -> None:
    assert select_device(name, rank) == device
    assert set(map(str, chosen)) == contexts
    assert torch.backends.cuda.cudnn_sdp_enabled() == (device == "cpu")


VOLTA = "CUDA error: no kernel image is available for execution on the device"


def test_a_gpu_without_kernels_in_torch_is_not_selected(
    chosen: list[torch.device], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def zeros(size: int, device: torch.device) -> Tensor:
        raise torch.AcceleratorError(f"{VOLTA}\nSearch for `cudaErrorNoKernelImageForDevice'")

    monkeypatch.setattr(torch, "zeros", zeros)
    with caplog.at_level(logging.WARNING):
        assert select_device("auto") == "cpu"
    assert VOLTA in caplog.text
    with pytest.raises(ModelError, match=f"device 'cuda' cannot be used .{VOLTA}"):
        select_device("cuda")


@pytest.mark.parametrize(("name", "device"), [("auto", "cuda"), ("cuda", "cuda"), ("cuda:1", "cuda:1"), ("cpu", "cpu")])
def test_a_build_leaves_the_gpu_to_its_stages(chosen: list[torch.device], name: str, device: str) -> None:
    assert stage_device(name) == device and not chosen


@pytest.mark.parametrize("name", ["mps", "meta", "xpu", "toaster", "cuda:2"])
def test_devices_that_cannot_be_used(chosen: list[torch.device], name: str) -> None:
    with pytest.raises(ModelError, match=f"'{name}' cannot be used .*; accepted: auto, cpu, cuda, cuda:N") as refused:
        select_device(name)
    assert "ipu" not in str(refused.value), "torch's own list of devices"


OLD = "The NVIDIA driver on your system is too old (found version 12000). Please update your GPU driver"
NONE = "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU"


@pytest.mark.parametrize(("reason", "warned"), [(OLD, True), (NONE, False)])
def test_a_driver_that_is_too_old_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, reason: str, warned: bool
) -> None:
    def init() -> None:
        raise RuntimeError(f"{reason}\nsecond line")

    monkeypatch.setattr(module, "has_driver", lambda: True)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "init", init)
    assert why_no_gpu() == reason
    with caplog.at_level(logging.WARNING):
        assert select_device("auto") == "cpu"
    assert (reason in caplog.text) == warned


@pytest.fixture
def loaded(small_model: Path) -> LoadedModel:
    return load_model(small_model)


@pytest.mark.parametrize(("able", "dtype"), [(True, Dtype.BFLOAT16), (False, Dtype.FLOAT32)])
def test_a_gpu_without_bfloat16_decodes_in_float32(
    monkeypatch: pytest.MonkeyPatch, loaded: LoadedModel, able: bool, dtype: Dtype
) -> None:
    asked: list[bool] = []

    def supported(including_emulation: bool) -> bool:
        asked.append(including_emulation)
        return able

    monkeypatch.setattr(torch.cuda, "is_bf16_supported", supported)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1 << 30, 1 << 30))
    monkeypatch.setattr(cuda, "CudaGraphs", lambda device: Eager(torch.device("cpu")))
    gpu = torch.device("cuda")
    assert has_bfloat16(gpu) == able and not has_bfloat16(torch.device("cpu"))
    for load in (cuda.load_backend, reference.load_backend):
        backend = load([loaded], "cuda", Dtype.AUTO)
        assert backend.dtype == dtype
        assert {parameter.dtype for parameter in loaded.model.parameters()} == {getattr(torch, dtype)}
        assert backend.threads == 2 and backend.limits.cells is not None
    assert asked and not any(asked)
