"""What the GPU path computes on a GPU, against the CPU in float32, and how it behaves in bad conditions."""

import os
import subprocess
import sys
from collections.abc import Sequence
from random import Random
from threading import Thread
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from mt.config import ModelConfig, TrainingConfig
from mt.data.batching import make_batch
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.scorer import ModelScorer
from mt.distributed import World
from mt.engine.backends.cuda import GraphDecoder
from mt.engine.backends.protocol import BatchDecoder
from mt.engine.backends.static_batch import GraphLimits
from mt.engine.backends.torch import SearchDecoder
from mt.engine.engine import Engine
from mt.engine.requests import Request, Result
from mt.model.transformer import Transformer
from mt.training.loss import batch_loss, projected_cross_entropy, smoothed_cross_entropy
from mt.training.optimizer import optimizers, scaled_step
from mt.training.precision import WorkingCopy
from tests.decoding.reference import drain

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]
CPU, GPU = torch.device("cpu"), torch.device("cuda")
VOCABULARY = 2000
USUAL = SearchOptions(beam_size=4, max_length_factor=1.0)


def transformer(device: torch.device, dtype: torch.dtype = torch.float32, norm: str = "pre") -> Transformer:
    """A random model, the same in each call, with heads of 64 numbers."""
    torch.manual_seed(0)
    numbers = {"encoder_layers": 2, "decoder_layers": 3, "d_model": 256, "d_ff": 512, "heads": 4, "max_length": 128}
    config = ModelConfig.model_validate({**numbers, "norm": norm, "dropout": 0.0})
    return Transformer(config, VOCABULARY).eval().to(dtype).to(device)


def requests(
    count: int,
    options: SearchOptions = USUAL,
    longest: int = 30,
    seed: int = 1,
) -> list[Request]:
    random = Random(seed)
    sources = [[random.randrange(4, VOCABULARY) for _ in range(random.randint(1, longest))] for _ in range(count)]
    return [Request(number, (*source, 3), options) for number, source in enumerate(sources)]


def translate(decoder: BatchDecoder, asked: Sequence[Request]) -> list[Result]:
    results = drain(Engine(decoder), asked)
    return [results[request.id] for request in asked]


def graphs(dtype: torch.dtype, norm: str = "pre") -> GraphDecoder:
    return GraphDecoder(transformer(GPU, dtype, norm), SpecialIds(), GPU, limits=GraphLimits(rows=64))


SEARCHES = {
    "beam": USUAL,
    "greedy": SearchOptions(beam_size=1, max_length_factor=1.0),
    "constraints": SearchOptions(beam_size=4, max_length_factor=1.0, no_repeat_ngram=2, min_length=5),
}


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("search", SEARCHES)
def test_graphs_in_float32_find_the_translations_of_the_cpu(norm: str, search: str) -> None:
    """At most one of 24 sentences may differ, by a tie; the scores agree within 1e-3."""
    asked = requests(24, SEARCHES[search])
    scorer: ModelScorer[Any] = ModelScorer(transformer(CPU, norm=norm))
    expected = translate(SearchDecoder(scorer), asked)
    results = translate(graphs(torch.float32, norm), asked)
    pairs = [(a.hypotheses[0], b.hypotheses[0]) for a, b in zip(results, expected, strict=True)]
    assert sum(a.tokens != b.tokens for a, b in pairs) <= 1
    assert max(abs(a.score - b.score) for a, b in pairs) < 1e-3


def relative_error(result: Tensor, exact: Tensor) -> float:
    return float((result.double().cpu() - exact).norm() / exact.norm())


@pytest.mark.parametrize("rows", [1, 4, 300])
def test_products_in_bfloat16(rows: int) -> None:
    """The product with a float32 result, and the one with bias and ReLU, against float64."""
    torch.manual_seed(rows)
    x = torch.randn(rows, 512, device=GPU).bfloat16()
    weight, bias = torch.randn(32000, 512, device=GPU).bfloat16(), torch.randn(32000, device=GPU).bfloat16()
    exact = x.double().cpu() @ weight.double().cpu().t()
    with torch.inference_mode():
        assert relative_error(torch.mm(x, weight.t(), out_dtype=torch.float32), exact) < 1e-4
    activated = torch._addmm_activation(bias, x, weight.t())
    assert relative_error(activated, (exact + bias.double().cpu()).relu()) < 1e-2


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-4), (torch.bfloat16, 3e-2)])
def test_the_gradient_of_the_loss(dtype: torch.dtype, bound: float) -> None:
    torch.manual_seed(0)
    states, weight, labels = torch.randn(3000, 512), torch.randn(32000, 512) / 20, torch.randint(0, 32000, (3000,))
    x, w = states.to(GPU, dtype).requires_grad_(), weight.to(GPU, dtype).requires_grad_()
    torch.autograd.backward(projected_cross_entropy(x, w, labels.to(GPU), 0.1))
    exact = x.detach().double().cpu()[:500].requires_grad_()
    logits = exact @ w.detach().double().cpu().t()
    torch.autograd.backward(smoothed_cross_entropy(logits, labels[:500], 0.1))
    assert x.grad is not None and exact.grad is not None
    assert relative_error(x.grad[:500], exact.grad) < bound


