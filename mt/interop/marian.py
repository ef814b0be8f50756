"""Import of Marian models (https://marian-nmt.github.io).

Names and options are those of src/models/transformer.h in Marian.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import torch
import yaml
from torch import Tensor

from mt.config import ModelConfig
from mt.errors import ModelError, problems
from mt.interop.foreign import ForeignModel, Side
from mt.interop.layer_names import layer_modules
from mt.interop.mapping import Row, embedding_rows
from mt.interop.origin import AS_MARIAN, ImportOptions, Origin, parse_yaml, shown
from mt.languages import has_two_letter_code
from mt.tokenizer import sentencepiece_ids

CONFIG = "special:model.yml"
MAX_UNPACKED = 20
"""Maximum unpacked size of an .npz file relative to its packed size.

Compression hardly shrinks weights, but it shrinks zeros 1,000-fold.
"""

BIAS = "decoder_ff_logit_out_b"
OUTPUT, LEGACY_OUTPUT = "decoder_ff_logit_out_Wt", "decoder_ff_logit_out_W"  # [V, D], [D, V] (src/layers/output.cpp)
UNKNOWN, END = "<unk>", "</s>"
LONGEST = 512  # tokens; Marian has no limit, but models that transformers converted have this one

OPTIONS: Mapping[str, tuple[Any, ...]] = {
    "type": ("transformer",),
    "transformer-decoder-autoreg": ("self-attention",),
    "transformer-ffn-activation": ("relu", "swish"),
    "transformer-ffn-depth": (2,),
    "transformer-decoder-ffn-depth": (0, 2),
    "transformer-no-projection": (False,),
    "transformer-no-bias": (False,),
    "transformer-no-affine": (False,),
    "transformer-train-position-embeddings": (False,),
    "transformer-train-positions": (False,),
    "transformer-tied-layers": ([],),
    "transformer-preprocess": ("",),  # the value "n" would normalise only the queries of an attention
    "transformer-postprocess": ("dan",),
    "transformer-postprocess-top": ("",),
    "transformer-postprocess-emb": ("d", ""),
    "transformer-rnn-projection": (False,),
    "factors-dim-emb": (0,),
    "lemma-dim-emb": (0,),
    "right-left": (False,),
    "ulr": (False,),
    "input-types": ([], ["sequence", "sequence"]),
}
"""Options of the configuration with the supported values. The first value is the default."""


def read_marian(origin: Origin, import_options: ImportOptions) -> ForeignModel:
    """Read a model of Marian from a folder.

    Raises:
        ModelError: Files are missing or cannot be read.
    """
    files = MarianFiles.find(origin.folder)
    arrays = read_npz(origin.folder / files.weights)
    options = _model_options(arrays, origin.folder / files.weights)
    sides = [
        _side(origin.folder / vocabulary, origin.folder / pieces)
        for vocabulary, pieces in zip(files.vocabularies, files.sentencepieces, strict=True)
    ]
    if files.vocabularies[0] == files.vocabularies[1] and files.sentencepieces[0] == files.sentencepieces[1]:
        sides[1] = sides[0]
    search = files.decoder
    return ForeignModel(
        name=origin.name,
        kind="Marian model",
        architecture={**_architecture(options), **(AS_MARIAN if import_options.as_marian else {})},
        table=partial(_rows, output=LEGACY_OUTPUT if LEGACY_OUTPUT in arrays else OUTPUT),
        weights={name: _as_torch(name, array) for name, array in arrays.items() if name != CONFIG},
        source=sides[0],
        target=sides[1],
        decoding={"beam_size": search.get("beam-size", 6), "length_penalty": search.get("normalize", 0)},
        directions=[direction] if (direction := _direction(origin.name)) else [],
        problems=[
            *_option_problems(options),
            *_search_problems(search),
            *_size_problems(options, sides[0], sides[1]),
        ],
        provenance=origin.provenance(dict.fromkeys((files.weights, *files.vocabularies, *files.sentencepieces))),
    )


@dataclass(frozen=True)
class MarianFiles:
    """Names of the files of a model: those named in decoder.yml or config.yml, or else the only files of each type."""

    weights: str
    vocabularies: tuple[str, str]
    sentencepieces: tuple[str, str]
    decoder: Mapping[str, Any]

    @classmethod
    def find(cls, folder: Path) -> "MarianFiles":
        """Find the model's files in a folder.

        Raises:
            ModelError: Files are missing or ambiguous. The message lists them.
        """
        decoder = next(
            (read_yaml(folder / name) for name in ("decoder.yml", "config.yml") if (folder / name).exists()), {}
        )
        wrong: list[str] = []
        models = decoder.get("models") or _names(folder, "*.npz")
        vocabularies = decoder.get("vocabs") or _vocabularies(folder)
        if len(models) != 1:
            wrong.append(f"model files: {shown(models)}; accepted: one .npz file, or one in decoder.yml")
        if len(vocabularies) == 1:
            vocabularies = vocabularies * 2
        if len(vocabularies) != 2:
            wrong.append(f"vocabulary files: {shown(vocabularies)}; accepted: one or two, or two in decoder.yml")
        names = [Path(str(name)).name for name in (*models, *vocabularies)]
        wrong += [f"{name} is missing" for name in dict.fromkeys(names) if not (folder / name).is_file()]
        spms = [name if name.endswith(".spm") else f"{side}.spm" for name, side in zip(names[-2:], SIDES, strict=False)]
        wrong += [f"{name} is missing" for name in dict.fromkeys(spms) if not (folder / name).is_file()]
        if wrong:
            raise ModelError(problems(f"{folder} cannot be imported as a Marian model", dict.fromkeys(wrong)))
        return cls(names[0], (names[1], names[2]), (spms[0], spms[1]), decoder)


SIDES = ("source", "target")


def _names(folder: Path, pattern: str) -> list[str]:
    return sorted(path.name for path in folder.glob(pattern))


def _vocabularies(folder: Path) -> list[str]:
    """Return the names of the vocabulary files in a folder without decoder.yml: source and target, or one for both."""
    sides = [_names(folder, pattern) for pattern in ("*src.vocab.yml", "*trg.vocab.yml")]
    return [*sides[0], *sides[1]] if all(sides) else _names(folder, "*vocab.yml")


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays in an .npz file by name. Pickles are refused.

    Raises:
        ModelError: The file is damaged, contains a pickle, or unpacks to more than MAX_UNPACKED times its size.
    """
    try:
        with ZipFile(path) as archive:
            unpacked, packed = sum(item.file_size for item in archive.infolist()), path.stat().st_size
        if unpacked > MAX_UNPACKED * packed:
            raise ModelError(
                f"{path}: {packed} bytes unpack to {unpacked}; accepted: at most {MAX_UNPACKED} times as many"
            )
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except ModelError:
        raise
    except Exception as error:  # NotImplementedError, zlib.error ...: damaged files raise errors of many types
        raise ModelError(f"{path}: damaged, or not an .npz file ({error})") from error


