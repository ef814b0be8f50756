"""Download of one revision of a model from the Hugging Face hub."""

import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from mt.errors import ModelError
from mt.files import file_digest
from mt.interop.catalogue import NAME, is_non_commercial
from mt.interop.huggingface_files import INDEX, PICKLE, SAFE
from mt.interop.origin import ALLOWED_PICKLE, ImportOptions, Origin

try:
    import huggingface_hub
    from huggingface_hub import errors as hub_errors
    from huggingface_hub.file_download import http_get
    from huggingface_hub.hf_api import RepoSibling
    from huggingface_hub.utils import build_hf_headers, disable_progress_bars  # type: ignore[attr-defined]
except ModuleNotFoundError:  # an installation without dependencies, which `fetch_model` reports
    huggingface_hub = None  # type: ignore[assignment]

OTHER_FILES = ("*.json", "*.spm", "*.bpe.model", "README.md", "LICENSE*")  # files to download besides the weights
PARTS = "model-*.safetensors"
CONVERTER = "SFconvertbot"
"""Account of the hub that opens pull requests with weights converted to safetensors.

Anybody can open pull requests, so those of other accounts are ignored.
"""
LARGE = 10_000_000  # bytes; the download of a larger file is reported

OnReport = Callable[[str], None]


@dataclass(frozen=True)
class Listing:
    """Files of a model on the hub at one commit, by name, without the files in subfolders."""

    commit: str
    files: Mapping[str, "RepoSibling"]
    licence: str = ""
    reference: str = ""  # branch of a conversion to safetensors; otherwise empty


def fetch_model(source: str, options: ImportOptions, folder: Path, report: OnReport = lambda line: None) -> Origin:
    """Download a model from the hub into `folder`. Return its Origin, which records the revision.

    `source` is owner/model or owner/model@REVISION; without a revision, the newest is taken. A file that is already in
    the folder with the right checksum is not downloaded again, and an interrupted download is continued. The licence is
    reported before the download.

    Raises:
        ModelError: The hub cannot be reached, has no such model, or refuses this user; the weights are a pickle that
            `options` do not allow; or the files cannot be fetched and stored or have wrong checksums.
    """
    if huggingface_hub is None:
        raise ModelError(f"{source}: huggingface_hub is not installed. Run pip install huggingface_hub")
    if not sys.stderr.isatty():
        disable_progress_bars()
    matched = NAME.fullmatch(source)
    assert matched is not None
    name = matched["name"]
    listing = _listing(name, matched["revision"], source)
    weights = _choose_weights(name, source, listing, options)
    wanted = [
        (listing, sorted(file for file in listing.files if any(fnmatch(file, pattern) for pattern in OTHER_FILES))),
        (weights, _weight_files(weights.files)),
    ]
    sizes = [origin.files[file].size or 0 for origin, files in wanted for file in files]
    report(f"{name}: {_licence(listing.licence)}; {sum(sizes) / 1e6:,.1f} MB; revision {listing.commit}")
    if weights.reference:
        report(f"{name}: takes the hub's conversion of {PICKLE} to safetensors, {weights.reference}")
    folder.mkdir(parents=True, exist_ok=True)
    for origin, files in wanted:
        for file in dict.fromkeys(files):
            if (origin.files[file].size or 0) > LARGE:
                report(f"{name}: {file}, {(origin.files[file].size or 0) / 1e6:,.1f} MB")
            _download(name, file, origin, source, folder)
    conversion = f"{weights.reference} ({weights.commit})" if weights.reference else ""
    return Origin(folder, name, listing.commit, conversion)


def _licence(licence: str) -> str:
    if not licence:
        return "the card states no licence: ask its authors before you use it"
    return f"licence {licence}" + (", NON-COMMERCIAL USE ONLY" if is_non_commercial(licence) else "")


def _listing(name: str, revision: str | None, source: str, reference: str = "") -> Listing:
    """Return the listing of the files of model `name` on the hub.

    Raises:
        ModelError: The hub returns no listing. The message gives the reason.
    """
    try:
        info = huggingface_hub.HfApi().model_info(name, revision=revision, files_metadata=True)
    except Exception as error:  # huggingface_hub passes on errors of its HTTP library, which varies with its version
        raise ModelError(_refusal(name, source, error)) from error
    files = {file.rfilename: file for file in info.siblings or () if "/" not in file.rfilename}
    card: Any = info.card_data or {}
    stated = card.get("license") or ""
    licence = ", ".join(stated) if isinstance(stated, list) else str(stated)
    if licence == "other":
        licence = str(card.get("license_name") or licence)
    return Listing(str(info.sha), files, licence, reference)


