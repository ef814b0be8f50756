"""Contender: our Translator with its engine, of this checkout or of another one."""

from collections.abc import Sequence
from itertools import count

from mt.decoding.options import SearchOptions
from mt.engine.requests import Request
from mt.languages import Direction
from mt.pipeline.translator import Translator

from .peer import PeerSearch, PeerSetup, run_peer


class OurPeer:
    """Peer with our Translator. The engine has `workers` threads, which use one core each."""

    def __init__(self, setup: PeerSetup) -> None:
        self._translator = Translator.load(setup.model, setup.device, setup.dtype, setup.workers)
        direction = Direction.parse(setup.direction) if setup.direction else None
        self._direction = (direction.source, direction.target) if direction else (None, None)
        self._ids = count()

    def encode(self, line: str) -> list[int]:
        source, target = self._direction
        request = self._translator.request(line, source=source, target=target)
        return list(request.source) if request else []

    def translate(self, sources: Sequence[list[int]], search: PeerSearch) -> list[list[int]]:
        requests = []
        for index, source in enumerate(sources):
            length = search.forced[index] if search.forced else None
            limit = self._translator.options.max_length if length is None else length
            options = SearchOptions(beam_size=search.beam_size, max_length=limit, min_length=length or 0)
            requests.append(Request(next(self._ids), tuple(source), options))
        for request in sorted(requests, key=lambda request: -len(request.source)):
            self._translator.engine.submit(request)
        results = {result.id: result for result in self._translator.engine.drain()}
        return [list(results[request.id].hypotheses[0].tokens) for request in requests]

    def decode(self, tokens: list[int]) -> str:
        return self._translator.tokenizer.decode(tokens)


def main() -> None:
    run_peer(OurPeer)
