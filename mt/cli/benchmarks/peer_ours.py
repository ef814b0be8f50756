"""Contender: our Translator with its engine."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from mt.decoding.options import SearchOptions
from mt.engine.requests import Request
from mt.languages import Direction
from mt.pipeline.translator import Translator

from .harness import PeerSearch, PeerSetup, run_contender


class OurPeer:
    """Peer with our Translator. The engine has `workers` threads, which use one core each.

    Tokens are translated by the engine. Text is translated by `Translator.translate`. If lengths are forced, text is
    tokenised, translated by the engine, and detokenised.
    """

    def __init__(self, setup: PeerSetup) -> None:
        self.translator = Translator.load(setup.model, setup.device, setup.dtype, setup.workers)
        direction = Direction.parse(setup.direction) if setup.direction else None
        self._source = direction.source if direction else None
        self._target = direction.target if direction else None
        self._ids = count()

    def encode(self, line: str) -> list[int]:
        request = self.translator.request(line, source=self._source, target=self._target)
        return list(request.source) if request else []

    def translate(self, sources: Sequence[list[int]], search: PeerSearch) -> list[list[int]]:
        requests = [
            Request(next(self._ids), tuple(source), options)
            for source, options in zip(sources, self._options(search, len(sources)), strict=True)
        ]
        for request in sorted(requests, key=lambda request: -len(request.source)):
            self.translator.engine.submit(request)
        results = {result.id: result for result in self.translator.engine.drain()}
        return [list(results[request.id].hypotheses[0].tokens) for request in requests]

    def translate_text(self, lines: Sequence[str], search: PeerSearch) -> list[str]:
        if not search.forced:
            options = self._options(search, 1)[0]
            return [
                translation.text
                for translation in self.translator.translate(
                    list(lines),
                    source=self._source,
                    target=self._target,
                    options=options,
                    sentences=True,
                    protect=False,
                )
            ]
        return list(map(self.decode, self.translate([self.encode(line) for line in lines], search)))

    def decode(self, tokens: list[int]) -> str:
        return self.translator.tokenizer.decode(tokens)

    def _options(self, search: PeerSearch, sentences: int) -> list[SearchOptions]:
        options = SearchOptions(beam_size=search.beam_size, max_length=self.translator.options.max_length)
        if not search.forced:
            return [options] * sentences
        return [replace(options, min_length=length, max_length=length) for length in search.forced]


def main() -> None:
    run_contender(OurPeer)