def _refusal(name: str, source: str, error: Exception) -> str:
    """Return a message for the user about an error that huggingface_hub raised."""
    if isinstance(error, hub_errors.GatedRepoError):
        page = f"{huggingface_hub.constants.ENDPOINT}/{name}"
        return (
            f"{source}: the model is gated: its owners give it only to accounts that they have admitted. Accept their "
            f"conditions at {page}, then run `hf auth login`, or set HF_TOKEN to a token of the account"
        )
    if isinstance(error, hub_errors.RepositoryNotFoundError):
        return (
            f"{source}: the hub has no public model of this name; accepted: owner/model, or a name that `mt-service "
            "models` lists. For a private model, run `hf auth login`, or set HF_TOKEN to a token of an account"
        )
    if isinstance(error, hub_errors.RevisionNotFoundError):
        return f"{source}: the model has no such revision; accepted: a branch, a tag or a commit"
    elsewhere = (
        f"on a machine with a network, and import it: `mt-service import FOLDER models/{name.rpartition('/')[2]}`"
    )
    elsewhere = f"fetch a folder by `hf download {name} --local-dir FOLDER` {elsewhere}"
    if isinstance(error, hub_errors.OfflineModeIsEnabled):
        return f"{source}: HF_HUB_OFFLINE is set, so the Hugging Face hub is not asked. Unset it, or {elsewhere}"
    missing = f"{source}: no such folder exists, and the Hugging Face hub cannot be reached ({_reason(error)})"
    return f"{missing}. Set HTTPS_PROXY if this network has a proxy, or {elsewhere}"


def _weight_files(names: Iterable[str]) -> list[str]:
    """Return the names of the weight files: a safetensors file, or else an index and its parts, or else a pickle.

    The list is empty if there are none.
    """
    known = set(names)
    if SAFE not in known and INDEX in known:
        return [INDEX, *sorted(name for name in known if fnmatch(name, PARTS))]
    return [file for file in (SAFE, PICKLE) if file in known][:1]


def _choose_weights(name: str, source: str, listing: Listing, options: ImportOptions) -> Listing:
    """Return the listing with the weights to use: `listing`, or that of a conversion to safetensors.

    Raises:
        ModelError: There are no weights, or the weights are a pickle that is neither converted nor allowed.
    """
    files = _weight_files(listing.files)
    if not files:
        have = ", ".join(sorted(listing.files)) or "no files"
        raise ModelError(f"{source}: has no weights that can be read ({have}); accepted: {SAFE}, {INDEX} or {PICKLE}")
    if files != [PICKLE]:
        return listing
    if converted := _conversion(name, source, listing):
        return converted
    if not options.allow_pickle:
        raise ModelError(
            f"{source}: its only weights are {PICKLE}, a pickle, and the hub has no conversion to safetensors. Either "
            f"run `mt-service import {source}` with {ALLOWED_PICKLE}, or import the folder with OPUS-MT's .npz file, "
            "from the zip archive to which the model's card links"
        )
    return listing


def _conversion(name: str, source: str, listing: Listing) -> Listing | None:
    """Return the listing of the hub's newest conversion of the pickle in `listing`, or None if there is none.

    Conversions of other versions of the pickle are ignored.
    """
    try:
        requests = list(
            huggingface_hub.HfApi().get_repo_discussions(name, author=CONVERTER, discussion_type="pull_request")
        )
    except Exception:  # the hub answers, but discussions may be off for this model
        return None
    numbers = [request.num for request in requests if request.author == CONVERTER and request.status != "closed"]
    for number in sorted(numbers, reverse=True):
        converted = _listing(name, f"refs/pr/{number}", source, f"refs/pr/{number}")
        if _weight_files(converted.files) not in ([], [PICKLE]) and _same_pickle(listing, converted):
            return converted
    return None


def _same_pickle(listing: Listing, converted: Listing) -> bool:
    ours, theirs = listing.files[PICKLE], converted.files.get(PICKLE)
    return bool(ours.lfs and theirs and theirs.lfs and ours.lfs.sha256 == theirs.lfs.sha256)


def _checksum_problem(file: "RepoSibling", path: Path) -> str | None:
    """Return a message if the checksum of `path` is not the stated one, "" if it is, or None if the hub states none.

    The hub states the SHA-256 of a large file, and Git's object id of a small file.
    """
    if file.lfs:
        digest, stated = file_digest(path), file.lfs.sha256
    elif file.blob_id and len(file.blob_id) == 40:
        content = path.read_bytes()
        digest, stated = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest(), file.blob_id
    else:
        return None
    return "" if digest == stated else f"its checksum is {digest}, but the hub states {stated}"


def _download(name: str, file: str, listing: Listing, source: str, folder: Path) -> None:
    """Download `file` into `folder`, unless it is already there with the right checksum.

    An interrupted download is continued; huggingface_hub's own cache would start again.

    Raises:
        ModelError: The file cannot be fetched and stored, or its checksum is wrong.
    """
    remote, path = listing.files[file], folder / file
    if path.exists() and _checksum_problem(remote, path) == "":
        return
    part = folder / f"{file}.{listing.commit[:12]}.part"
    try:
        with part.open("ab") as out:
            http_get(
                huggingface_hub.hf_hub_url(name, file, revision=listing.commit),
                out,
                resume_size=out.tell(),
                headers=build_hf_headers(),
                expected_size=remote.size,
                displayed_filename=file,
            )
    except hub_errors.GatedRepoError as error:
        raise ModelError(_refusal(name, source, error)) from error
    except Exception as error:  # of the network or of the disk
        raise ModelError(
            f"{source}: the hub has this model, but {file} could not be fetched and stored ({_reason(error)}). What "
            f"has arrived is in {folder}, and the same command continues the download. Check the network and the free "
            "space; MT_MODELS sets the folder of models"
        ) from error
    if problem := _checksum_problem(remote, part):
        part.unlink()
        raise ModelError(f"{source}: {file} is damaged: {problem}. It was deleted; the same command fetches it again")
    part.replace(path)


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
