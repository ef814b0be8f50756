"""The paths of a GPU on a simulated device: equal to the CPU, with bounded waits, operations and memory."""

import gc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import ref

import pytest
import torch

from mt.checkpoint import LoadedModel, load_model
from mt.decoding.hypothesis import Hypothesis
from mt.decoding.options import SpecialIds
from mt.decoding.scorer import EnsembleScorer, ModelScorer
from mt.engine.backends.cuda import GraphDecoder
from mt.engine.backends.memory import memory_cells
from mt.engine.backends.static_batch import GraphLimits, StaticEncoder, program_slots
from mt.engine.backends.torch import SearchDecoder
from mt.engine.engine import Engine
from mt.engine.memory import LEAST
from mt.engine.requests import Request
from mt.engine.scheduler import Limits
from mt.kernels.cuda.graphs import Eager
from mt.kernels.cuda.static_decoder import Shape, StaticDecoder
from mt.model.transformer import Transformer
from mt.pipeline.translator import Translator
from mt.scoring.pairs import PairScorer, score_targets
from tests.decoding.reference import decode, drain
from tests.engine.backends.test_cuda import CPU, GREEDY, PLAIN, ask, assert_plain, begin, run, sources, tiny
from tests.hypotheses import assert_same
from tests.simulated_device import SimulatedDevice, SimulatedGraphs
from tests.simulated_device import simulated as simulated


def graph_decoder(model: Transformer, simulated: SimulatedDevice, **limits: int) -> GraphDecoder:
    graphs, device = SimulatedGraphs(simulated), simulated.device
    return GraphDecoder(model.to(device), SpecialIds(), device, graphs, GraphLimits(**{"rows": 32, **limits}))


@pytest.mark.parametrize(("norm", "most"), [("post", 111), ("pre", 112)])
def test_budgets_of_steps_joins_and_harvests(simulated: SimulatedDevice, norm: str, most: int) -> None:
    """With the base model's six layers. An operation is a kernel, or two. A minimum length costs two operations,
    and a vocabulary that is no multiple of 64 one.
    """
    decoder = graph_decoder(tiny(decoder_layers=6, norm=norm), simulated, rows=32)
    requests = ask([(source, replace(PLAIN, min_length=12), ()) for source in sources(8, longest=12)])
    batch = begin(decoder, requests[:2])
    for _ in range(4):
        batch.advance()
    simulated.reset()
    for _ in range(4):
        batch.advance()
    assert simulated.waits == []
    assert simulated.operations.total() / 4 <= most, simulated.operations

    begin(decoder, requests[2:4])
    begin(decoder, requests[2:4])
    simulated.reset()
    joining = begin(decoder, requests[2:4])
    assert simulated.operations["_to_copy"] + simulated.operations["copy_"] <= 3, "one is that of the host's values"
    encoding = simulated.operations.total()
    batch.extend(joining)
    batch.advance()
    assert simulated.waits == []
    assert simulated.operations.total() - encoding <= 12 + most, simulated.operations

    done: list[int] = []
    while not done:
        simulated.reset()
        done = batch.advance()
        assert simulated.waits == []
    simulated.reset()
    batch.results(done)
    assert len(simulated.waits) == 1
    assert simulated.operations.total() <= 3


def test_a_new_static_batch_is_sent_in_one_copy(simulated: SimulatedDevice) -> None:
    decoder = graph_decoder(tiny(), simulated, rows=16)
    options = [PLAIN, replace(PLAIN, no_repeat_ngram=2), replace(PLAIN, min_length=6)]
    requests = ask([(source, options[n % 3], (7, 8)[: n % 3]) for n, source in enumerate(sources(9, longest=12))])
    batch = begin(decoder, requests[:4])
    for _ in range(3):
        batch.advance()
    simulated.reset()
    batch.extend(begin(decoder, requests[4:]))
    batch.advance()
    assert len({static for _, static in decoder.pool.lent} | set(decoder.pool.idle)) == 2
    assert simulated.waits == []


