"""What only a GPU can show: results against the CPU and torch, no waits, bounded memory, and bad conditions."""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from threading import Thread

import numpy as np
import pytest
import torch

from mt.config import ModelConfig, TrainingConfig
from mt.data.batching import make_batch
from mt.decoding.beam import BeamSearch
from mt.decoding.constraints import Features
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions, SpecialIds
from mt.distributed import World
from mt.engine.backends.cuda import GraphDecoder
from mt.engine.backends.protocol import BatchDecoder
from mt.engine.backends.static_batch import GraphLimits
from mt.engine.backends.static_search import StaticBeam, tables_of, with_tables
from mt.engine.devices import select_device
from mt.engine.engine import Engine
from mt.engine.requests import Request, Result
from mt.kernels.cuda.attention import KernelAttention, TorchAttention, static_attention
from mt.kernels.cuda.beam_step import beam_step
from mt.model.transformer import Transformer
from mt.training.loss import batch_loss, projected_cross_entropy, smoothed_cross_entropy
from mt.training.optimizer import optimizers, scaled_step
from mt.training.precision import WorkingCopy
from tests.decoding.reference import drain

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]
CPU, GPU = torch.device("cpu"), torch.device("cuda")
VOCABULARY = 2000
USUAL = SearchOptions(beam_size=4, max_length_factor=1.0)


def transformer(device: torch.device, dtype: torch.dtype = torch.float32) -> Transformer:
    """A random model, the same in each call, with heads of 64 numbers."""
    torch.manual_seed(0)
    numbers = {"encoder_layers": 2, "decoder_layers": 3, "d_model": 256, "d_ff": 512, "heads": 4, "max_length": 128}
    config = ModelConfig.model_validate({**numbers, "dropout": 0.0})
    return Transformer(config, VOCABULARY).eval().to(dtype).to(device)


def requests(count: int, options: SearchOptions = USUAL, longest: int = 30, seed: int = 1) -> list[Request]:
    random = Random(seed)
    sources = [[random.randrange(4, VOCABULARY) for _ in range(random.randint(1, longest))] for _ in range(count)]
    return [Request(number, (*source, 3), options) for number, source in enumerate(sources)]


def translate(decoder: BatchDecoder, asked: Sequence[Request]) -> list[Result]:
    results = drain(Engine(decoder), asked)
    return [results[request.id] for request in asked]


def graphs() -> GraphDecoder:
    return GraphDecoder(transformer(GPU, torch.bfloat16), SpecialIds(), GPU, limits=GraphLimits(rows=64))


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
    assert (x.grad[:500].double().cpu() - exact.grad).norm() / exact.grad.norm() < bound


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


def test_a_program_is_captured_in_another_thread_than_its_first_run() -> None:
    decoder, results = graphs(), []
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

decoder = graphs()
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


@pytest.fixture(scope="module")
def model() -> Transformer:
    """A random model on a GPU without cuDNN's attention, as in production."""
    select_device("cuda")
    return transformer(GPU, torch.bfloat16)


def run(decoder: GraphDecoder, asked: Sequence[Request]) -> list[list[Hypothesis]]:
    batch = decoder.begin(asked)
    found: dict[int, list[Hypothesis]] = {}
    while len(found) < len(asked):
        places = batch.advance()
        found.update(zip(places, batch.results(places), strict=True))
    batch.select([])
    return [found[place] for place in range(len(asked))]


def test_a_replayed_step_never_makes_the_host_wait(model: Transformer) -> None:
    decoder = GraphDecoder(model, SpecialIds(), GPU, limits=GraphLimits())
    asked = requests(3, longest=20)
    run(decoder, asked)  # warm
    run(decoder, asked)  # captured
    batch = decoder.begin(asked)
    batch.advance()
    torch.cuda.set_sync_debug_mode("error")  # what waits raises
    try:
        finished = [place for _ in range(9) for place in batch.advance()]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert len(finished) == len(set(finished))


SIZES = [(1, 1, 1), (3, 4, 32), (2, 3, 33), (5, 8, 17), (2, 9, 8), (2, 2, 700)]


