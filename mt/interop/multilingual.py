"""Import of M2M-100, NLLB-200 and mBART-50 models of transformers (M2M100ForConditionalGeneration and MBart...).

In all three, a source begins with the token of the source language, and a translation with that of the target language.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mt.config import ModelConfig
from mt.errors import ModelError, problems
from mt.interop.foreign import ForeignModel, Side
from mt.interop.huggingface_files import (
    ACTIVATIONS,
    SIZES,
    Options,
    missing_files,
    option_problems,
    read_json,
    read_vocabulary,
    read_weights,
    search_options,
    weight_files,
)
from mt.interop.huggingface_layers import layer_rows
from mt.interop.language_codes import M2M100, MBART50, NLLB200
from mt.interop.mapping import Row, Table, drop_tied_copies, parameter_rows
from mt.interop.origin import ImportOptions, Origin, shown
from mt.languages import standard_tag
from mt.model.embedding import position_table
from mt.tokenizer import sentencepiece_ids

BIAS, SHARED, OUTPUT = "final_logits_bias", "model.shared.weight", "lm_head.weight"
COPIES = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", OUTPUT)
SINUSOIDS = ("model.encoder.embed_positions.weights", "model.decoder.embed_positions.weights")
SENTENCEPIECE, PIECES = "sentencepiece.bpe.model", "vocab.json"

SPECIAL = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}
"""Special pieces and their ids in fairseq. The ids of other pieces are those of the SentencePiece model plus 1."""
SPECIAL_PIECES = ("<unk>", "<s>", "</s>")  # the first pieces of the SentencePiece model
POSITION_OFFSET = 2  # number of rows before the row of the first token in a learned position table

OPTIONS: Options = {
    "activation_function": ("gelu", tuple(ACTIVATIONS)),
    "scale_embedding": (True, (True, False)),
    "tie_word_embeddings": (True, (True,)),
    "pad_token_id": (1, (SPECIAL["<pad>"],)),
    "eos_token_id": (2, (SPECIAL["</s>"],)),
}
TOKENIZER_OPTIONS: Options = {"legacy_behaviour": (False, (False, None)), "language_codes": ("m2m100", ("m2m100",))}


@dataclass(frozen=True)
class Family:
    """Family of models: its name, the language token of each language tag, and the last tokens of the vocabulary."""

    name: str
    tokens: Mapping[str, str]
    last: tuple[str, ...] = ()

    @property
    def learned(self) -> bool:
        """True if positions are learned and a LayerNorm follows the embeddings."""
        return self.name == "mBART-50"


FAMILIES = {
    "m2m100": Family("M2M-100", {standard_tag(code): f"__{code}__" for code in M2M100}),
    "nllb200": Family("NLLB-200", {standard_tag(code): code for code in NLLB200}, ("<mask>",)),
    "mbart50": Family("mBART-50", {standard_tag(code.split("_")[0]): code for code in MBART50}, ("<mask>",)),
}
MODEL_TYPES = ("m2m_100", "mbart")


def read_multilingual(origin: Origin, import_options: ImportOptions) -> ForeignModel:
    """Read a folder with a model of one of the families.

    Raises:
        ModelError: Files are missing or cannot be read.
    """
    folder = origin.folder
    config, generation = (read_json(folder / name) for name in ("config.json", "generation_config.json"))
    has_pieces = (folder / PIECES).is_file()
    family = FAMILIES["mbart50" if config["model_type"] == "mbart" else "m2m100" if has_pieces else "nllb200"]
    files = ["config.json", SENTENCEPIECE, *weight_files(folder, import_options.allow_pickle)]
    files += [PIECES] if family is FAMILIES["m2m100"] else []
    if lacking := missing_files(folder, files):
        raise ModelError(problems(f"{folder} cannot be imported as an {family.name} model", lacking))
    tokenizer = read_json(folder / "tokenizer_config.json")
    ids, wrong = _vocabulary(folder, family, config.get("vocab_size"))
    start = config.get("decoder_start_token_id", SPECIAL["</s>"])
    side = Side(ids, (folder / SENTENCEPIECE).read_bytes(), SPECIAL["<unk>"], SPECIAL["</s>"], SPECIAL["<pad>"], start)
    architecture = _architecture(config, family)
    weights, misplaced = _learned(read_weights(folder, import_options.allow_pickle), architecture)
    targets = _targets(family, ids, {**config, **generation}.get("forced_bos_token_id"))
    return ForeignModel(
        name=origin.name,
        kind=f"{family.name} model (Hugging Face)",
        architecture=architecture,
        table=_table,
        weights=weights,
        source=side,
        target=side,
        decoding=search_options(config, generation),
        directions={"source": [*family.tokens], "target": targets},
        problems=[*option_problems(config, OPTIONS), *_tokenizer_problems(tokenizer), *wrong, *misplaced],
        provenance=origin.provenance(files),
        tags=family.tokens,
    )


def _tokenizer_problems(tokenizer: Mapping[str, Any]) -> Iterator[str]:
    for name, (default, accepted) in TOKENIZER_OPTIONS.items():
        if (value := tokenizer.get(name, default)) not in accepted:
            yield f"{name} is {shown(value)} in tokenizer_config.json; accepted: {accepted[0]!r}"


def _vocabulary(folder: Path, family: Family, size: object) -> tuple[dict[str, int], list[str]]:
    """Return the ids of all pieces and a list of problems.

    If `size` exceeds the number of pieces and language tokens, the remaining ids get names that occur in no text.
    """
    wrong = []
    if family is FAMILIES["m2m100"]:
        ids = read_vocabulary(folder / PIECES)
    else:
        order = sentencepiece_ids((folder / SENTENCEPIECE).read_bytes(), str(folder / SENTENCEPIECE))
        first = tuple(sorted(order, key=order.__getitem__)[: len(SPECIAL_PIECES)])
        if first != SPECIAL_PIECES:
            wrong.append(f"{SENTENCEPIECE} begins with {first}; accepted: {SPECIAL_PIECES}")
        ids = {piece: id + 1 for piece, id in order.items() if id >= len(SPECIAL_PIECES)} | SPECIAL
    for piece in (*family.tokens.values(), *family.last):
        ids.setdefault(piece, len(ids))
    if not (isinstance(size, int) and len(ids) <= size):
        listed = f"its pieces and the tokens of {len(family.tokens)} languages are {len(ids)}"
        wrong.append(f"vocab_size is {shown(size)}, but {listed}; accepted: at least as many")
        return ids, wrong
    unused = {f"<unused {id}>": id for id in range(len(ids), size)}
    return ids | unused, wrong


def _targets(family: Family, ids: Mapping[str, int], forced: object) -> Sequence[str]:
    """Return only the language whose token has the id `forced`, or all languages of the family if there is none.

    `forced` is the first token of every translation, if the configuration sets one.
    """
    return [language for language, token in family.tokens.items() if ids.get(token) == forced] or [*family.tokens]


def _architecture(config: Mapping[str, Any], family: Family) -> dict[str, Any]:
    """Return the values of our ModelConfig. An unknown activation is reported by `option_problems`."""
    activation = config.get("activation_function", OPTIONS["activation_function"][0])
    return {
        "norm": "pre",
        "positions": "learned" if family.learned else "tensor2tensor",
        "first_position": 0 if family.learned else SPECIAL["<pad>"] + 1,
        "embedding_norm": family.learned,
        "activation": ACTIVATIONS.get(activation, "relu"),
        "scale_embedding": bool(config.get("scale_embedding", family.name != "mBART-50")),
        **{ours: config[name] for ours, name in SIZES.items() if name in config},
    }


def _learned(weights: Mapping[str, Tensor], architecture: Mapping[str, Any]) -> tuple[dict[str, Tensor], list[str]]:
    """Return the weights without constants and tied copies, and a message for each wrong constant or copy."""
    learned, wrong = drop_tied_copies(weights, [(SHARED, copy) for copy in COPIES])
    for name in SINUSOIDS:
        if name in learned and not _is_sinusoidal(learned.pop(name), architecture):
            wrong.append(f"{name} is not the sinusoidal table; accepted: sinusoidal positions")
    for name in (name.removesuffix("s") for name in SINUSOIDS):
        if name in learned:
            learned[name] = learned[name][POSITION_OFFSET:]
    if BIAS in learned:
        learned[BIAS] = learned[BIAS].flatten()
    elif SHARED in learned:
        learned[BIAS] = torch.zeros(len(learned[SHARED]))
    return learned, wrong


def _is_sinusoidal(stored: Tensor, architecture: Mapping[str, Any]) -> bool:
    """Return whether `stored` is the table of sinusoidal positions.

    Its first rows are for padding and are not compared.
    """
    first, d_model = architecture["first_position"], architecture.get("d_model")
    if stored.dim() != 2 or stored.shape[1] != d_model or len(stored) <= first:
        return False
    shape = {"encoder_layers": 1, "decoder_layers": 1, "d_ff": 1, "heads": 1, "d_model": d_model}
    config = ModelConfig.model_validate({**shape, "positions": "tensor2tensor", "first_position": first})
    return torch.allclose(stored[first:].float(), position_table(config, len(stored) - first), atol=1e-3)


def _table(config: ModelConfig) -> Table:
    return tuple(_rows(config))


def _rows(config: ModelConfig) -> Iterator[Row]:
    yield Row((SHARED,), ("embedding.tokens.weight",))
    yield Row((BIAS,), ("embedding.bias",))
    for side, layer in (("encoder", "source_input"), ("decoder", "target_input")):
        yield from parameter_rows(f"model.{side}.layer_norm", f"{side}.norm")
        if config.embedding_norm:
            yield from parameter_rows(f"model.{side}.layernorm_embedding", f"{layer}.norm")
        if config.positions == "learned":
            yield Row((f"model.{side}.embed_positions.weight",), (f"{layer}.positions.weight",))
    yield from layer_rows(config)
