"""What a folder, or a name on the Hugging Face hub, holds; and the reader that turns it into a model of ours."""

from collections.abc import Callable, Sequence
from pathlib import Path

from mt.errors import ModelError
from mt.interop.fairseq import read_fairseq
from mt.interop.foreign import ForeignModel, write
from mt.interop.hub import fetch, is_name
from mt.interop.huggingface import PICKLE, read_marian_mt
from mt.interop.joeynmt import read_joeynmt
from mt.interop.marian import read_marian
from mt.interop.origin import Origin, Wishes
from mt.interop.output import check_output

Reader = Callable[[Origin, Wishes], ForeignModel]


def import_model(source: str, out: Path, directions: Sequence[str] = (), wishes: Wishes | None = None) -> None:
    """Write the model `source` as a model directory of ours, `out`; one that is there is replaced.

    `source` is a folder, or a name on the Hugging Face hub, `owner/model` or `owner/model@revision`. `directions` are
    what it translates, such as ("en-de",); they may be left out where the source says so itself. Raises ModelError that
    lists all problems.
    """
    wishes = wishes or Wishes()
    folder = Path(source)
    check_output(out, folder)
    origin = Origin(folder, folder.resolve().name) if folder.is_dir() or not is_name(source) else fetch(source, wishes)
    write(reader_of(origin.folder)(origin, wishes), out, directions)


def reader_of(folder: Path) -> Reader:
    """The reader for what lies in a folder. Raises ModelError."""
    there = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    kinds = {Path(name).suffix for name in there if name != PICKLE}
    if "config.json" in there:
        return read_marian_mt
    if ".npz" in kinds or ".bin" in kinds:
        return read_marian
    if "config.yaml" in there and ".ckpt" in kinds:
        return read_joeynmt
    if ".pt" in kinds and any(name.startswith("dict.") for name in there):
        return read_fairseq
    what = "no model that can be imported" if folder.is_dir() else "there is no such folder"
    raise ModelError(
        f"{folder}: {what}; accepted: a folder of Marian (.npz or .bin with vocabularies), of Hugging Face's MarianMT "
        "(config.json with safetensors), of fairseq (.pt with dict.*.txt) or of JoeyNMT (config.yaml with .ckpt); or "
        "the name of a MarianMT model on the Hugging Face hub, owner/model"
    )
