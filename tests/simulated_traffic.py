"""Count the captures of CUDA graphs in mixed traffic: sentences of natural lengths that arrive at random.

python -m tests.simulated_traffic [STEPS]
"""

import sys
from math import log
from random import Random

import torch

from mt.decoding.options import SearchOptions, SpecialIds
from mt.engine.backends.cuda import GraphDecoder
from mt.engine.backends.static_batch import GraphLimits
from mt.engine.engine import Engine
from mt.engine.requests import Request
from mt.engine.scheduler import Limits
from mt.kernels.cuda.graphs import Eager, Program, Work
from tests.engine.backends.test_cuda import VOCABULARY, tiny

PER_STEP = 3.25  # mean number of sentences that arrive in a step
MEDIAN, SPREAD = 27, 0.6  # tokens of a sentence, with a log-normal distribution


class CountedRuns:
    """Program that counts its second run, which captures it on a GPU."""

    def __init__(self, owner: "CaptureCounter", work: Work) -> None:
        self.owner, self.work, self.runs = owner, work, 0

    def replay(self) -> None:
        self.runs += 1
        self.owner.captures += self.runs == 2
        self.work()


class CaptureCounter(Eager):
    """Executor that counts captures."""

    captures = 0

    def program(self, work: Work) -> Program:
        return CountedRuns(self, work)


def main(steps: int) -> None:
    torch.set_num_threads(1)
    executor, random = CaptureCounter(torch.device("cpu")), Random(1)
    model = tiny(decoder_layers=1, d_model=8, d_ff=8, heads=1, max_length=512)
    decoder = GraphDecoder(model, SpecialIds(), executor.device, executor, GraphLimits())
    options = SearchOptions(beam_size=4)
    decoder.prepare(options)
    at_start, number = executor.captures, 0
    engine = Engine(decoder, Limits.of("cuda"))
    for step in range(1, steps + 1):
        for _ in range(int(random.expovariate(1 / PER_STEP) + 0.5)):
            tokens = min(max(int(random.lognormvariate(log(MEDIAN), SPREAD)), 2), 250)
            source = (*(random.randrange(4, VOCABULARY) for _ in range(tokens - 1)), 3)
            length = SearchOptions(beam_size=4, max_length=tokens, min_length=tokens)
            engine.submit(Request(number, source, length))
            number += 1
        engine.step()
        if step % 100 == 0 or step == steps:
            later = executor.captures - at_start
            print(f"{step} steps, {number} sentences: {at_start} captures at the start, then {later}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1200)
