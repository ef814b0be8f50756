"""Import of M2M-100, NLLB-200 and mBART-50 models of transformers (M2M100ForConditionalGeneration and MBart...).

In all three, a source begins with the token of the source language, and a translation with that of the target language.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from mt.config import ModelConfig
from mt.errors import ModelError, problems
from mt.interop.foreign import ForeignModel, Side
from mt.interop.huggingface_files import (
    ACTIVATIONS,
    BIAS,
    OUTPUT,
    SHARED,
    SIZES,
    SOURCE,
    TARGET,
    Options,
    final_bias,
    learned_weights,
    missing_files,
    option_problems,
    read_json,
    read_vocabulary,
    read_weights,
    search_options,
    weight_files,
)
from mt.interop.language_codes import LANGUAGE_TOKENS
from mt.interop.layer_names import huggingface_layer_rows
from mt.interop.mapping import Row, parameter_rows
from mt.interop.origin import ImportOptions, Origin, shown
from mt.tokenizer import sentencepiece_ids

SINUSOIDS = ("model.encoder.embed_positions.weights", "model.decoder.embed_positions.weights")
LEARNED = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
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


M2M100, NLLB200, MBART50 = LANGUAGE_TOKENS  # names of the families
MODEL_TYPES = ("m2m_100", "mbart")


def read_multilingual(origin: Origin, import_options: ImportOptions) -> ForeignModel:
    """Read a folder with a model of one of the families.

    Raises:
        ModelError: Files are missing or cannot be read.
    """
    folder = origin.folder
    config, generation = (read_json(folder / name) for name in ("config.json", "generation_config.json"))
    has_pieces = (folder / PIECES).is_file()
    family = MBART50 if config["model_type"] == "mbart" else M2M100 if has_pieces else NLLB200
    tokens = LANGUAGE_TOKENS[family]
    files = ["config.json", SENTENCEPIECE, *weight_files(folder, import_options.allow_pickle)]
    files += [PIECES] if family == M2M100 else []
    if lacking := missing_files(folder, files):
        raise ModelError(problems(f"{folder} cannot be imported as an {family} model", lacking))
    tokenizer = read_json(folder / "tokenizer_config.json")
    ids, wrong = _vocabulary(folder, family, config.get("vocab_size"))
    start = config.get("decoder_start_token_id", SPECIAL["</s>"])
    side = Side(ids, (folder / SENTENCEPIECE).read_bytes(), SPECIAL["<unk>"], SPECIAL["</s>"], SPECIAL["<pad>"], start)
    architecture = _architecture(config, family)
    weights, misplaced = _learned(read_weights(folder, import_options.allow_pickle), architecture)
    targets = _targets(tokens, ids, {**config, **generation}.get("forced_bos_token_id"))
    return ForeignModel(
        name=origin.name,
        kind=f"{family} model (Hugging Face)",
        architecture=architecture,
        table=_rows,
        weights=weights,
        source=side,
        target=side,
        decoding=search_options(config, generation),
        directions={"source": [*tokens], "target": targets},
        problems=[*option_problems(config, OPTIONS), *_tokenizer_problems(tokenizer), *wrong, *misplaced],
        provenance=origin.provenance(files),
        tags=tokens,
    )


def _tokenizer_problems(tokenizer: Mapping[str, Any]) -> Iterator[str]:
    for name, (default, accepted) in TOKENIZER_OPTIONS.items():
        if (value := tokenizer.get(name, default)) not in accepted:
            yield f"{name} is {shown(value)} in tokenizer_config.json; accepted: {accepted[0]!r}"


def _vocabulary(folder: Path, family: str, size: object) -> tuple[dict[str, int], list[str]]:
    """Return the ids of all pieces and a list of problems.

    If `size` exceeds the number of pieces and language tokens, the remaining ids get names that occur in no text.
    """
    wrong = []
    if family == M2M100:
        ids = read_vocabulary(folder / PIECES)
    else:
        order = sentencepiece_ids((folder / SENTENCEPIECE).read_bytes(), str(folder / SENTENCEPIECE))
        first = tuple(sorted(order, key=order.__getitem__)[: len(SPECIAL_PIECES)])
        if first != SPECIAL_PIECES:
            wrong.append(f"{SENTENCEPIECE} begins with {first}; accepted: {SPECIAL_PIECES}")
        ids = {piece: id + 1 for piece, id in order.items() if id >= len(SPECIAL_PIECES)} | SPECIAL
    tokens = LANGUAGE_TOKENS[family].values()
    for piece in (*tokens, *(() if family == M2M100 else ("<mask>",))):
        ids.setdefault(piece, len(ids))
    if not (isinstance(size, int) and len(ids) <= size):
        listed = f"its pieces and the tokens of {len(tokens)} languages are {len(ids)}"
        wrong.append(f"vocab_size is {shown(size)}, but {listed}; accepted: at least as many")
        return ids, wrong
    unused = {f"<unused {id}>": id for id in range(len(ids), size)}
    return ids | unused, wrong


def _targets(tokens: Mapping[str, str], ids: Mapping[str, int], forced: object) -> Sequence[str]:
    """Return only the language whose token has the id `forced`, or all languages of the family if there is none.

    `forced` is the first token of every translation, if the configuration sets one.
    """
    return [language for language, token in tokens.items() if ids.get(token) == forced] or [*tokens]


def _architecture(config: Mapping[str, Any], family: str) -> dict[str, Any]:
    """Return the values of our ModelConfig. An unknown activation is reported by `option_problems`."""
    learned = family == MBART50
    activation = config.get("activation_function", OPTIONS["activation_function"][0])
    return {
        "norm": "pre",
        "positions": "learned" if learned else "tensor2tensor",
        "first_position": 0 if learned else SPECIAL["<pad>"] + 1,
        "embedding_norm": learned,
        "activation": ACTIVATIONS.get(activation, "relu"),
        "scale_embedding": bool(config.get("scale_embedding", not learned)),
        **{ours: config[name] for ours, name in SIZES.items() if name in config},
    }


def _learned(weights: Mapping[str, Tensor], architecture: Mapping[str, Any]) -> tuple[dict[str, Tensor], list[str]]:
    """Return the weights without constants and tied copies, and a message for each wrong constant or copy."""
    copies = [(SHARED, copy) for copy in (SOURCE, TARGET, OUTPUT)]
    learned, wrong = learned_weights(weights, copies, architecture, () if architecture["embedding_norm"] else SINUSOIDS)
    for name in LEARNED:
        if name in learned:
            learned[name] = learned[name][POSITION_OFFSET:]
    return {**learned, BIAS: final_bias(learned, len(learned.get(SHARED, ())))}, wrong


def _rows(config: ModelConfig) -> Iterator[Row]:
    yield Row((SHARED,), ("embedding.tokens.weight",))
    yield Row((BIAS,), ("embedding.bias",))
    for side, layer in (("encoder", "source_input"), ("decoder", "target_input")):
        yield from parameter_rows(f"model.{side}.layer_norm", f"{side}.norm")
        if config.embedding_norm:
            yield from parameter_rows(f"model.{side}.layernorm_embedding", f"{layer}.norm")
        if config.positions == "learned":
            yield Row((f"model.{side}.embed_positions.weight",), (f"{layer}.positions.weight",))
    yield from huggingface_layer_rows(config)
