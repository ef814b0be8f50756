"""int8 is chosen only where it is shown to lose nothing, and refused where it does; the limit on torch's threads."""

import ctypes
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from mt import Translator
from mt.checkpoint import LoadedModel, load_model, save_calibration, save_model
from mt.decoding.scorer import ModelScorer
from mt.description import CalibrationLoss, CalibrationPair
from mt.engine.backends import cpu, cuda
from mt.engine.backends.calibration import mean_log_probability
from mt.engine.backends.cpu import CompiledDecoder, compile_model, store_loss
from mt.engine.backends.one_thread import one_torch_thread
from mt.engine.backends.protocol import Backend, Dtype
from mt.engine.backends.registry import load_backend
from mt.engine.backends.torch import SearchDecoder
from mt.engine.engine import Engine
from mt.errors import ModelError
from mt.kernels.library import CpuModel
from mt.model.layers import DecoderLayer
from mt.scoring.pairs import score_targets

FROZEN = Path(__file__).resolve().parents[2] / "frozen"  # a small model that was trained


def pairs() -> list[CalibrationPair]:
    lines = (FROZEN / "lines.tsv").read_text(encoding="utf-8").splitlines()
    texts = (line.split("\t") for line in lines)
    return [CalibrationPair(direction="en-de", source=source, target=target) for source, target in texts]


def with_calibration(folder: Path, outlier: float = 0) -> Path:
    """A copy of the frozen model with a calibration text; one number in it may be an outlier that changes nothing."""
    loaded = load_model(FROZEN / "model")
    if outlier:
        layer = loaded.model.decoder.layers[0]
        assert isinstance(layer, DecoderLayer)
        with torch.no_grad():
            layer.feed_forward.inner.weight[0] = 0
            layer.feed_forward.inner.bias[0] = outlier
            layer.feed_forward.outer.weight[:, 0] = 0
    save_model(folder, replace(loaded, weights=loaded.model, calibration=tuple(pairs())), "# test\n")
    return folder


def test_an_outlier_is_noticed(library: ctypes.CDLL, tmp_path: Path) -> None:
    """Beside one huge number the others of its row are rounded to nothing."""
    folder = with_calibration(tmp_path / "model", outlier=1e5)
    translator = Translator.load(folder, "cpu")
    assert translator.dtype == "float32"
    texts = [pair.source for pair in pairs()]
    both = translator.translate_many(texts), Translator(load_model(folder)).translate_many(texts)
    assert all(found.text == expected.text for found, expected in zip(*both, strict=True))
    with pytest.raises(ModelError, match=r"calibration text by \d+\.\d{3} nats .* at most 0\.01") as caught:
        Translator.load(folder, "cpu", dtype="int8")
    assert float(str(caught.value).split(" nats")[0].split()[-1]) > 0.05


@pytest.mark.parametrize(("outlier", "chosen"), [(0, Dtype.INT8), (1e5, Dtype.FLOAT32)])
def test_a_stored_comparison_is_not_made_again(
    library: ctypes.CDLL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, outlier: float, chosen: Dtype
) -> None:
    """Each process would pack the model twice and decode the text twice, to find the same again."""
    folder, packed = with_calibration(tmp_path / "model", outlier), list[bool]()

    def noted(loaded: LoadedModel, int8: bool) -> CpuModel:
        packed.append(int8)
        return compile_model(loaded, int8)

    monkeypatch.setattr(cpu, "compile_model", noted)
    assert load_backend([load_model(folder)], "cpu", Dtype.AUTO).dtype is chosen  # from an earlier release
    assert packed == [False, True]
    store_loss(folder)
    check = load_model(folder).int8_check
    assert isinstance(check, CalibrationLoss) and check.sentences == len(pairs())
    packed.clear()
    assert load_backend([load_model(folder)], "cpu", Dtype.AUTO).dtype is chosen
    assert packed == [chosen is Dtype.INT8]
    if chosen is Dtype.FLOAT32:
        with pytest.raises(ModelError, match=r"calibration text by \d+\.\d{3} nats"):
            load_backend([load_model(folder)], "cpu", Dtype.INT8)
    save_calibration(folder, pairs()[:3])
    assert load_model(folder).int8_check is None, "it was measured on other text"


