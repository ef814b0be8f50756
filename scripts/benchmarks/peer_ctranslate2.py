"""Contender: CTranslate2, with the weights that mt/interop/ctranslate2.py exported and our tokenizer's file.

Takes sentencepiece itself, as a user of CTranslate2 does: `mt` would bring torch, which CTranslate2 does not need.
"""

from collections.abc import Sequence
from pathlib import Path

import ctranslate2
import sentencepiece

from .harness import Search, Setup, attend


class CTranslate2:
    """`workers` are its inter_threads, `threads` its intra_threads; it sorts and cuts batches itself."""

    def __init__(self, setup: Setup) -> None:
        model = Path(setup.model)
        self._pieces = sentencepiece.SentencePieceProcessor(model_file=str(model / "tokenizer.model"))
        self._translator = ctranslate2.Translator(
            str(model),
            device=setup.device,
            compute_type=setup.dtype,
            inter_threads=setup.workers,
            intra_threads=setup.threads,
        )

    def encode(self, line: str) -> list[str]:
        return list(self._pieces.encode(line, out_type=str))

    def translate(self, sources: Sequence[list[str]], search: Search) -> list[list[str]]:
        """Forced lengths are an option of a whole call: a call for each, all of them before any is waited for."""
        calls = []
        for length, places in search.groups(len(sources)):
            longest = 1 + max(len(sources[place]) for place in places)  # it adds the end itself
            found = self._translator.translate_batch(
                [sources[place] for place in places],
                max_batch_size=search.batching.size,
                batch_type=search.batching.unit,
                beam_size=search.beam_size,
                num_hypotheses=1,
                length_penalty=1,
                max_input_length=0,
                min_decoding_length=length or 1,
                max_decoding_length=length or search.longest(longest),
                asynchronous=True,
            )
            calls.append((places, found))
        targets: list[list[str]] = [[] for _ in sources]
        for places, found in calls:
            for place, result in zip(places, found, strict=True):
                targets[place] = result.result().hypotheses[0]
        return targets

    def translate_text(self, lines: Sequence[str], search: Search) -> list[str]:
        sources = self._pieces.encode(list(lines), out_type=str)
        return self._pieces.decode(self.translate(sources, search))  # type: ignore[no-any-return]

    def decode(self, tokens: list[str]) -> str:
        return self._pieces.decode(tokens)  # type: ignore[no-any-return]


def main() -> None:
    attend(CTranslate2)
