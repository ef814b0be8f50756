"""Contender: Hugging Face transformers, with a model that mt/interop/huggingface_export.py exported."""

from collections.abc import Iterator, Sequence

import torch
from transformers import AutoModelForSeq2SeqLM

from .peer import PeerJob, PeerSetup, TranslateTokens, by_length, longest, run_peer


def load(setup: PeerSetup) -> TranslateTokens:
    """Return a function that translates batches of sentences, sorted by length, with `generate`."""
    torch.set_num_threads(setup.workers * setup.threads)
    dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[setup.dtype]
    model = AutoModelForSeq2SeqLM.from_pretrained(setup.model, dtype=dtype).to(setup.device).train(False)
    pad = model.config.pad_token_id
    special = {pad, model.config.eos_token_id, model.config.decoder_start_token_id}

    def generate(sources: list[list[int]], beam_size: int, length: int) -> list[list[int]]:
        width = max(map(len, sources))
        ids = torch.tensor([source + [pad] * (width - len(source)) for source in sources])
        mask = torch.tensor([[1] * len(source) + [0] * (width - len(source)) for source in sources])
        targets: list[list[int]] = model.generate(
            input_ids=ids.to(model.device),
            attention_mask=mask.to(model.device),
            num_beams=beam_size,
            do_sample=False,
            length_penalty=1.0,
            no_repeat_ngram_size=0,
            max_new_tokens=length or longest(width),
            min_new_tokens=length or None,
        ).tolist()
        return targets

    @torch.inference_mode()
    def translate(sources: Sequence[list[int]], job: PeerJob, lengths: Sequence[int]) -> list[list[int]]:
        targets: list[list[int]] = [[] for _ in sources]
        for length, indices in by_length(lengths, len(sources)).items():
            for batch in batches(sources, indices, max(job.batch, 1)):
                found = generate([sources[index] for index in batch], job.beam_size, length)
                for index, target in zip(batch, found, strict=True):
                    targets[index] = [token for token in target if token not in special]
        return targets

    return translate


def batches(sources: Sequence[Sequence[object]], indices: Sequence[int], size: int) -> Iterator[list[int]]:
    """Divide the sentences with these indices into batches of at most `size` indices, the longest sentences first."""
    ordered = sorted(indices, key=lambda index: -len(sources[index]))
    for begin in range(0, len(ordered), size):
        yield ordered[begin : begin + size]


def main() -> None:
    run_peer(load)
