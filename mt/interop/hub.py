"""Download of a revision of a model from the Hugging Face hub."""

import re
from collections.abc import Collection
from pathlib import Path

from mt.errors import ModelError
from mt.interop.huggingface_files import INDEX, PICKLE, SAFE
from mt.interop.origin import ALLOWED_PICKLE, ImportOptions, Origin

try:
    import huggingface_hub
    from huggingface_hub import errors as hub_errors
except ModuleNotFoundError:  # an optional dependency, which `fetch_model` reports
    huggingface_hub = None  # type: ignore[assignment]

NAME = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")
BESIDE = ("*.json", "*.spm", "*.bpe.model", "README.md", "LICENSE*")  # files to download in addition to the weights
PARTS = "model-*.safetensors"


def is_hub_name(source: str) -> bool:
    """Return whether `source` has the form of a hub name, `owner/model` or `owner/model@revision`."""
    return NAME.fullmatch(source) is not None


def fetch_model(source: str, options: ImportOptions) -> Origin:
    """Download a model into huggingface_hub's cache. For a name without a revision, download the newest revision.

    The returned Origin records the revision. Raises: ModelError if huggingface_hub is not installed, the hub cannot be
    reached or has no such model, the weights are a pickle that the options do not allow, or the files cannot be
    fetched or stored.
    """
    if huggingface_hub is None:
        raise ModelError(f"{source}: huggingface_hub is not installed. Run pip install 'mt-service[interop]'")
    matched = NAME.fullmatch(source)
    assert matched is not None
    name, revision = matched["name"], matched["revision"]
    try:
        info = huggingface_hub.HfApi().model_info(name, revision=revision)
    except hub_errors.RepositoryNotFoundError as error:
        raise ModelError(f"{source}: the hub has no public model of this name; accepted: owner/model") from error
    except hub_errors.RevisionNotFoundError as error:
        raise ModelError(f"{source}: the model has no such revision; accepted: a branch, a tag or a commit") from error
    except Exception as error:  # huggingface_hub passes on errors of its HTTP library, which varies with its version
        raise ModelError(
            f"{source}: no such folder exists, and the Hugging Face hub cannot be reached ({_reason(error)}). Name "
            f"a folder, which `hf download {name} --local-dir FOLDER` creates on a machine with a network"
        ) from error
    weights = _weights(source, {file.rfilename for file in info.siblings or ()}, options)
    try:
        folder = huggingface_hub.snapshot_download(name, revision=info.sha, allow_patterns=[*BESIDE, weights])
    except Exception as error:  # of the network or of the disk
        raise ModelError(
            f"{source}: the hub has this model, but not all files could be fetched and stored ({_reason(error)}). "
            "Check the network and the free space of huggingface_hub's cache; HF_HOME sets the cache's folder"
        ) from error
    return Origin(Path(folder), name, revision=str(info.sha))


def _weights(source: str, names: Collection[str], options: ImportOptions) -> str:
    """Return a pattern of the names of the weight files; it matches a pickle only if there is no other weight file.

    Raises: ModelError if the weights are a pickle and `options` do not allow pickles.
    """
    if SAFE not in names and INDEX in names:
        return PARTS
    if SAFE in names or PICKLE not in names:
        return SAFE
    if not options.allow_pickle:
        raise ModelError(
            f"{source}: its only weights are {PICKLE}, a pickle. Either give {ALLOWED_PICKLE}, or import the folder "
            "with OPUS-MT's .npz file, from the zip archive to which the model's card links"
        )
    return PICKLE


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
