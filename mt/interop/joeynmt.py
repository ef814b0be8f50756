"""Import of JoeyNMT 2 Transformers (joeynmt/transformer_layers.py).

A checkpoint is a pickle. It is read only if the caller allows pickles, and by torch's reader for plain tensors
(`weights_only`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mt.config import ModelConfig
from mt.errors import ModelError, problems
from mt.interop.foreign import ForeignModel, Side
from mt.interop.mapping import Row, Table, drop_tied_copies, embedding_rows, parameter_rows
from mt.interop.marian import read_yaml
from mt.interop.origin import ImportOptions, Origin, load_pickle, named_tensors, require_pickles, shown

SOURCE, TARGET, OUTPUT = "src_embed.lut.weight", "trg_embed.lut.weight", "decoder.output_layer.weight"
CONSTANTS = ("encoder.pe.pe", "decoder.pe.pe")
EPSILON = 1e-6
LONGEST = 1024  # tokens; JoeyNMT has positions for 5,000

SPECIAL = {"unk": "<unk>", "pad": "<pad>", "bos": "<s>", "eos": "</s>"}  # defaults of the configuration
ACTIVATIONS = ("relu", "gelu", "swish")

STACK: Mapping[str, tuple[Any, ...]] = {
    "type": ("transformer",),
    "layer_norm": ("pre", "post"),
    "activation": ACTIVATIONS,
    "alpha": (1.0,),
}
"""Options of `model.encoder` and `model.decoder` with the supported values, which must be equal in both."""

SECTIONS = (
    "data.src",
    "data.trg",
    "data.src.tokenizer_cfg",
    "data.trg.tokenizer_cfg",
    "model.encoder",
    "model.decoder",
)

TEXT: Mapping[str, tuple[Any, ...]] = {
    "level": ("bpe",),
    "tokenizer_type": ("sentencepiece",),
    "lowercase": (False,),
    "tokenizer_cfg.pretokenizer": ("none", None),
}
"""Options of `data.src` and `data.trg` with the supported values."""

NORMS = {
    "encoder": {"layer_norm": "around_self_attention.norm"},
    "decoder": {"x_layer_norm": "around_self_attention.norm", "dec_layer_norm": "around_cross_attention.norm"},
}
ATTENTIONS = {
    "encoder": {"src_src_att": "self_attention"},
    "decoder": {"trg_trg_att": "self_attention", "src_trg_att": "cross_attention"},
}
PROJECTIONS = {"k_layer": "key", "v_layer": "value", "q_layer": "query", "output_layer": "output"}
FEED_FORWARD = {
    "feed_forward.pwff_layer.0": "feed_forward.inner",
    "feed_forward.pwff_layer.3": "feed_forward.outer",
    "feed_forward.layer_norm": "around_feed_forward.norm",
}


def read_joeynmt(origin: Origin, import_options: ImportOptions) -> ForeignModel:
    """Read a model of JoeyNMT from a folder.

    Raises:
        ModelError: Files are missing or cannot be read.
    """
    folder = origin.folder
    options = JoeyConfig.read(folder / "config.yaml")
    checkpoint = _checkpoint(folder)
    require_pickles(checkpoint, import_options)
    weights = load_pickle(checkpoint).get("model_state")
    if not isinstance(weights, dict):
        raise ModelError(f"{checkpoint}: has no entry 'model_state'; accepted: a JoeyNMT checkpoint")
    texts = [options.at(f"data.{side}") for side in ("src", "trg")]
    vocabularies = [
        _file_in(folder, text.get("voc_file"), f"{side}_vocab.txt")
        for text, side in zip(texts, ("src", "trg"), strict=True)
    ]
    pieces = [_file_in(folder, (text.get("tokenizer_cfg") or {}).get("model_file"), "") for text in texts]
    lacking = [
        f"{path.name or 'the SentencePiece model'} is missing"
        for path in (*vocabularies, *pieces)
        if not path.is_file()
    ]
    if lacking:
        raise ModelError(problems(f"{folder} cannot be imported as a JoeyNMT model", dict.fromkeys(lacking)))
    source, target = (options.side(path, model) for path, model in zip(vocabularies, pieces, strict=True))
    architecture = options.architecture()
    copies = [(TARGET, SOURCE)] if architecture["tie_source"] else []
    copies += [(TARGET, OUTPUT)] if architecture["tie_output"] else []
    learned = {name: weight for name, weight in named_tensors(weights, checkpoint).items() if name not in CONSTANTS}
    weights, wrong = drop_tied_copies(learned, copies)
    return ForeignModel(
        name=origin.name,
        kind="JoeyNMT model",
        architecture=architecture,
        table=joeynmt_table,
        weights=weights,
        source=source,
        target=target,
        decoding=options.decoding(),
        directions=["-".join(str(text.get("lang")) for text in texts)],
        problems=[*options.problems(), *wrong],
        provenance=origin.provenance(dict.fromkeys(p.name for p in (checkpoint, *vocabularies, *pieces))),
    )


def _checkpoint(folder: Path) -> Path:
    """Return the path of best.ckpt, or else of the only checkpoint.

    Raises:
        ModelError: There is no best.ckpt, and not exactly one other checkpoint.
    """
    paths = [folder / "best.ckpt"] if (folder / "best.ckpt").is_file() else sorted(folder.glob("*.ckpt"))
    if len(paths) != 1:
        names = ", ".join(path.name for path in paths) or "none"
        raise ModelError(f"{folder}: checkpoints are: {names}; accepted: best.ckpt, or one .ckpt file")
    return paths[0]


def _file_in(folder: Path, stated: Any, usual: str) -> Path:
    """Return the path in `folder` of the file named in the configuration (`stated`), or else of the file `usual`."""
    named = folder / Path(str(stated)).name if stated else folder / usual
    return named if named.is_file() or not usual else folder / usual


@dataclass(frozen=True)
class JoeyConfig:
    """Options in config.yaml."""

    values: Mapping[str, Any]

    @classmethod
    def read(cls, path: Path) -> "JoeyConfig":
        """Read config.yaml.

        Raises:
            ModelError: A section is missing, as in files of JoeyNMT 1 (`src: en`).
        """
        options = cls(read_yaml(path))
        wrong = [
            f"{name} is {shown(value)}; accepted: a section with options, as in JoeyNMT 2"
            for name in SECTIONS
            if not isinstance(value := options.at(name), dict)
        ]
        if wrong:
            raise ModelError(problems(f"{path} cannot be read", wrong))
        return options

    def at(self, path: str) -> Any:
        """Return the value at a path such as `model.encoder`; an empty dictionary if there is none."""
        value: Any = self.values
        for part in path.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return {} if value is None else value

    def problems(self) -> Iterator[str]:
        """Yield a message for each option with an unsupported value."""
        for side in ("encoder", "decoder"):
            yield from self._outside(f"model.{side}", STACK, {"activation": "relu", "alpha": 1.0})
        for side in ("src", "trg"):
            yield from self._outside(f"data.{side}", TEXT, {"lowercase": False, "tokenizer_cfg.pretokenizer": "none"})
        for name in ("layer_norm", "activation", "hidden_size", "ff_size", "num_heads"):
            one, other = (self.at(f"model.{side}.{name}") for side in ("encoder", "decoder"))
            if one != other:
                differ = f"model.encoder.{name} is {shown(one)} and model.decoder.{name} is {shown(other)}"
                yield f"{differ}; accepted: equal values"
        if self._scaled("encoder") != self._scaled("decoder"):
            yield "embeddings.scale differs between model.encoder and model.decoder; accepted: equal values"
        if self.at("data.special_symbols.lang_tags"):
            yield "data.special_symbols.lang_tags are set; accepted: none"

    def _outside(self, path: str, accepted: Mapping[str, tuple[Any, ...]], absent: Mapping[str, Any]) -> Iterator[str]:
        for name, values in accepted.items():
            value = self.at(f"{path}.{name}")
            value = absent.get(name) if value == {} else value
            if value not in values:
                yield f"{path}.{name} is {shown(value)}; accepted: {', '.join(map(repr, values))}"

    def _scaled(self, side: str) -> bool:
        return self.at(f"model.{side}.embeddings.scale") is True

    def side(self, vocabulary: Path, sentencepiece: Path) -> Side:
        """Read a vocabulary file with one piece on each line.

        The special pieces come first, even if the file omits them.

        Raises:
            ModelError: The file cannot be read.
        """
        try:
            lines = vocabulary.read_text(encoding="utf-8").split("\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ModelError(f"{vocabulary}: cannot be read ({error})") from error
        special = {name: self.at(f"data.special_symbols.{name}_token") or usual for name, usual in SPECIAL.items()}
        pieces = dict.fromkeys([*special.values(), *(line for line in lines if line)])
        ids = {piece: id for id, piece in enumerate(pieces)}
        unk, pad, bos, eos = (ids[piece] for piece in special.values())
        return Side(ids, sentencepiece.read_bytes(), unk=unk, eos=eos, pad=pad, start=bos)

    def architecture(self) -> dict[str, Any]:
        encoder, decoder = self.at("model.encoder"), self.at("model.decoder")
        tied = [self.at(f"model.{name}") is True for name in ("tied_embeddings", "tied_softmax")]
        theirs = {"d_model": "hidden_size", "d_ff": "ff_size", "heads": "num_heads", "dropout": "dropout"}
        norm, activation = encoder.get("layer_norm"), encoder.get("activation", "relu")
        return {
            "norm": norm if norm in STACK["layer_norm"] else "pre",
            "norm_epsilon": EPSILON,
            "activation": activation if activation in ACTIVATIONS else "relu",
            "scale_embedding": self._scaled("encoder"),
            "tie_source": tied[0],
            "tie_output": tied[1],
            "max_length": LONGEST,
            **{ours: encoder[name] for ours, name in theirs.items() if name in encoder},
            **({"encoder_layers": encoder["num_layers"]} if "num_layers" in encoder else {}),
            **({"decoder_layers": decoder["num_layers"]} if "num_layers" in decoder else {}),
        }

    def decoding(self) -> dict[str, Any]:
        """Return the values of our DecodingConfig. JoeyNMT uses the length penalty of Wu et al. 2016."""
        alpha = self.at("testing.beam_alpha") or 0
        size = self.at("testing.beam_size") or 5
        return {"beam_size": size, "length_penalty": max(0, alpha), "normalization": "gnmt"}


def joeynmt_table(config: ModelConfig) -> Table:
    return tuple(_rows(config))


def _rows(config: ModelConfig) -> Iterator[Row]:
    yield from embedding_rows(SOURCE, TARGET, OUTPUT, config)
    for side, layers in (("encoder", config.encoder_layers), ("decoder", config.decoder_layers)):
        for index in range(layers):
            for theirs, ours in _layer(side).items():
                yield from parameter_rows(f"{side}.layers.{index}.{theirs}", f"{side}.layers.{index}.{ours}")
        if config.norm == "pre":
            yield from parameter_rows(f"{side}.layer_norm", f"{side}.norm")


def _layer(side: str) -> dict[str, str]:
    attentions = {
        f"{theirs}.{layer}": f"{ours}.{projection}"
        for theirs, ours in ATTENTIONS[side].items()
        for layer, projection in PROJECTIONS.items()
    }
    return {**attentions, **NORMS[side], **FEED_FORWARD}