def _model_options(arrays: Mapping[str, np.ndarray], path: Path) -> dict[str, Any]:
    """Return the model's configuration. Marian stores it in the weight file as an array of zero-terminated bytes.

    Raises:
        ModelError: The weight file `path` has no such array, or the array is not a YAML mapping.
    """
    if CONFIG not in arrays:
        raise ModelError(f"{path}: has no entry {CONFIG}; accepted: a weight file that Marian wrote")
    try:
        options = parse_yaml(arrays[CONFIG].tobytes().rstrip(b"\0").decode())
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ModelError(f"{path}: its entry {CONFIG} is not YAML ({error})") from error
    if not isinstance(options, dict):
        raise ModelError(f"{path}: its entry {CONFIG} has no options; accepted: a YAML mapping")
    return options


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file, or an empty dictionary if the file contains another value.

    Raises:
        ModelError: The file cannot be read.
    """
    try:
        values = parse_yaml(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ModelError(f"{path}: not a YAML file ({error})") from error
    return values if isinstance(values, dict) else {}


def _side(vocabulary: Path, sentencepiece: Path) -> Side:
    """Read a vocabulary and its SentencePiece model.

    Raises:
        ModelError: The vocabulary cannot be read.
        TokenizerError: The SentencePiece model cannot be read.
    """
    serialised = sentencepiece.read_bytes()
    ids = sentencepiece_ids(serialised, str(vocabulary)) if vocabulary.suffix == ".spm" else read_vocabulary(vocabulary)
    return Side(ids, serialised, unk=ids.get(UNKNOWN, -1), eos=ids.get(END, -1))


def read_vocabulary(path: Path) -> dict[str, int]:
    """Return the id of each piece in a YAML file.

    Words with a meaning in YAML, such as `no` and `~`, are read as strings.

    Raises:
        ModelError: The file cannot be read.
    """
    try:
        # PyYAML in pure Python takes ten seconds for 60,000 pieces.
        values = yaml.load(path.read_bytes(), Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
        return {str(piece): int(id) for piece, id in values.items()}
    except (OSError, AttributeError, TypeError, ValueError, yaml.YAMLError) as error:
        raise ModelError(f"{path}: not a YAML file of pieces and their ids ({error})") from error


def _option_problems(options: Mapping[str, Any]) -> Iterator[str]:
    for name, accepted in OPTIONS.items():
        if options.get(name, accepted[0]) not in accepted:
            yield f"{name} is {shown(options[name])}; accepted: {', '.join(map(repr, accepted))}"
    if options.get("transformer-decoder-dim-ffn", 0) not in (0, options.get("transformer-dim-ffn")):
        sizes = [shown(options.get(name)) for name in ("transformer-decoder-dim-ffn", "transformer-dim-ffn")]
        yield f"transformer-decoder-dim-ffn is {sizes[0]} and transformer-dim-ffn is {sizes[1]}; accepted: equal values"


def _search_problems(search: Mapping[str, Any]) -> Iterator[str]:
    """Yield a message for each unsupported search option in decoder.yml."""
    if penalty := search.get("word-penalty"):
        yield f"word-penalty is {shown(penalty)}; accepted: 0"


def _size_problems(options: Mapping[str, Any], source: Side, target: Side) -> Iterator[str]:
    stated = options.get("dim-vocabs") or [0, 0]
    if not isinstance(stated, list):
        yield f"dim-vocabs is {shown(stated)}; accepted: a list of sizes"
        return
    for name, side, size in zip(SIDES, (source, target), (stated[0], stated[-1]), strict=True):
        if size and len(side.ids) != size:
            yield f"the {name} vocabulary has {len(side.ids)} pieces, but dim-vocabs says {size}; accepted: equal sizes"


def _architecture(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of our ModelConfig. Positions are those of transformers' conversions of Marian models."""
    everything = options.get("tied-embeddings-all", False)
    activation = options.get("transformer-ffn-activation", "swish")
    theirs = {"encoder_layers": "enc-depth", "decoder_layers": "dec-depth", "d_model": "dim-emb"}
    theirs |= {"d_ff": "transformer-dim-ffn", "heads": "transformer-heads"}
    return {
        "norm": "post",
        "positions": "concatenated",
        "activation": activation if activation in OPTIONS["transformer-ffn-activation"] else "relu",
        "tie_source": bool(everything or options.get("tied-embeddings-src", False)),
        "tie_output": bool(everything or options.get("tied-embeddings", False)),
        "max_length": LONGEST,
        **{ours: options[name] for ours, name in theirs.items() if name in options},
    }


