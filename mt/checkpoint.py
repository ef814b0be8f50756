"""A model directory: `config.json`, `model.safetensors`, `tokenizer.model`, `README.md`; maybe
`calibration.json`, `confidence.json` and `shortlist.safetensors`; of an imported model, `vocabulary.json` and
`tokenizer.target.model`.

Directories are written aside and renamed, so that a reader, or a killed writer, never leaves half of one. Loading
runs no code: weights are safetensors, metadata is JSON, and both are checked before a model is built.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, TypeVar

import torch
from pydantic import Field, TypeAdapter, ValidationError, model_validator
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from mt.config import DecodingConfig, Directions, ModelConfig, Section
from mt.errors import ModelError, MTError, problems
from mt.kernels.shortlist import Shortlist, flaws
from mt.model.transformer import AnyModel, LanguageModel, Transformer
from mt.tokenizer import EOS, Tokenizer, load_tokenizer
from mt.writing import put, written_aside

T = TypeVar("T")
Some = TypeVar("Some", bound=AnyModel)
Described = TypeVar("Described", "Description", "LanguageModelDescription")
FLOATS = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
FORMAT_VERSION = 1  # of a model directory; CHANGELOG.md says which releases read it


class Description(Section):
    """`config.json`: what a model is and how it wants to be decoded."""

    format_version: int = FORMAT_VERSION
    name: str
    directions: Directions
    vocabulary_size: int
    source_vocabulary_size: int | None = None
    """Of the source, where it has a vocabulary of its own."""
    model: ModelConfig
    decoding: DecodingConfig = DecodingConfig()

    @model_validator(mode="after")
    def _two_vocabularies_have_two_matrices(self) -> Self:
        if self.source_vocabulary_size is not None and self.model.tie_source:
            raise ValueError("source_vocabulary_size is given and model.tie_source is on; accepted: one of them")
        return self


class LanguageModelDescription(Section):
    """`config.json` of a language model, which scores text of one language and translates nothing."""

    format_version: int = FORMAT_VERSION
    name: str
    language: str
    vocabulary_size: int
    model: ModelConfig


class CalibrationPair(Section):
    """A text and its translation, on which a model with rounded weights is compared with the exact one."""

    direction: str = Field(pattern=r"^\w+-\w+$")
    source: str
    target: str


class Confidence(Section):
    """`confidence.json`: the line from the mean probability of a translation's tokens to its sentence chrF / 100.

    It was fitted on `sentences` translations that the model had not been trained on.
    """

    slope: float = Field(ge=0)
    intercept: float
    sentences: int = Field(ge=1)


class NoInitialValues(TorchFunctionMode):
    """Parameters are made without values, which are loaded afterwards: memory that nobody touches costs nothing.

    The meta device would do the same, but to make a tensor there imports torch's compiler, which takes a second.
    """

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(function, "__name__", "") in DRAWN:
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return function(*args, **kwargs)


DRAWN = {"normal_", "uniform_", "xavier_uniform_", "kaiming_uniform_"}

CALIBRATION_PAIRS = 32  # that a model brings along
CALIBRATION = TypeAdapter(tuple[CalibrationPair, ...])


@dataclass(frozen=True)
class LoadedModel:
    """A model directory in memory; the model is in evaluation mode."""

    model: Transformer
    tokenizer: Tokenizer
    description: Description
    calibration: tuple[CalibrationPair, ...] = ()
    shortlist: Shortlist | None = None
    confidence: Confidence | None = None


@dataclass(frozen=True)
class LoadedLanguageModel:
    """The directory of a language model in memory; the model is in evaluation mode."""

    model: LanguageModel
    tokenizer: Tokenizer
    description: LanguageModelDescription


def save_model(
    folder: Path,
    weights: Mapping[str, Tensor],
    tokenizer: Tokenizer,
    description: Description | LanguageModelDescription,
    card: str,
    calibration: Sequence[CalibrationPair] = (),
    confidence: Confidence | None = None,
) -> None:
    """Write a model directory; one that is there is replaced."""
    with written_aside(folder) as aside:
        save_weights(aside / "model.safetensors", weights)
        (aside / "config.json").write_text(_json(description), encoding="utf-8")
        for name, content in tokenizer.files.items():
            (aside / name).write_bytes(content)
        (aside / "README.md").write_text(card, encoding="utf-8")
        if calibration:
            (aside / "calibration.json").write_bytes(CALIBRATION.dump_json(tuple(calibration), indent=1))
        if confidence:
            (aside / "confidence.json").write_text(_json(confidence), encoding="utf-8")


def load_model(folder: Path, device: torch.device) -> LoadedModel:
    """Load a model directory. Raises ModelError or TokenizerError, which say what is wrong with which file."""
    return _unmixed(folder, lambda: _load_model(folder, device))


def _load_model(folder: Path, device: torch.device) -> LoadedModel:
    description = read_description(folder)
    tokenizer = load_tokenizer(folder)
    sizes = {
        "vocabulary_size": (len(tokenizer.target), description.vocabulary_size),
        "source_vocabulary_size": (len(tokenizer), description.source_vocabulary_size or description.vocabulary_size),
    }
    _check_sizes(folder, sizes)
    model = _with_weights(
        folder / "model.safetensors",
        _numbers(description),
        lambda: Transformer(
            description.model, description.vocabulary_size, source_vocabulary_size=description.source_vocabulary_size
        ),
    )
    return LoadedModel(
        model.to(device).eval(),
        tokenizer,
        description,
        _read_calibration(folder / "calibration.json"),
        _read_shortlist(folder / "shortlist.safetensors", tokenizer),
        _read_confidence(folder / "confidence.json"),
    )


def load_language_model(folder: Path, device: torch.device) -> LoadedLanguageModel:
    """As `load_model`; a model that translates is refused."""
    return _unmixed(folder, lambda: _load_language_model(folder, device))


def _load_language_model(folder: Path, device: torch.device) -> LoadedLanguageModel:
    description = _checked(folder, LanguageModelDescription)
    tokenizer = load_tokenizer(folder)
    _check_sizes(folder, {"vocabulary_size": (len(tokenizer), description.vocabulary_size)})
    config = description.model
    model = _with_weights(
        folder / "model.safetensors",
        config.d_model * description.vocabulary_size + config.decoder_layers * _in_layer(config, attentions=1),
        lambda: LanguageModel(config, description.vocabulary_size),
    )
    return LoadedLanguageModel(model.to(device).eval(), tokenizer, description)


def _unmixed(folder: Path, load: Callable[[], T]) -> T:
    """What is loaded of one folder: again, if another one has taken its name meanwhile."""
    while True:
        before = _which(folder)
        try:
            loaded = load()
        except MTError:
            if _which(folder) == before:
                raise
        else:
            if _which(folder) == before:
                return loaded


def _which(folder: Path) -> tuple[int, int, int] | None:
    """The folder of this name, as it is now; None if there is none, such as between two."""
    try:
        found = folder.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns  # numbers are given again


def save_shortlist(folder: Path, shortlist: Shortlist, tokenizer: Tokenizer) -> None:
    """Put a shortlist for the pieces of `tokenizer` into a model directory; one that is there is replaced."""
    aside = folder / ".shortlist.part"
    _save(shortlist.tensors(), aside, {"tokenizer": tokenizer.digest})
    put(aside, folder / "shortlist.safetensors")


def save_calibration(folder: Path, pairs: Sequence[CalibrationPair]) -> None:
    """Put these pairs into a model directory; those of their directions that are there are replaced.

    Raises ModelError if what is there cannot be read.
    """
    path, aside = folder / "calibration.json", folder / ".calibration.part"
    replaced = {pair.direction for pair in pairs}
    others = [pair for pair in _read_calibration(path) if pair.direction not in replaced]
    aside.write_bytes(CALIBRATION.dump_json((*others, *pairs), indent=1))
    put(aside, path)


def save_confidence(folder: Path, confidence: Confidence) -> None:
    """Put this into a model directory; what is there is replaced."""
    aside = folder / ".confidence.part"
    aside.write_text(_json(confidence), encoding="utf-8")
    put(aside, folder / "confidence.json")


def save_weights(path: Path, weights: Mapping[str, Tensor]) -> None:
    """Tensors, by name, into one safetensors file."""
    _save({name: tensor.detach().contiguous() for name, tensor in weights.items()}, path)


def load_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file, on the CPU.

    Raises ModelError if it is missing, cut short or something else.
    """
    try:
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dict)
    except FileNotFoundError as error:
        why = "this user may not read it" if path.exists() else "there is no such file"
        raise ModelError(f"{path}: {why}; accepted: the weights of a model, as safetensors") from error
    except (SafetensorError, OSError) as error:
        what = "a pickle, which could run code" if _is_pickle(path) else f"not a whole safetensors file ({error})"
        raise ModelError(f"{path}: {what}; accepted: the safetensors file that training wrote") from error


