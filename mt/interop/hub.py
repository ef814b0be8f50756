"""Models on the Hugging Face hub: fetched once, at one revision, by huggingface_hub."""

import re
from pathlib import Path

from mt.errors import ModelError
from mt.interop.origin import Origin, Wishes

try:
    import huggingface_hub
    from huggingface_hub import errors as hub_errors
except ModuleNotFoundError:  # an optional dependency: `fetch` says so
    huggingface_hub = None  # type: ignore[assignment]

NAME = re.compile(r"(?P<name>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")
SAFE = ("*.json", "*.spm", "*.safetensors", "README.md", "LICENSE*")
PICKLES = ("*.bin",)


def is_name(source: str) -> bool:
    """Whether this can be a name on the hub, `owner/model`, perhaps with `@revision`."""
    return NAME.fullmatch(source) is not None


def fetch(source: str, wishes: Wishes) -> Origin:
    """Its files, in the cache that huggingface_hub keeps. Without a revision the newest is taken, and noted.

    Raises ModelError if huggingface_hub is not installed, the hub cannot be reached, or has no such model.
    """
    if huggingface_hub is None:
        raise ModelError(f"{source}: huggingface_hub is not installed; accepted: pip install 'mt-service[interop]'")
    matched = NAME.fullmatch(source)
    assert matched is not None
    name, revision = matched["name"], matched["revision"]
    try:
        info = huggingface_hub.HfApi().model_info(name, revision=revision)
        patterns = [*SAFE, *(PICKLES if wishes.allow_pickle else ())]
        folder = huggingface_hub.snapshot_download(name, revision=info.sha, allow_patterns=patterns)
    except hub_errors.RepositoryNotFoundError as error:
        raise ModelError(f"{source}: the hub has no such model, or none that is open; accepted: owner/model") from error
    except hub_errors.RevisionNotFoundError as error:
        raise ModelError(f"{source}: the model has no such revision; accepted: a branch, a tag or a commit") from error
    except Exception as error:  # whatever the HTTP library beneath it raises, which changes with its version
        raise ModelError(
            f"{source}: there is no such folder, and the Hugging Face hub cannot be reached ({_reason(error)}); "
            f"accepted: a folder. Where there is a network, `hf download {name} --local-dir FOLDER` makes one"
        ) from error
    return Origin(Path(folder), name, revision=str(info.sha))


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
