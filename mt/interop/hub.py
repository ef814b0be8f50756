"""Models on the Hugging Face hub: fetched once, at one revision, by huggingface_hub."""

import re
from collections.abc import Collection
from pathlib import Path

from mt.errors import ModelError
from mt.interop.huggingface import PICKLE, SAFE
from mt.interop.origin import ALLOWED_PICKLE, Origin, Wishes

try:
    import huggingface_hub
    from huggingface_hub import errors as hub_errors
except ModuleNotFoundError:  # an optional dependency: `fetch` says so
    huggingface_hub = None  # type: ignore[assignment]

NAME = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")
BESIDE = ("*.json", "*.spm", "README.md", "LICENSE*")  # what a model has besides its weights


def is_name(source: str) -> bool:
    """Whether this can be a name on the hub, `owner/model`, perhaps with `@revision`."""
    return NAME.fullmatch(source) is not None


def fetch(source: str, wishes: Wishes) -> Origin:
    """Its files, in the cache that huggingface_hub keeps. Without a revision the newest is taken, and noted.

    Raises ModelError if huggingface_hub is not installed, the hub cannot be reached or has no such model, its weights
    are a pickle that may not be read, or the files cannot be fetched or kept.
    """
    if huggingface_hub is None:
        raise ModelError(f"{source}: huggingface_hub is not installed; accepted: pip install 'mt-service[interop]'")
    matched = NAME.fullmatch(source)
    assert matched is not None
    name, revision = matched["name"], matched["revision"]
    try:
        info = huggingface_hub.HfApi().model_info(name, revision=revision)
    except hub_errors.RepositoryNotFoundError as error:
        raise ModelError(f"{source}: the hub has no such model, or none that is open; accepted: owner/model") from error
    except hub_errors.RevisionNotFoundError as error:
        raise ModelError(f"{source}: the model has no such revision; accepted: a branch, a tag or a commit") from error
    except Exception as error:  # whatever the HTTP library beneath it raises, which changes with its version
        raise ModelError(
            f"{source}: there is no such folder, and the Hugging Face hub cannot be reached ({_reason(error)}); "
            f"accepted: a folder. Where there is a network, `hf download {name} --local-dir FOLDER` makes one"
        ) from error
    weights = _weights(source, {file.rfilename for file in info.siblings or ()}, wishes)
    try:
        folder = huggingface_hub.snapshot_download(name, revision=info.sha, allow_patterns=[*BESIDE, weights])
    except Exception as error:  # of the network, or of the disk
        raise ModelError(
            f"{source}: the hub has it, but not all files could be fetched and kept ({_reason(error)}); accepted: "
            "a network, and space in huggingface_hub's cache, which HF_HOME moves elsewhere"
        ) from error
    return Origin(Path(folder), name, revision=str(info.sha))


def _weights(source: str, there: Collection[str], wishes: Wishes) -> str:
    """The file to fetch weights from: a pickle only if there is no other. Raises ModelError if it may not be read."""
    if SAFE in there or PICKLE not in there:
        return SAFE
    if not wishes.allow_pickle:
        raise ModelError(
            f"{source}: its weights are only in {PICKLE}, a pickle; accepted: {ALLOWED_PICKLE}, or without any pickle "
            "a folder with OPUS-MT's own .npz files, a zip that the model's card links to"
        )
    return PICKLE


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