def check_weights(weights: Mapping[str, Tensor], model: nn.Module, path: Path) -> None:
    """Raises ModelError that lists every tensor that is missing, unknown, of another shape or type, or not finite."""
    expected = model.state_dict()
    found = [f"{name} is missing" for name in expected if name not in weights]
    found += [f"{name} is unknown" for name in weights if name not in expected]
    for name in expected.keys() & weights.keys():
        if weights[name].shape != expected[name].shape:
            found.append(f"{name} has the shape {list(weights[name].shape)}, not {list(expected[name].shape)}")
        elif weights[name].dtype not in FLOATS:
            found.append(f"{name} has the type {weights[name].dtype}; accepted: {', '.join(map(str, FLOATS))}")
        elif not bool(weights[name].isfinite().all()):
            found.append(f"{name} has values that are not finite")
    if found:
        raise ModelError(problems(f"{path} does not fit its config.json", sorted(found)))


Weights = Mapping[str, Tensor]


def average_weights(paths: Sequence[Path], plain: Callable[[Weights], Weights] = dict) -> dict[str, Tensor]:
    """The mean of the weights of several files (Vaswani et al. 2017, section 6.1), each made `plain` before.

    Raises ModelError if a file cannot be loaded, or holds other tensors than the first.
    """
    total = {name: tensor.double() for name, tensor in plain(load_weights(paths[0])).items()}
    for path in paths[1:]:
        weights = plain(load_weights(path))
        if {name: w.shape for name, w in weights.items()} != {name: t.shape for name, t in total.items()}:
            raise ModelError(f"{path}: not the tensors of {paths[0]}; accepted: checkpoints of one model")
        for name, tensor in weights.items():
            total[name] += tensor
    return {name: (tensor / len(paths)).float() for name, tensor in total.items()}


