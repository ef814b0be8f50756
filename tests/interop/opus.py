"""Folders as OPUS-MT publishes its Marian models, with random weights."""

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece
import yaml

from tests.conftest import sentences

OPTIONS = {
    "type": "transformer",
    "dim-emb": 32,
    "enc-depth": 2,
    "dec-depth": 3,
    "transformer-heads": 4,
    "transformer-dim-ffn": 48,
    "transformer-ffn-activation": "swish",
    "transformer-ffn-depth": 2,
    "transformer-aan-depth": 2,
    "transformer-aan-nogate": False,
    "transformer-decoder-autoreg": "self-attention",
    "transformer-no-projection": False,
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-emb": "d",
    "transformer-train-position-embeddings": False,
    "transformer-tied-layers": [],
    "layer-normalization": False,
    "right-left": False,
    "ulr": False,
    "ulr-dim-emb": 0,
    "dec-cell-base-depth": 2,
    "dec-cell-high-depth": 1,
    "tied-embeddings": False,
    "tied-embeddings-src": False,
    "tied-embeddings-all": True,
    "input-types": [],
    "version": "v1.9.0",
}


@dataclass
class Opus:
    """What a folder is to hold. Two vocabularies come with embeddings that are not tied between the sides.

    `output` names an output layer of its own: `Wt` as Marian writes it, or `W`, transposed, as it did once.
    """

    tags: Sequence[str] = ()
    two_vocabularies: bool = False
    output: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    vocabularies: list[dict[str, int]] = field(default_factory=list)

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True)
        texts = (sentences(300), [text[::-1].lower() for text in sentences(300)])
        models = [unigram(text) for text in texts]
        for side, model in zip(("source", "target"), models, strict=True):
            (folder / f"{side}.spm").write_bytes(model)
        segmented = [
            sorted({piece for text in side for piece in pieces(model, text)})
            for model, side in zip(models, texts, strict=True)
        ]
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
        options = {
            **OPTIONS,
            **tied,
            "dim-vocabs": [len(self.vocabularies[0]), len(self.vocabularies[-1])],
            **self.changes,
        }
        self.arrays = weights(options, self.output)
        self.save(folder, options)
        return folder

    def save(self, folder: Path, options: Mapping[str, Any]) -> None:
        np.savez(folder / "model.npz", **self.arrays, **{"special:model.yml": described(options)})  # type: ignore[arg-type]


def described(options: Mapping[str, Any]) -> np.ndarray:
    """As Marian keeps it: YAML in bytes, which end with zero."""
    return np.frombuffer(yaml.safe_dump(dict(options)).encode() + b"\0", dtype=np.int8)


def unigram(lines: Sequence[str]) -> bytes:
    """A SentencePiece model as OPUS-MT trains them: unigram, without bytes for what it does not know."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=90, hard_vocab_limit=False, minloglevel=2
    )
    return model.getvalue()


def pieces(model: bytes, text: str) -> list[str]:
    found: list[str] = sentencepiece.SentencePieceProcessor(model_proto=model).encode(text, out_type=str)
    return found


def weights(options: Mapping[str, Any], output: str = "") -> dict[str, np.ndarray]:
    """Random weights under Marian's names, large enough that translations differ."""
    random = np.random.default_rng(1)
    d, inner = options["dim-emb"], options["transformer-dim-ffn"]
    found: dict[str, np.ndarray] = {}

    def add(names: Iterable[str], *shape: int, scale: float = 0.3, mean: float = 0.0) -> None:
        for name in names:
            found[name] = random.normal(mean, scale, shape).astype(np.float32)

    def norm(name: str) -> None:
        add([f"{name}_ln_scale"], 1, d, scale=0.2, mean=1)
        add([f"{name}_ln_bias"], 1, d)

    source, target = options["dim-vocabs"]
    shared = options["tied-embeddings-all"] or options["tied-embeddings-src"]
    if shared:
        add(["Wemb"], source, d)
    else:
        add(["encoder_Wemb"], source, d)
        add(["decoder_Wemb"], target, d)
    if output:
        add([f"decoder_ff_logit_out_{output}"], *((target, d) if output == "Wt" else (d, target)))
    add(["decoder_ff_logit_out_b"], 1, target, scale=1.0)
    for side, depth in (("encoder", options["enc-depth"]), ("decoder", options["dec-depth"])):
        for layer in range(1, depth + 1):
            name = f"{side}_l{layer}"
            for kind in ("self", "context")[: 1 + (side == "decoder")]:
                add([f"{name}_{kind}_W{letter}" for letter in "qkvo"], d, d)
                add([f"{name}_{kind}_b{letter}" for letter in "qkvo"], 1, d)
                norm(f"{name}_{kind}_Wo")
            add([f"{name}_ffn_W1"], d, inner)
            add([f"{name}_ffn_b1"], 1, inner)
            add([f"{name}_ffn_W2"], inner, d)
            add([f"{name}_ffn_b2"], 1, d)
            norm(f"{name}_ffn_ffn")
    return found
