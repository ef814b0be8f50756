"""Contender: our own engine, as Translator loads it."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from mt.decoding.options import SearchOptions
from mt.engine.messages import Request
from mt.engine.translator import Translator

from .harness import Search, Setup, attend


class Ours:
    """`workers` are its engine threads, of one core each.

    Ids go through the engine; text through Translator.translate, or, with forced lengths, through its two halves.
    """

    def __init__(self, setup: Setup) -> None:
        self.translator = Translator.load(setup.model, setup.device, setup.dtype, setup.workers)
        self._ids = count()

    def encode(self, line: str) -> list[int]:
        request = self.translator.request(line)
        return list(request.source) if request else []

    def translate(self, sources: Sequence[list[int]], search: Search) -> list[list[int]]:
        requests = [
            Request(next(self._ids), tuple(source), options)
            for source, options in zip(sources, self._options(search, len(sources)), strict=True)
        ]
        for request in sorted(requests, key=lambda request: -len(request.source)):
            self.translator.engine.submit(request)
        results = {result.id: result for result in self.translator.engine.drain()}
        return [list(results[request.id].hypotheses[0].tokens) for request in requests]

    def translate_text(self, lines: Sequence[str], search: Search) -> list[str]:
        if not search.forced:
            options = self._options(search, 1)[0]
            return [
                found.text for found in self.translator.translate(lines, options=options, sentences=True, whole=False)
            ]
        return list(map(self.decode, self.translate([self.encode(line) for line in lines], search)))

    def decode(self, tokens: list[int]) -> str:
        return self.translator.tokenizer.decode(tokens)

    def _options(self, search: Search, sentences: int) -> list[SearchOptions]:
        options = SearchOptions(beam_size=search.beam_size, max_length=self.translator.options.max_length)
        if not search.forced:
            return [options] * sentences
        return [replace(options, min_length=length, max_length=length) for length in search.forced]


def main() -> None:
    attend(Ours)