def read_description(folder: Path) -> Description:
    """`config.json` of a model that translates. Raises ModelError that says what is wrong with it."""
    return _checked(folder, Description)


def _checked(folder: Path, kind: type[Described]) -> Described:
    """`config.json` of a model directory, which must be of this kind."""
    path = folder / "config.json"
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ModelError(
            f"{folder}: no model here, for it has no config.json; accepted: a directory that scripts/train.py wrote"
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: not a JSON file ({error})") from error
    version = values.get("format_version") if isinstance(values, dict) else None
    if version != FORMAT_VERSION:
        raise ModelError(f"{path}: format_version is {version!r}; accepted: {FORMAT_VERSION}")
    language = values.get("language")
    if kind is Description and language is not None:
        raise ModelError(
            f"{folder}: a language model of {language!r}, which scores text and translates nothing; accepted: a model "
            "that translates (or this one as --language-model of scripts/rerank.py)"
        )
    if kind is LanguageModelDescription and language is None:
        raise ModelError(
            f"{folder}: a model that translates; accepted: a language model, of a recipe with one language in "
            "data.directions"
        )
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        listed = (f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors())
        raise ModelError(problems(str(path), listed)) from error


def _with_weights(path: Path, numbers: int, build: Callable[[], Some]) -> Some:
    """The model that is built, of at least so many numbers, with the weights of a file."""
    weights = load_weights(path)
    # A config of a larger model is told so by a model that takes no memory.
    fits = numbers <= sum(tensor.numel() for tensor in weights.values())
    with torch.device("cpu" if fits else "meta"), NoInitialValues():
        model = build()
    check_weights(weights, model, path)
    model.load_state_dict({name: tensor.float() for name, tensor in weights.items()}, assign=True)
    return model


def _check_sizes(folder: Path, sizes: Mapping[str, tuple[int, int]]) -> None:
    """`sizes`: pieces of the tokenizer, and what config.json says, by its key."""
    found = [
        f"{pieces} pieces, config.json a {name} of {size}" for name, (pieces, size) in sizes.items() if pieces != size
    ]
    if found:
        raise ModelError(f"{folder}: tokenizer.model has {found[0]}; accepted: the two files of one model")


def _numbers(description: Description) -> int:
    """A little fewer than the parameters of such a model: those of its matrices."""
    config = description.model
    layers = config.encoder_layers * _in_layer(config, attentions=1)
    layers += config.decoder_layers * _in_layer(config, attentions=2)
    return config.d_model * description.vocabulary_size + layers


def _in_layer(config: ModelConfig, attentions: int) -> int:
    return config.d_model * (attentions * 4 * config.d_model + 2 * config.d_ff)


def _read_calibration(path: Path) -> tuple[CalibrationPair, ...]:
    try:
        return CALIBRATION.validate_json(path.read_bytes())
    except FileNotFoundError:
        return ()
    except (OSError, ValidationError) as error:
        raise ModelError(f"{path}: not a list of direction, source and target; it may be left out ({error})") from error


def _read_confidence(path: Path) -> Confidence | None:
    try:
        return Confidence.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise ModelError(f"{path}: not what scripts/calibrate.py writes; it may be left out ({error})") from error


def _read_shortlist(path: Path, tokenizer: Tokenizer) -> Shortlist | None:
    if not path.exists():
        return None
    tensors = load_weights(path)
    found = flaws(tensors, len(tokenizer), EOS)
    with safe_open(path, "pt") as file:
        if (file.metadata() or {}).get("tokenizer") != tokenizer.digest:
            found.append("it was made for another tokenizer; accepted: what scripts/shortlist.py makes of this model")
    if found:
        raise ModelError(problems(f"{path} cannot be used (it may be left out)", found))
    return Shortlist(tensors["always"], tensors["offsets"], tensors["allowed"])


def _is_pickle(path: Path) -> bool:
    """Whether a file begins as pickles do, or as the zip archives that torch.save wraps around one."""
    try:
        with path.open("rb") as file:
            begin = file.read(2)
    except OSError:
        return False
    return begin == b"PK" or begin[:1] == b"\x80"


def _save(tensors: dict[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    try:
        save_file(tensors, path, metadata)
    except SafetensorError as error:
        raise ModelError(f"{path}: cannot be written ({error}); accepted: a disk with room") from error
    path.chmod(path.parent.stat().st_mode & 0o666)  # by itself, safetensors lets nobody but the owner read it


def _json(section: Section) -> str:
    return section.model_dump_json(indent=2) + "\n"
