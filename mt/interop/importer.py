"""Import of a model from a folder or the Hugging Face hub."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from mt.errors import ModelError
from mt.interop.catalogue import HUB, find_entry, hub_name, installed_folder, models_folder
from mt.interop.foreign import ForeignModel, write_model
from mt.interop.hub import OnReport, fetch_model
from mt.interop.huggingface import read_marian_mt
from mt.interop.huggingface_files import read_json
from mt.interop.marian import read_marian
from mt.interop.multilingual import MODEL_TYPES, read_multilingual
from mt.interop.origin import ImportOptions, Origin
from mt.interop.output import check_output
from mt.languages import standard_tag

DOWNLOADS = ".downloads"  # subfolder of the folder of models; the service skips hidden folders

ModelReader = Callable[[Origin, ImportOptions], ForeignModel]


def import_model(
    source: str,
    out: Path,
    directions: Sequence[str] = (),
    options: ImportOptions | None = None,
    report: OnReport = lambda line: None,
) -> None:
    """Convert the model `source` to the model directory `out`. An existing model there is replaced.

    `source` is a folder, a name of the catalogue, or a name on the Hugging Face hub: `owner/model` or
    `owner/model@revision`. `directions` are the model's directions, such as ("en-de",). They may be empty if the
    model's files state them. `report` gets the licence and the progress of a download. A downloaded model is deleted
    after the conversion.

    Raises:
        ModelError: The model cannot be imported. The message lists all problems.
    """
    options = options or ImportOptions()
    directions = standard_directions(directions)
    folder = Path(source)
    check_output(out, folder)
    if is_folder(source):
        origin = Origin(folder, folder.resolve().name)
        write_model(choose_reader(folder)(origin, options), out, directions)
        return
    name = hub_name(source)
    entry = find_entry(name)
    if entry is not None and entry.direction and not directions:
        directions = [entry.direction]
    downloads = installed_folder(name, models_folder() / DOWNLOADS)
    origin = fetch_model(name, options, downloads, report)
    write_model(choose_reader(downloads)(origin, options), out, directions)
    shutil.rmtree(downloads)


def standard_directions(directions: Sequence[str]) -> list[str]:
    """Return directions with standard language tags in place of a model's own codes: en-de for eng_Latn-deu_Latn."""
    return ["-".join(map(_standard, direction.split("-"))) for direction in directions]


def _standard(code: str) -> str:
    language, _, rest = code.partition("_")
    if not rest:
        return code
    return standard_tag(language if len(rest) == 2 else code)  # de_DE of mBART-50, deu_Latn of NLLB-200


def is_folder(source: str) -> bool:
    """Return whether `source` is a path, and not the name of a model on the hub. The path need not exist."""
    name = source.partition("@")[0]
    written_as_path = name.startswith((".", "/", "~")) or name.count("/") > 1
    return not source.startswith(HUB) and (Path(source).is_dir() or written_as_path)


def choose_reader(folder: Path) -> ModelReader:
    """Return the reader for the format of a folder.

    Raises:
        ModelError: No reader knows the format.
    """
    names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    if "config.json" in names:
        config = read_json(folder / "config.json")
        if "format_version" in config:
            raise ModelError(f"{folder} is a model directory already; accepted: `mt-service serve --model {folder}`")
        kind = config.get("model_type")
        return read_multilingual if kind in MODEL_TYPES else read_marian_mt
    if any(name.endswith(".npz") for name in names):
        return read_marian
    what = "has no model in a known format" if folder.is_dir() else "no such folder exists"
    raise ModelError(
        f"{folder}: {what}; accepted: a folder of Marian (.npz with vocabularies), or of transformers' "
        "MarianMT, M2M-100, NLLB-200 or mBART-50 (config.json with safetensors); or the name of such a model of "
        "transformers on the Hugging Face hub, owner/model"
    )
