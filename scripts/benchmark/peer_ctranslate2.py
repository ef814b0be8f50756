"""Contender: CTranslate2, with weights that mt/interop/ctranslate2.py exported and the file of our tokenizer.

The module uses sentencepiece directly, as users of CTranslate2 do.
"""

from collections.abc import Sequence
from pathlib import Path

import ctranslate2
import sentencepiece

from .peer import PeerSearch, PeerSetup, run_peer


class CTranslate2:
    """Peer with the Translator of CTranslate2, which sorts the sentences and forms the batches by itself.

    `workers` of the setup is inter_threads, and `threads` is intra_threads.
    """

    def __init__(self, setup: PeerSetup) -> None:
        model = Path(setup.model)
        self._tag = [f"<2{setup.direction.rpartition('-')[2]}>"] if setup.direction else []
        self._pieces = sentencepiece.SentencePieceProcessor(model_file=str(model / "tokenizer.model"))
        self._translator = ctranslate2.Translator(
            str(model),
            device=setup.device,
            compute_type=setup.dtype,
            inter_threads=setup.workers,
            intra_threads=setup.threads,
        )

    def encode(self, line: str) -> list[str]:
        return [*self._tag, *self._pieces.encode(line, out_type=str)]

    def translate(self, sources: Sequence[list[str]], search: PeerSearch) -> list[list[str]]:
        """Return the target tokens of each source. A call of CTranslate2 can force only one length for all sentences.

        Therefore, one asynchronous call is made for each forced length.
        """
        calls = []
        for length, places in search.groups(len(sources)):
            longest = 1 + max(len(sources[place]) for place in places)  # CTranslate2 adds EOS itself
            results = self._translator.translate_batch(
                [sources[place] for place in places],
                max_batch_size=search.batch,
                batch_type=search.batch_unit,
                beam_size=search.beam_size,
                num_hypotheses=1,
                length_penalty=1,
                max_input_length=0,
                min_decoding_length=length or 1,
                max_decoding_length=length or search.longest(longest),
                asynchronous=True,
            )
            calls.append((places, results))
        targets: list[list[str]] = [[] for _ in sources]
        for places, results in calls:
            for place, result in zip(places, results, strict=True):
                targets[place] = result.result().hypotheses[0]
        return targets

    def decode(self, tokens: list[str]) -> str:
        return str(self._pieces.decode(tokens))


def main() -> None:
    run_peer(CTranslate2)