@pytest.mark.parametrize("direction", ["en-de", "fr-de"])
def test_calibration_texts_of_any_length(library: ctypes.CDLL, several_directions: Path, direction: str) -> None:
    loaded, long = load_model(several_directions), "the dog sees the cat " * 100
    texts = [("", ""), (long, "the dog"), ("the dog", long), ("The dog sees the cat.", "The man finds the house.")]
    calibration = tuple(CalibrationPair(direction=direction, source=one, target=other) for one, other in texts)
    pairs = [loaded.encode_pair(pair) for pair in calibration]
    sources, targets = zip(*((source, target[:-1]) for source, target in pairs), strict=True)
    scores = score_targets(ModelScorer(loaded.model), sources, targets)
    expected = sum(each.log_probability for each in scores) / sum(len(target) for _, target in pairs)
    found = mean_log_probability(compile_model(loaded, int8=False), pairs)
    assert found == pytest.approx(expected, abs=1e-4)


def test_what_decodes(library: ctypes.CDLL, small_model: Path) -> None:
    for dtype in Dtype:
        backend = load_backend([load_model(small_model)], "cpu", dtype)
        assert backend.dtype is (Dtype.FLOAT32 if dtype is Dtype.AUTO else dtype)
        assert isinstance(backend.decoder, SearchDecoder if dtype is Dtype.BFLOAT16 else CompiledDecoder)


def test_a_backend_can_be_chosen(small_model: Path) -> None:
    slow = Translator.load(small_model, "cpu", dtype="float32", backend="torch")
    assert isinstance(slow.engine, Engine) and isinstance(slow.engine.decoder, SearchDecoder)
    assert slow.translate("The dog sees the cat.").text
    rows: list[tuple[dict[str, Any], str]] = [
        ({"backend": "cuda"}, "cuda: device is cpu; accepted: cuda"),
        ({"backend": "gpu"}, "backend is 'gpu'; accepted: auto, cpu, cuda, torch"),
        ({"dtype": "int4"}, "dtype is 'int4'; accepted: auto, float32, bfloat16, int8"),
    ]
    for options, problem in rows:
        with pytest.raises(ModelError, match=problem):
            Translator.load(small_model, "cpu", **options)


def test_a_backend_that_cannot_capture_is_reported_and_left_out(
    small_model: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def load(*_: object) -> Backend:
        raise error

    monkeypatch.setattr(cuda, "load_backend", load)
    loaded = load_model(small_model)
    error = RuntimeError("CUDA error: operation not permitted when stream is capturing")
    with caplog.at_level(logging.WARNING):
        backend = load_backend([loaded], "cpu", Dtype.BFLOAT16)
    assert isinstance(backend.decoder, SearchDecoder)
    assert "backend cuda cannot be used" in caplog.text and str(error) in caplog.text
    with pytest.raises(RuntimeError, match="capturing"):
        load_backend([loaded], "cpu", Dtype.BFLOAT16, backend="cuda")
    for error in (torch.OutOfMemoryError("CUDA out of memory"), torch.AcceleratorError("CUDA error: unspecified")):
        with pytest.raises(type(error)):
            load_backend([loaded], "cpu", Dtype.BFLOAT16)


@pytest.fixture
def threads() -> Iterator[int]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield 3
    torch.set_num_threads(before)


def entered() -> ExitStack:
    use = ExitStack()
    use.enter_context(one_torch_thread())
    return use


def left(use: ExitStack) -> int:
    use.close()
    return torch.get_num_threads()


@pytest.mark.parametrize("first_leaves_first", [True, False])
def test_uses_of_one_torch_thread_that_overlap(threads: int, first_leaves_first: bool) -> None:
    with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:
        users = [(thread, thread.submit(entered).result()) for thread in (one, other)]
        (early, first), (late, second) = users if first_leaves_first else users[::-1]
        assert early.submit(left, first).result() == threads
        assert late.submit(torch.get_num_threads).result() == 1
        assert late.submit(left, second).result() == threads
    assert left(entered()) == threads
