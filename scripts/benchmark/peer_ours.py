"""Contender: our Translator with its engine, of this checkout or of another one."""

from collections.abc import Sequence
from itertools import count

from mt.decoding.options import SearchOptions
from mt.engine.requests import Request
from mt.pipeline.translator import Translator

from .peer import PeerJob, PeerSetup, TranslateTokens, run_peer


def load(setup: PeerSetup) -> TranslateTokens:
    """Return a function that translates with our engine, which has `workers` threads that use one core each."""
    translator = Translator.load(setup.model, setup.device, setup.dtype, setup.workers)
    numbers = count()

    def translate(sources: Sequence[list[int]], job: PeerJob, lengths: Sequence[int]) -> list[list[int]]:
        requests = []
        for index, source in enumerate(sources):
            limit, least = (lengths[index], lengths[index]) if lengths else (translator.options.max_length, 0)
            options = SearchOptions(beam_size=job.beam_size, max_length=limit, min_length=least)
            requests.append(Request(next(numbers), tuple(source), options))
        for request in sorted(requests, key=lambda request: -len(request.source)):
            translator.engine.submit(request)
        results = {result.id: result for result in translator.engine.drain()}
        return [list(results[request.id].hypotheses[0].tokens) for request in requests]

    return translate


def main() -> None:
    run_peer(load)
