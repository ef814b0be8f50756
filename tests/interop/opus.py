"""Folders as OPUS-MT publishes its Marian models, with random weights."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yaml

from tests.interop.random_models import opus_sides, random_model

OPTIONS: dict[str, Any] = yaml.safe_load("""{
type: transformer, dim-emb: 32, enc-depth: 2, dec-depth: 3, transformer-heads: 4, transformer-dim-ffn: 48,
transformer-ffn-activation: swish, transformer-ffn-depth: 2, transformer-aan-depth: 2, transformer-aan-nogate: false,
transformer-decoder-autoreg: self-attention, transformer-no-projection: false, transformer-preprocess: "",
transformer-postprocess: dan, transformer-postprocess-emb: d, transformer-train-position-embeddings: false,
transformer-tied-layers: [], layer-normalization: false, right-left: false, ulr: false, ulr-dim-emb: 0,
dec-cell-base-depth: 2, dec-cell-high-depth: 1, tied-embeddings: false, tied-embeddings-src: false,
tied-embeddings-all: true, input-types: [], version: v1.9.0}""")
PARTS = {
    **{
        f"{theirs}.{projection}_proj": (f"{kind}_W{projection[0]}", f"{kind}_b{projection[0]}")
        for kind, theirs in (("self", "self_attn"), ("context", "encoder_attn"))
        for projection in ("q", "k", "v", "out")
    },
    "self_attn_layer_norm": ("self_Wo_ln_scale", "self_Wo_ln_bias"),
    "encoder_attn_layer_norm": ("context_Wo_ln_scale", "context_Wo_ln_bias"),
    "fc1": ("ffn_W1", "ffn_b1"),
    "fc2": ("ffn_W2", "ffn_b2"),
    "final_layer_norm": ("ffn_ffn_ln_scale", "ffn_ffn_ln_bias"),
}
"""Marian's names of the weight and the bias of each part of a layer, by the name in transformers.

As in BART_CONVERTER of convert_marian_to_pytorch.py, which newer packages of transformers lack.
"""


@dataclass
class Opus:
    """What a folder is to hold. Two vocabularies come with embeddings that are not tied between the sides.

    `output` names an output layer of its own: `Wt` as Marian writes it, or `W`, transposed, as it did once.
    `model` is the MarianMTModel that transformers' conversion makes of the arrays.
    """

    tags: Sequence[str] = ()
    two_vocabularies: bool = False
    output: str = ""
    model: Any = None
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    vocabularies: list[dict[str, int]] = field(default_factory=list)

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True)
        for side, (model, _) in zip(("source", "target"), opus_sides(), strict=True):
            (folder / f"{side}.spm").write_bytes(model)
        segmented = [pieces for _, pieces in opus_sides()]
        special = ["</s>", "<unk>"]
        if self.two_vocabularies:
            longest = max(map(len, segmented))  # transformers' converter wants equal sizes
            lists = [[*special, *side, *(f"{n}…" for n in range(longest - len(side)))] for side in segmented]
        else:
            # A corpus has rare characters that its SentencePiece model lacks; and YAML has words of its own.
            lists = [[*special, *sorted({*segmented[0], *segmented[1], "漢", "no", "~", '"', "'"}), *self.tags]]
        self.vocabularies = [{piece: id for id, piece in enumerate(side)} for side in lists]
        names = ["opus.src.vocab.yml", "opus.trg.vocab.yml"] if self.two_vocabularies else ["opus.vocab.yml"]
        for name, vocabulary in zip(names, self.vocabularies, strict=True):
            lines = (f"{json.dumps(piece, ensure_ascii=False)}: {id}\n" for piece, id in vocabulary.items())
            (folder / name).write_text("".join(lines), encoding="utf-8")
        search: dict[str, object] = {"models": ["model.npz"], "vocabs": [names[0], names[-1]]}
        search |= {"beam-size": 6, "normalize": 1, "word-penalty": 0}
        (folder / "decoder.yml").write_text(yaml.safe_dump(search), encoding="utf-8")
        (folder / "LICENSE").write_text("Attribution 4.0 International\n\n====\n", encoding="utf-8")
        tied = {} if not self.two_vocabularies else {"tied-embeddings-all": False, "tied-embeddings": not self.output}
        size = len(self.vocabularies[0])
        self.model = random_model(
            "MarianMTModel",
            **dict.fromkeys(("vocab_size", "decoder_vocab_size"), size + 1),
            **dict.fromkeys(("pad_token_id", "decoder_start_token_id"), size),
            eos_token_id=0,
            forced_eos_token_id=None,
            activation_function="swish",
            share_encoder_decoder_embeddings=not self.two_vocabularies,
            tie_word_embeddings=not self.output,
        )
        self.arrays = {name: np.ascontiguousarray(value.detach()) for name, value in self._weights()}
        self.save(folder, {**OPTIONS, **tied, "dim-vocabs": [size, size]})
        return folder

    def save(self, folder: Path, options: Mapping[str, Any]) -> None:
        described = np.frombuffer(yaml.safe_dump(dict(options)).encode() + b"\0", dtype=np.int8)
        np.savez(folder / "model.npz", **self.arrays, **{"special:model.yml": described})  # type: ignore[arg-type]

    def _weights(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the weights under Marian's names, without the last piece, padding, whose weights become zero."""
        encoder, decoder, head = self.model.model.encoder, self.model.model.decoder, self.model.lm_head
        with torch.no_grad():
            for weight in (encoder.embed_tokens.weight, decoder.embed_tokens.weight, head.weight):
                weight[-1] = 0
        if self.two_vocabularies:
            yield "encoder_Wemb", encoder.embed_tokens.weight[:-1]
            yield "decoder_Wemb", decoder.embed_tokens.weight[:-1]
        else:
            yield "Wemb", self.model.model.shared.weight[:-1]
        if self.output:
            yield f"decoder_ff_logit_out_{self.output}", head.weight[:-1] if self.output == "Wt" else head.weight[:-1].T
        yield "decoder_ff_logit_out_b", self.model.final_logits_bias[:, :-1]
        for side, layers in (("encoder", encoder.layers), ("decoder", decoder.layers)):
            for number, layer in enumerate(layers, start=1):
                modules = dict(layer.named_modules())
                for part in PARTS.keys() & modules.keys():
                    weight, bias = (f"{side}_l{number}_{name}" for name in PARTS[part])
                    matrix = modules[part].weight
                    yield weight, matrix.T if matrix.dim() == 2 else matrix[None]
                    yield bias, modules[part].bias[None]