def losses(device: torch.device, precision: str, optimizer: str) -> list[float]:
    """Return the loss of each of three updates."""
    model = transformer(device).train()
    working = WorkingCopy(model, precision)
    steppers = optimizers(model, TrainingConfig.model_validate({"optimizer": optimizer}), working.dtype, World())
    made = []
    for seed in range(3):
        random = np.random.default_rng(seed)
        pairs = [[*random.integers(4, VOCABULARY, random.integers(3, 30)).tolist(), 3] for _ in range(40)]
        batch = make_batch(pairs, [pair[:-1] for pair in pairs], np.arange(40)).to(device)
        working.refresh()
        model.zero_grad(set_to_none=True)
        loss = batch_loss(working.model, batch, 0.1) / len(batch.label_indices)
        torch.autograd.backward(loss)
        working.collect()
        for stepper in steppers:
            scaled_step(stepper, 1e-3, torch.tensor(1.0, device=device))
        made.append(loss.item())
    return made


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_updates_equal_those_of_the_cpu(optimizer: str) -> None:
    expected = losses(CPU, "float32", optimizer)
    assert losses(GPU, "float32", optimizer) == pytest.approx(expected, rel=2e-3)
    assert losses(GPU, "bfloat16", optimizer) == pytest.approx(expected, rel=3e-2)


def test_nccl_sums_over_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29577", "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    dist.init_process_group("nccl")
    try:
        values = torch.ones(4, device=GPU)
        dist.all_reduce(values)
        assert values.tolist() == [1, 1, 1, 1]
    finally:
        dist.destroy_process_group()


def test_a_program_is_captured_in_another_thread_than_its_first_run() -> None:
    decoder, results = graphs(torch.bfloat16), []
    for _ in range(4):
        thread = Thread(target=lambda: results.append(translate(decoder, requests(8))))
        thread.start()
        thread.join()
    assert len(results) == 4 and all(result.hypotheses for part in results for result in part)


def test_memory_that_another_program_takes() -> None:
    """All but 400 MB are taken after the decoder was made."""
    decoder = GraphDecoder(transformer(GPU, torch.bfloat16), SpecialIds(), GPU)
    taken = torch.empty(torch.cuda.mem_get_info()[0] - (400 << 20), dtype=torch.uint8, device=GPU)
    assert all(result.hypotheses for result in translate(decoder, requests(64)))
    del taken
    torch.cuda.empty_cache()


BROKEN = """
import torch
from tests.engine.backends.test_gpu import graphs, requests, translate

decoder = graphs(torch.bfloat16)
torch.nn.functional.embedding(torch.full((4,), 10**6, device="cuda"), torch.zeros(4, 4, device="cuda"))
try:
    translate(decoder, requests(4))
except torch.AcceleratorError:
    print("AcceleratorError")
"""

CONTAINER = """
import ctypes, torch

ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE, as the workers of the service
x = torch.ones(2, device="cuda")
torch.cuda.CUDAGraph()
print((x + x).sum().item(), torch.ones(3).pin_memory().is_pinned())
"""


def test_a_failed_kernel_ends_the_engine() -> None:
    """The service replaces a worker that raises AcceleratorError; the error stays with the process."""
    done = subprocess.run([sys.executable, "-c", BROKEN], capture_output=True, text=True)
    assert done.stdout.strip() == "AcceleratorError", done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_the_user_of_the_container_without_core_dumps() -> None:
    command = ["setpriv", "--reuid", "10001", "--regid", "10001", "--clear-groups", sys.executable, "-c", CONTAINER]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "HOME": "/tmp"})
    assert done.stdout.split() == ["4.0", "True"], done.stderr