def _direction(name: str) -> str:
    """Return the direction at the end of a folder name such as opus-mt-en-de, or an empty string if there is none."""
    match = re.search(r"(?:^|[-_])([a-z]{2,3})-([a-z]{2,3})$", name)
    return "-".join(match.groups()) if match and all(map(has_two_letter_code, match.groups())) else ""


def _as_torch(name: str, array: np.ndarray) -> Tensor:
    """Convert a weight to torch's layout. Marian computes x W, so matrices are transposed, except `Wemb` and `Wt`."""
    tensor = torch.from_numpy(array.copy())
    if tensor.dim() != 2 or name.endswith(("Wemb", "_Wt")):
        return tensor
    if tensor.shape[0] == 1 and re.search(r"_(b[qkvo12]?|ln_(scale|bias))$", name):
        return tensor.flatten()
    return tensor.T


def _rows(config: ModelConfig, output: str) -> Iterator[Row]:
    """Yield the rows that map Marian's weight names to ours. `output` is Marian's name of the output layer."""
    yield from embedding_rows("encoder_Wemb", "Wemb" if config.tie_source else "decoder_Wemb", output, config)
    yield Row((BIAS,), ("embedding.bias",))
    for side, index, (ours, _, theirs) in layer_modules(config):
        for kind, name in zip(("weight", "bias"), theirs, strict=True):
            yield Row((f"{side}_l{index + 1}_{name}",), (f"{side}.layers.{index}.{ours}.{kind}",))