@pytest.mark.parametrize("ones", [False, True], ids=["post", "pre"])
@pytest.mark.parametrize(("slots", "rows", "columns"), SIZES)
def test_the_attention_kernel_equals_torch(slots: int, rows: int, columns: int, ones: bool) -> None:
    """The same values as torch's attention in float32, within the rounding of bfloat16; the same memory, exactly."""
    torch.manual_seed(slots + rows)
    device, heads, size, hide = GPU, 8, 64, float("-inf")
    vectors, width = 2 * heads + ones, (heads + ones) * size
    written = torch.randn(slots, columns + 3, rows, vectors, size, device=device).bfloat16()
    kernel, reference = static_attention(written, heads, size), TorchAttention(heads)
    assert isinstance(kernel, KernelAttention)
    query = torch.randn(slots * rows, (heads + vectors) * size, device=device).bfloat16()
    cross = torch.randn(slots, columns, 3, vectors, size, device=device).bfloat16()[:, :, 1]
    if ones:
        written[..., -1, :], query[:, -size:], cross[..., -1, :] = 1, 1, 1
    steps = torch.randint(0, columns, (slots, 2), device=device)[:, 0]
    past = torch.arange(columns, device=device) > steps[:, None]

    path = torch.randint(0, rows, (slots, rows, columns), device=device)  # the row that wrote each token of a row
    own = torch.arange(rows, device=device)[None, :, None].expand(slots, -1, -1)
    path.scatter_(2, steps[:, None, None].expand(-1, rows, 1), own)
    bias = torch.full((slots, rows, columns + 3, rows), hide, device=device, dtype=torch.bfloat16)
    bias[:, :, :columns].scatter_(3, path[..., None], 0.0)
    bias[:, :, :columns].masked_fill_(past[:, None, :, None], hide)
    seen = bias[:, :, :columns].flatten(2).unsqueeze(1)
    other = written.float()
    out = kernel.append(query, written, steps, columns, seen)
    expected = reference.append(query.float(), other, steps, columns, seen.float())
    assert out.shape == (slots * rows, width) and (out.float() - expected).abs().max() < 0.03
    assert torch.equal(written.float(), other)

    source = torch.zeros(slots, columns, device=device, dtype=torch.bfloat16)
    source[0, columns // 2 + 1 :] = hide
    out = kernel.attend(query[:, :width].contiguous(), cross, source[:, None, None])
    expected = reference.attend(query[:, :width].float(), cross.float(), source[:, None, None].float())
    assert (out.float() - expected).abs().max() < 0.03


def random_search(slots: int, beams: int, vocabulary: int, seed: int) -> StaticBeam:
    """A search in the middle of its sentences on the GPU: random totals, scores of ended hypotheses, and steps."""
    made = torch.Generator().manual_seed(seed)
    lengths = [int(length) for length in torch.randint(6, 12, (slots,), generator=made)]
    options = [SearchOptions(beam_size=beams, max_length=length, max_length_factor=0) for length in lengths]
    options = [replace(each, n_best=1 + slot % beams, min_length=slot % 4) for slot, each in enumerate(options)]
    search = StaticBeam.of(BeamSearch.start([3] * slots, options, [()] * slots, SpecialIds(), torch.device("cpu")))
    tables = tables_of(search)
    steps = torch.randint(0, 5, (slots,), generator=made)
    best = (-20 * torch.rand(slots, 2 * beams, generator=made)).sort(1, descending=True).values
    pool = (-5 * torch.rand(slots, beams, generator=made)).sort(1, descending=True).values
    pool[torch.arange(beams) >= torch.randint(0, beams + 1, (slots, 1), generator=made)] = -torch.inf
    begins = steps == 0
    best[begins, 0], best[begins, 1:], pool[begins] = 0, -torch.inf, -torch.inf
    tables["best"].copy_(best)
    tables["pool"].copy_(pool)
    tables["progress"].copy_(torch.stack((steps, torch.ones_like(steps)), 1))
    placed = with_tables(search, {name: table.cuda() for name, table in tables.items()})
    placed.never = search.never.cuda()
    placed.prepare_continuations(vocabulary)
    return placed


LOGITS = {
    "normal": lambda z: z,
    "bfloat16": lambda z: z.bfloat16().float(),
    "large": lambda z: 1000 * z,
    "masked": lambda z: z.masked_fill(z > 0, -torch.inf),
    "infinite": lambda z: z.index_fill(1, torch.tensor([7], device=z.device), torch.inf),
    "ends": lambda z: z.index_add(1, torch.tensor([3], device=z.device), torch.full_like(z[:, :1], 12)),
}


@pytest.mark.parametrize("kind", LOGITS)
@pytest.mark.parametrize(
    ("slots", "beams", "vocabulary"),
    [(1, 4, 32000), (64, 4, 8001), (300, 2, 1000), (7, 6, 37), (3, 5, 257), (9, 3, 12)],
)
def test_the_kernels_of_a_search_step_equal_torch(slots: int, beams: int, vocabulary: int, kind: str) -> None:
    """Equal scores within 2e-5, and equal tokens where the scores of two candidates are not as near as that."""
    torch.manual_seed(slots)
    z = LOGITS[kind](4 * torch.randn(slots * beams, vocabulary, device="cuda"))
    searches = [random_search(slots, beams, vocabulary, seed=slots) for _ in range(2)]
    searches[1].kernel = beam_step(beams, SpecialIds(), GPU)
    assert searches[1].kernel is not None
    for search in searches:
        search.constraints.features = Features(minimum=True, prefix=False, ngram=0)
        with torch.inference_mode():
            search.advance(z.clone())
    plain, kernels = map(tables_of, searches)
    known = ~plain["best"].isnan().any(1)
    assert torch.equal(plain["progress"], kernels["progress"])
    for name in ("best", "pool", "totals"):
        torch.testing.assert_close(kernels[name][known], plain[name][known], rtol=2e-5, atol=2e-5)
    scores = plain["best"][:, :beams]
    near = torch.zeros_like(scores, dtype=torch.bool)
    near[:, 1:] |= scores.diff(dim=1).abs() < 1e-4 * scores[:, 1:].abs().clamp(min=1)
    near[:, :-1] |= near[:, 1:].clone()
    near[:, -1] = True  # may tie with a candidate that was left out
    differ = (plain["newest"] != kernels["newest"]) & scores.isfinite() & ~near
    assert not differ[known].any()
