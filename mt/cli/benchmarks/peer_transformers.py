"""Contender: MarianMTModel of Hugging Face transformers, loaded from a model directory of transformers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import torch
from transformers import AutoTokenizer, MarianConfig, MarianMTModel

from mt.tokenizer import EOS, Tokenizer

from .harness import PeerSearch, PeerSetup, run_contender, sorted_batches


class TextCodec(Protocol):
    """Converts text to source ids with EOS, and target ids to text."""

    def encode(self, lines: Sequence[str]) -> list[list[int]]: ...

    def decode(self, targets: Sequence[list[int]]) -> list[str]: ...


class MarianCodec:
    """Codec with the tokenizer of a model directory of transformers."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer = AutoTokenizer.from_pretrained(folder)

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        return list(map(list, self._tokenizer(list(lines)).input_ids))

    def decode(self, targets: Sequence[list[int]]) -> list[str]:
        return list(self._tokenizer.batch_decode(list(targets), skip_special_tokens=True))


class TokenizerCodec:
    """Codec with our tokenizer, for untrained models, which have no tokenizer of transformers."""

    def __init__(self, file: Path) -> None:
        self._tokenizer = Tokenizer.load(file)

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        return [[*ids, EOS] for ids in self._tokenizer.encode_many(lines)]

    def decode(self, targets: Sequence[list[int]]) -> list[str]:
        return list(map(self._tokenizer.decode, targets))


class MarianPeer:
    """Peer with MarianMTModel.generate, for batches of sentences that are sorted by length.

    If the model directory has the file of our tokenizer, the model is untrained, and its weights are random.
    """

    def __init__(self, setup: PeerSetup) -> None:
        torch.set_num_threads(setup.workers * setup.threads)
        folder = Path(setup.model)
        dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[setup.dtype]
        self._codec: TextCodec
        if (folder / "tokenizer.model").exists():
            self._codec = TokenizerCodec(folder / "tokenizer.model")
            model = MarianMTModel(MarianConfig.from_pretrained(folder, dtype=dtype))
            model.to(dtype)  # type: ignore[arg-type]  # the wrapper of transformers hides the signature
        else:
            self._codec = MarianCodec(folder)
            model = MarianMTModel.from_pretrained(folder, dtype=dtype)
        self._model = model.to(setup.device).train(False)  # type: ignore[arg-type]
        config = self._model.config
        self._special = {config.pad_token_id, config.eos_token_id, config.decoder_start_token_id}

    def encode(self, line: str) -> list[int]:
        return self._codec.encode([line])[0]

    @torch.inference_mode()
    def translate(self, sources: Sequence[list[int]], search: PeerSearch) -> list[list[int]]:
        targets: list[list[int]] = [[] for _ in sources]
        for length, places in search.groups(len(sources)):
            for batch in sorted_batches(sources, places, search.batching):
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

    def translate_text(self, lines: Sequence[str], search: PeerSearch) -> list[str]:
        return self._codec.decode(self.translate(self._codec.encode(lines), search))

    def decode(self, tokens: list[int]) -> str:
        return self._codec.decode([tokens])[0]


def main() -> None:
    run_contender(MarianPeer)
