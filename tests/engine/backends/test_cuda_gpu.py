"""What only a GPU can show: nobody waits, memory stays bounded, and how many sentences differ in bf16."""

from collections.abc import Callable, Sequence
from random import Random

import pytest
import torch

from mt.config import ModelConfig
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SearchOptions, SpecialIds
from mt.decoding.scorer import ModelScorer
from mt.engine.backends.cuda import GraphDecoder
from mt.engine.backends.static_batch import GraphLimits
from mt.engine.requests import Request
from mt.kernels.cuda.attention import KernelAttention, TorchAttention
from mt.model.transformer import Transformer
from tests.decoding.reference import decode

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]

OPTIONS = SearchOptions(beam_size=4, max_length_factor=1.0)
VOCABULARY = 2000


@pytest.fixture(scope="module")
def model() -> Transformer:
    """Random, with heads of 64 numbers as real ones have."""
    torch.manual_seed(0)
    numbers = {"encoder_layers": 2, "decoder_layers": 3, "d_model": 256, "d_ff": 512, "heads": 4, "max_length": 128}
    return Transformer(ModelConfig.model_validate(numbers), VOCABULARY).eval().bfloat16().cuda()


def requests(count: int, longest: int, seed: int) -> list[Request]:
    random = Random(seed)
    found = []
    for number in range(count):
        ids = (random.randrange(4, VOCABULARY) for _ in range(random.randint(1, longest)))
        found.append(Request(number, (*ids, 3), OPTIONS))
    return found


def run(decoder: GraphDecoder, asked: Sequence[Request]) -> list[list[Hypothesis]]:
    batch = decoder.begin(asked)
    found: dict[int, list[Hypothesis]] = {}
    while len(found) < len(asked):
        places = batch.advance()
        found.update(zip(places, batch.results(places), strict=True))
    batch.select([])
    return [found[place] for place in range(len(asked))]


def test_a_replayed_step_never_makes_the_host_wait(model: Transformer) -> None:
    device = torch.device("cuda")
    decoder = GraphDecoder(model, SpecialIds(), device, limits=GraphLimits())
    asked = requests(3, 20, seed=1)
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


def test_memory_stays_within_its_bound(model: Transformer) -> None:
    limits = GraphLimits(bytes=64 << 20, programs=8)
    decoder = GraphDecoder(model, SpecialIds(), torch.device("cuda"), limits=limits)
    reserved = []
    for _ in range(3):
        for count, longest in ((1, 10), (3, 60), (40, 30), (7, 100), (100, 20), (1, 10)):
            run(decoder, requests(count, longest, seed=count))
        assert decoder.pool.idle_bytes <= limits.bytes
        assert len(decoder.pool.programs) <= limits.programs
        torch.cuda.empty_cache()
        reserved.append(torch.cuda.memory_reserved())
    assert reserved[2] <= 1.05 * reserved[1]


def test_sentences_that_differ_in_bf16_are_counted(
    model: Transformer, record_property: Callable[[str, object], None]
) -> None:
    """A random model's choices are closer to each other than a trained one's: this is the worst case."""
    asked = requests(64, 30, seed=2)
    decoder = GraphDecoder(model, SpecialIds(), torch.device("cuda"))
    together = run(decoder, asked)
    alone = [run(decoder, [request])[0] for request in asked]
    scorer = ModelScorer(model, device=torch.device("cuda"))
    plain = decode(scorer, [request.source for request in asked], OPTIONS)
    for name, other in (("alone", alone), ("on the plain path", plain)):
        differ = sum(a[0].tokens != b[0].tokens for a, b in zip(together, other, strict=True))
        record_property(f"sentences of 64 that differ {name}", differ)
        print(f"{differ} of 64 sentences differ {name}, bf16")
        gap = sum(abs(a[0].score - b[0].score) for a, b in zip(together, other, strict=True)) / 64
        assert gap < 0.05


SIZES = [(1, 1, 1), (3, 4, 32), (2, 3, 33), (5, 8, 17), (2, 9, 8), (2, 2, 700)]


@pytest.mark.parametrize("ones", [False, True], ids=["post", "pre"])
@pytest.mark.parametrize(("slots", "rows", "columns"), SIZES)
def test_the_attention_kernel_equals_torch(slots: int, rows: int, columns: int, ones: bool) -> None:
    """The same values as torch's attention in float32, within the rounding of bfloat16; the same memory, exactly."""
    torch.manual_seed(slots + rows)
    device, heads, size, hide = torch.device("cuda"), 8, 64, float("-inf")
    vectors, width = 2 * heads + ones, (heads + ones) * size
    kernel, reference = KernelAttention(heads), TorchAttention(heads)
    written = torch.randn(slots, columns + 3, rows, vectors, size, device=device).bfloat16()
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
