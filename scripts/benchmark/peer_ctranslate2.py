"""Contender: CTranslate2, with weights that mt/interop/ctranslate2.py exported."""

from collections.abc import Sequence
from typing import Any

import ctranslate2

from .peer import PeerJob, PeerSetup, TranslateTokens, by_length, longest, run_peer


def load(setup: PeerSetup) -> TranslateTokens:
    """Return a function that translates with CTranslate2, which sorts the sentences and forms the batches by itself.

    `workers` of the setup is inter_threads, and `threads` is intra_threads. Tokens are pieces.
    """
    translator = ctranslate2.Translator(
        setup.model,
        device=setup.device,
        compute_type=setup.dtype,
        inter_threads=setup.workers,
        intra_threads=setup.threads,
    )

    def translate(sources: Sequence[list[str]], job: PeerJob, lengths: Sequence[int]) -> list[list[str]]:
        calls: list[tuple[int, Any]] = []
        for length, indices in by_length(lengths, len(sources)).items():  # a call can force only one length
            results = translator.translate_batch(
                [sources[index] for index in indices],
                max_batch_size=job.batch,
                batch_type=job.batch_unit,
                beam_size=job.beam_size,
                num_hypotheses=1,
                length_penalty=1,
                max_input_length=0,
                min_decoding_length=length or 1,
                max_decoding_length=length or longest(1 + max(len(sources[index]) for index in indices)),
                asynchronous=True,
            )
            calls += zip(indices, results, strict=True)
        targets: list[list[str]] = [[] for _ in sources]
        for index, result in calls:
            targets[index] = result.result().hypotheses[0]
        return targets

    return translate


def main() -> None:
    run_peer(load)