@pytest.mark.parametrize(("sentences", "later"), [(1, 1), (8, 1), (9, 2), (40, 2)])
def test_a_sentence_is_reported_soon_after_its_end(simulated: SimulatedDevice, sentences: int, later: int) -> None:
    decoder = graph_decoder(tiny(), simulated, rows=256)
    options = replace(PLAIN, max_length_factor=0.0, max_length_offset=4, min_length=4)
    batch = begin(decoder, ask([((5, 6, 3), options, ())] * sentences))
    alone = 4 - 1
    assert [batch.advance() for _ in range(alone + later)] == [[]] * (alone + later)
    assert batch.advance() == list(range(sentences))


def test_usual_programs_are_captured_before_the_first_request(simulated: SimulatedDevice) -> None:
    decoder = graph_decoder(tiny(), simulated, rows=32)
    decoder.prepare(replace(PLAIN, n_best=1))
    graphs = decoder.pool.executor
    assert isinstance(graphs, SimulatedGraphs) and graphs.captures > 8
    before = graphs.captures
    requests = ask([(source, PLAIN, ()) for source in sources(4, longest=30)])
    found = run(decoder, [requests[:1], requests[1:]], gap=5)
    assert graphs.captures == before
    assert_plain(found, tiny(), requests)


def test_the_plain_path_waits_once_in_eight_steps(simulated: SimulatedDevice) -> None:
    scorer = ModelScorer(tiny().to(simulated.device), device=simulated.device)
    batch = SearchDecoder(scorer).begin(ask([(source, PLAIN, ()) for source in sources(3)]))
    simulated.reset()
    for _ in range(8):
        batch.advance()
    assert len(simulated.waits) == 1


def test_an_engine_survives_a_full_memory(simulated: SimulatedDevice) -> None:
    requests = ask([(source, PLAIN, ()) for source in sources(4, longest=8)])
    engine = Engine(graph_decoder(tiny(), simulated), Limits(rows=32, source_tokens=100))
    simulated.fail_at = simulated.allocations + 400
    results = drain(engine, requests)
    assert simulated.allocations > simulated.fail_at
    assert_plain({id: result.hypotheses for id, result in results.items()}, tiny(), requests)


def test_an_engine_does_not_survive_a_failed_accelerator(simulated: SimulatedDevice) -> None:
    requests, model = ask([(source, PLAIN, ()) for source in sources(3)]), tiny()
    graphs = graph_decoder(model, simulated)
    for decoder in (graphs, SearchDecoder(ModelScorer(model, device=simulated.device))):
        engine = Engine(decoder)
        for request in requests:
            engine.submit(request)
        engine.step()
        simulated.broken = True
        with pytest.raises(torch.AcceleratorError):
            engine.step()
        engine.submit(Request(9, (5, 3), GREEDY))
        with pytest.raises(torch.AcceleratorError):
            engine.step()
        simulated.broken = False


