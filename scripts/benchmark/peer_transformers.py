"""Contender: MarianMTModel of Hugging Face transformers, loaded from a model directory of transformers."""

from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import AutoTokenizer, MarianConfig, MarianMTModel

from mt.tokenizer import EOS, Tokenizer

from .peer import PeerSearch, PeerSetup, run_peer


class MarianPeer:
    """Peer with MarianMTModel.generate, for batches of sentences that are sorted by length.

    If the model directory has the file of our tokenizer, the model is untrained: its weights are random, and its
    tokenizer is ours.
    """

    def __init__(self, setup: PeerSetup) -> None:
        torch.set_num_threads(setup.workers * setup.threads)
        folder = Path(setup.model)
        dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[setup.dtype]
        self._ours = Tokenizer.load(folder / "tokenizer.model") if (folder / "tokenizer.model").exists() else None
        if self._ours:
            model = MarianMTModel(MarianConfig.from_pretrained(folder, dtype=dtype))
            model.to(dtype)  # type: ignore[arg-type]  # the wrapper of transformers hides the signature
        else:
            self._tokenizer = AutoTokenizer.from_pretrained(folder)
            model = MarianMTModel.from_pretrained(folder, dtype=dtype)
        self._model = model.to(setup.device).train(False)  # type: ignore[arg-type]
        config = self._model.config
        self._special = {config.pad_token_id, config.eos_token_id, config.decoder_start_token_id}

    def encode(self, line: str) -> list[int]:
        return [*self._ours.encode(line), EOS] if self._ours else list(self._tokenizer(line).input_ids)

    @torch.inference_mode()
    def translate(self, sources: Sequence[list[int]], search: PeerSearch) -> list[list[int]]:
        targets: list[list[int]] = [[] for _ in sources]
        for length, places in search.groups(len(sources)):
            for batch in search.batches(sources, places):
                for place, target in zip(batch, self._batch([sources[p] for p in batch], length, search), strict=True):
                    targets[place] = [token for token in target if token not in self._special]
        return targets

    def _batch(self, sources: list[list[int]], length: int, search: PeerSearch) -> list[list[int]]:
        width = max(map(len, sources))
        pad = self._model.config.pad_token_id
        ids = torch.tensor([source + [pad] * (width - len(source)) for source in sources])
        mask = torch.tensor([[1] * len(source) + [0] * (width - len(source)) for source in sources])
        targets = self._model.generate(
            input_ids=ids.to(self._model.device),
            attention_mask=mask.to(self._model.device),
            num_beams=search.beam_size,
            do_sample=False,
            length_penalty=1.0,
            max_new_tokens=length or search.longest(width),
            min_new_tokens=length or None,
        )
        return list(targets.tolist())

    def decode(self, tokens: list[int]) -> str:
        if self._ours:
            return self._ours.decode(tokens)
        return str(self._tokenizer.decode(tokens, skip_special_tokens=True))


def main() -> None:
    run_peer(MarianPeer)
