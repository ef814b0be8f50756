"""The simulated device in the place of a GPU: whatever `--device` names, this process loads its models onto it."""

from collections.abc import Sequence
from functools import partial

from mt.checkpoint import LoadedModel
from mt.decoding.options import SearchOptions, SpecialIds
from mt.engine.backends import cuda
from mt.engine.backends.cuda import GraphDecoder
from mt.engine.backends.protocol import GPU_THREADS, Backend, Dtype
from mt.engine.backends.static_batch import GraphLimits
from mt.engine.scheduler import Limits
from mt.pipeline import translator
from tests.simulated_device import SimulatedDevice, SimulatedGraphs


def simulate() -> None:
    """Put the simulated device in the place of GPUs until this process ends. Only this thread may use it."""
    simulated = SimulatedDevice()
    simulated.__enter__()
    setattr(translator, "select_device", lambda name: str(simulated.device))  # noqa: B010
    setattr(cuda, "load_backend", partial(_load_backend, simulated))  # noqa: B010


def _load_backend(simulated: SimulatedDevice, models: Sequence[LoadedModel], device: str, dtype: Dtype) -> Backend:
    limits, decoding = GraphLimits(rows=32), models[0].description.decoding
    decoder = GraphDecoder(models[0].model, SpecialIds(), simulated.device, SimulatedGraphs(simulated), limits)
    decoder.prepare(SearchOptions(beam_size=decoding.beam_size, no_repeat_ngram=decoding.no_repeat_ngram))
    return Backend(decoder, Dtype.FLOAT32, Limits.of("cuda"), threads=GPU_THREADS)