def test_what_the_limits_admit_fits_in_memory() -> None:
    """Without a limit of cells, they do not fit, and each runs alone after the first failure."""
    long = ask([(source, PLAIN, ()) for source in sources(32, longest=30)])
    capacity = 6 << 20
    with SimulatedDevice(capacity) as simulated:
        model = tiny().to(simulated.device)
        cells = memory_cells([model], capacity - simulated.memory)
        limits = replace(Limits.of("cuda"), cells=cells)
        engine = Engine(graph_decoder(model, simulated, bytes=capacity // 4), limits)
        assert all(result.hypotheses for result in drain(engine, long).values())
        assert capacity // 4 < simulated.peak <= capacity
        assert simulated.failures == 0


def test_logits_of_bfloat16_states_are_exact(simulated: SimulatedDevice) -> None:
    """16 + 1/16 is 16 in bfloat16."""
    model = tiny().bfloat16()
    with torch.no_grad():
        model.embedding.tokens.weight.zero_()
        model.embedding.tokens.weight[7, :2] = torch.tensor([16, 1 / 16])
    states = torch.ones(2, 3, 16, dtype=torch.bfloat16)
    with torch.no_grad():
        assert model.embedding.project(states)[1, 2, 7] == 16
        model.to(simulated.device)
        logits = model.embedding.project(states.to(simulated.device))
    assert logits.shape == (2, 3, 50) and logits.dtype == torch.float32
    assert logits[1, 2, 7] == 16.0625


def loaded(folder: Path, simulated: SimulatedDevice | None = None) -> LoadedModel:
    model = load_model(folder)
    if simulated:
        model.model.to(simulated.device)
    return model


def test_glossaries_and_alignments_on_the_device_equal_the_cpu(small_model: Path, simulated: SimulatedDevice) -> None:
    text, models = ["The dog sees the cat."], [loaded(small_model), loaded(small_model, simulated)]
    options: dict[str, Any] = {"glossary": {"dog": "Köter"}, "alignment": True}
    expected, found = (Translator(model).translate_many(text, **options) for model in models)
    assert "Köter" in found[0].text
    assert [each.text for each in found] == [each.text for each in expected]
    assert [each.sentences[0].links for each in found] == [each.sentences[0].links for each in expected]


def test_ensembles_and_scores_on_the_device_equal_the_cpu(small_model: Path, simulated: SimulatedDevice) -> None:
    asked = sources(3)
    targets = [[5, 6, 7], [8], [9, 10]]
    results: list[list[list[Hypothesis]]] = []
    scores = []
    for device in (CPU, simulated.device):
        scorers = tuple(ModelScorer(tiny(seed).to(device), device=device) for seed in (1, 2))
        results.append(decode(EnsembleScorer(scorers), asked, PLAIN))
        scores.append([pair.log_probability for pair in score_targets(scorers[0], asked, targets)])
    assert_same(results[1], results[0])
    assert scores[1] == pytest.approx(scores[0], abs=1e-4)
    [direction] = loaded(small_model).description.directions
    pairs = [PairScorer(model) for model in (loaded(small_model), loaded(small_model, simulated))]
    expected, found = (scorer.score(["The dog sees the cat."], ["a cat."], direction) for scorer in pairs)
    assert found[0].log_probability == pytest.approx(expected[0].log_probability, abs=1e-4)


@pytest.mark.parametrize(("sentences", "slots"), [((9, 11, 12, 10), 12), ((13, 16, 14), 16), ((33, 41, 48), 48)])
def test_similar_batches_share_programs(simulated: SimulatedDevice, sentences: Sequence[int], slots: int) -> None:
    """On a card whose limit admits no static batch with a usual number of slots."""
    decoder = graph_decoder(tiny(), simulated, rows=1024)
    usual = decoder.decoder.bytes(Shape(program_slots(slots + 1), PLAIN.beam_size, LEAST, LEAST))
    decoder.pool.limits = replace(decoder.pool.limits, bytes=usual - 1)
    for count in sentences:
        requests = ask([((5, 6, 3), replace(PLAIN, max_length=8, min_length=6), ())] * count)
        assert all(result.hypotheses for result in drain(Engine(decoder, Limits.of("cuda")), requests).values())
        decoder.pool.reclaim()
        assert [static.shape.slots for static in decoder.pool.idle] == [slots]
        assert len(decoder.pool.programs) == 1


@pytest.mark.parametrize("spare", [200, 4])
def test_memory_that_another_program_took_makes_the_batch_smaller(simulated: SimulatedDevice, spare: int) -> None:
    decoder = graph_decoder(tiny(), simulated, bytes=64 << 20, rows=1024)
    slot = decoder.decoder.bytes(Shape(1, PLAIN.beam_size, 128, 128))
    simulated.capacity = simulated.memory + spare * slot  # 1,024 rows would be 256 slots
    requests = ask([(source, PLAIN, ()) for source in sources(9, longest=6)])
    assert all(result.hypotheses for result in drain(Engine(decoder, Limits.of("cuda")), requests).values())
    assert simulated.failures <= 4 if spare > 9 else simulated.failures


def test_a_static_encoder_is_freed_without_the_garbage_collector() -> None:
    encoder = StaticEncoder(StaticDecoder(tiny()), 1, 16, Eager(CPU))
    gone = ref(encoder)
    gc.disable()
    try:
        del encoder
        assert gone() is None
    finally:
        gc.enable()
