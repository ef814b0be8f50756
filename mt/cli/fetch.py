"""Write the embedded corpus, or download a public one.

    mt-service fetch phrasebook
    mt-service fetch multi30k
    mt-service fetch tatoeba-en-de --out /corpora/tatoeba
    mt-service fetch Statmt-news_commentary-16-de-en      # any data set of OPUS and WMT; requires the extra `corpora`

Existing files are not downloaded again, so on a machine without a network you can put the files there by hand. The
files of Multi30k are checked by their SHA-256.
"""

import gzip
import hashlib
import importlib.util
import io
import lzma
import os
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import Request, urlopen

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from mt.cli.command import CommandParser, command, stderr_console, tell
from mt.data.demo import write_phrasebook
from mt.errors import DataError, did_you_mean, problems

# SHA-256 of the uncompressed texts in multi30k/dataset, data/task1/raw; the compressed files differ between mirrors.
MULTI30K = {
    "train.en.gz": "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
    "train.de.gz": "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
    "train.fr.gz": "5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d",
    "train.cs.gz": "2be68b38c8d586ff4f54eb13cc6e1baaaa053695b3f070d3038303a47f2268da",
    "val.en.gz": "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
    "val.de.gz": "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
    "val.fr.gz": "5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc",
    "val.cs.gz": "d53827e469b0a1ca8d57e9e26b2b64c4bc4b33f5479c7b03ae87ae5c882c3e33",
    "test_2016_flickr.en.gz": "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
    "test_2016_flickr.de.gz": "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
    "test_2016_flickr.fr.gz": "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6",
    "test_2016_flickr.cs.gz": "45adb85f688de8407fddcbe1b36dca15d12aab868149b337e2576f2d6d2ff8d8",
}

# ISO 639-3 codes of the languages, from which manythings.org forms the names of its archives.
TATOEBA = {
    "ar": "ara", "bg": "bul", "cs": "ces", "da": "dan", "de": "deu", "el": "ell", "es": "spa", "fi": "fin",
    "fr": "fra", "he": "heb", "hu": "hun", "it": "ita", "ja": "jpn", "ko": "kor", "lt": "lit", "mk": "mkd",
    "nl": "nld", "no": "nob", "pl": "pol", "pt": "por", "ro": "ron", "ru": "rus", "sr": "srp", "sv": "swe",
    "tr": "tur", "uk": "ukr", "vi": "vie", "zh": "cmn",
}  # fmt: skip

NAMES = ("phrasebook", "multi30k", *(f"tatoeba-en-{language}" for language in TATOEBA))
LICENCES = {
    "multi30k": "research and education only; https://github.com/multi30k/dataset",
    "tatoeba": "CC-BY 2.0 FR; https://tatoeba.org by way of https://www.manythings.org",
}
CHUNK = 1 << 16
TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class Hosts:
    """Addresses of the folders from which the corpora are downloaded."""

    multi30k: str = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
    tatoeba: str = "https://www.manythings.org/anki"


@dataclass(frozen=True)
class RemoteFile:
    """A file to download to `path`.

    `sha256` is the digest of the uncompressed content, or None if the published file may change.
    """

    url: str
    path: Path
    sha256: str | None


@command
def main(argv: Sequence[str]) -> int:
    return run(argv, Hosts())


def run(argv: Sequence[str], hosts: Hosts) -> int:
    """Run the verb, with downloads from `hosts`. Return the exit status."""
    parser = CommandParser("fetch", __doc__)
    parser.add_argument("name", help="phrasebook, multi30k, tatoeba-en-XX, or the id of an mtdata data set")
    parser.common.add_argument(
        "--out", type=Path, metavar="DIR", help="folder to write (default: NAME in data, or in $MT_DATA)"
    )
    options, console = parser.parse_args(argv), stderr_console()
    corpus = "tatoeba" if options.name in NAMES and options.name.startswith("tatoeba") else options.name
    folder = options.out or Path(os.environ.get("MT_DATA", "data")) / corpus
    fetch(options.name, folder, hosts, console)
    licence = f"; licence: {LICENCES[corpus]}" if corpus in LICENCES else ""
    tell(console, f"{options.name} is in {folder}{licence}")
    return 0


def fetch(name: str, folder: Path, hosts: Hosts, console: Console) -> None:
    """Download or decompress the corpus `name`, and write it to `folder`.

    Raises: DataError if the name is unknown or a download fails.
    """
    if name == "phrasebook":
        write_phrasebook(folder)
    elif name == "multi30k":
        files = [RemoteFile(f"{hosts.multi30k}/{file}", folder / file, sha256) for file, sha256 in MULTI30K.items()]
        download(files, console)
    elif name in NAMES:
        fetch_tatoeba(name.removeprefix("tatoeba-en-"), folder, hosts, console)
    elif name.count("-") == 4:
        fetch_with_mtdata(name, folder, console)
    else:
        raise DataError(
            f"{name}: unknown corpus{did_you_mean(name, NAMES)}; accepted: {', '.join(NAMES)}, or the id of an mtdata "
            "data set, GROUP-NAME-VERSION-SOURCE-TARGET"
        )


def download(files: Iterable[RemoteFile], console: Console) -> None:
    """Download the files that do not exist yet, and compare the checksums of all files.

    Raises: DataError if a checksum is wrong, or a file cannot be downloaded. The message says where to save the file.
    """
    wrong, missing, reason = [], [], ""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console) as progress:
        for file in files:
            if file.path.exists():
                if problem := checksum_problem(file, file.path):
                    wrong.append(f"{file.path}: {problem}; delete the file to fetch it again")
                continue
            try:
                if not reason:  # otherwise, do not wait for another time-out
                    wrong += _download_one(file, progress)
            except (OSError, HTTPException) as error:
                reason = str(error)
            if reason:
                missing.append(f"{file.url} as {file.path}")
    if wrong:
        raise DataError(problems("these files differ from the published ones", wrong))
    if missing:
        heading = f"cannot download these files ({reason}); save each at its path and run the command again"
        raise DataError(problems(heading, missing))


def _download_one(file: RemoteFile, progress: Progress) -> list[str]:
    """Download a file under a temporary name, and rename it if the checksum is right.

    Return a list with a message if the checksum is wrong, otherwise [].

    Raises: OSError, HTTPException if the download fails.
    """
    file.path.parent.mkdir(parents=True, exist_ok=True)
    temporary = file.path.with_name("part-" + file.path.name)
    # manythings.org refuses the default user agent of urllib.
    request = Request(file.url, headers={"User-Agent": "Mozilla/5.0 (compatible; mt-service)"})
    try:
        with urlopen(request, timeout=TIMEOUT_SECONDS) as response, temporary.open("wb") as out:
            length = int(response.headers.get("Content-Length", 0))
            task = progress.add_task(file.path.name, total=length or None)
            received = 0
            while chunk := response.read(CHUNK):
                received += out.write(chunk)
                progress.update(task, completed=received)
        if length and received != length:
            raise OSError(f"the connection was lost after {received:,} of {length:,} bytes")
        if problem := checksum_problem(file, temporary):
            return [f"{file.url}: {problem}"]
        os.replace(temporary, file.path)
        return []
    finally:
        temporary.unlink(missing_ok=True)


def checksum_problem(file: RemoteFile, path: Path) -> str:
    """Return a message if the uncompressed content of `path` is not that of `file`, or "" if it is, or is unknown."""
    if file.sha256 is None:
        return ""
    digest = hashlib.sha256()
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
            while chunk := stream.read(CHUNK):
                digest.update(chunk)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        return "the file is damaged"
    return "" if digest.hexdigest() == file.sha256 else f"the SHA-256 is {digest.hexdigest()}, not {file.sha256}"


def fetch_tatoeba(language: str, folder: Path, hosts: Hosts, console: Console) -> None:
    """Write {train,dev,test}.en-XX.tsv.xz for the language XX. The archive is downloaded only if they are missing.

    Raises: DataError if the archive cannot be downloaded or read.
    """
    if all((folder / f"{split}.en-{language}.tsv.xz").exists() for split in ("train", "dev")):
        return
    name = f"{TATOEBA[language]}-eng.zip"
    # The archives grow every month, so there is no expected checksum.
    archive = RemoteFile(f"{hosts.tatoeba}/{name}", folder / name, sha256=None)
    download([archive], console)
    split_tatoeba(archive.path, f"{TATOEBA[language]}.txt", f"en-{language}")


def split_tatoeba(archive: Path, member: str, direction: str) -> None:
    """Split the file `member` of an archive into train, dev and test files, which are written beside the archive.

    The lines of the file are `english TAB target TAB licence`.

    Raises: DataError if the archive is damaged or lacks `member`.
    """
    splits = ("train", "dev", "test")
    with TemporaryDirectory(dir=archive.parent, prefix="part-") as temporary:
        files = {split: Path(temporary) / f"{split}.{direction}.tsv.xz" for split in splits}
        try:
            with ExitStack() as stack:
                text = stack.enter_context(zipfile.ZipFile(archive)).open(member)
                opened = (stack.enter_context(lzma.open(file, "wt", encoding="utf-8")) for file in files.values())
                outputs = dict(zip(files, opened, strict=True))
                for line in io.TextIOWrapper(text, encoding="utf-8", newline="\n"):
                    english, target = line.rstrip("\r\n").split("\t")[:2]
                    outputs[split_of(english)].write(f"{english}\t{target}\n")
        except (zipfile.BadZipFile, EOFError, KeyError, ValueError, zlib.error) as error:
            raise DataError(
                f"{archive}: damaged, or without the file {member} ({error}); delete the archive to fetch it again"
            ) from error
        for file in files.values():
            os.replace(file, archive.parent / file.name)


def split_of(english: str) -> str:
    """Return "train", "dev" or "test" for an English sentence, by its hash. 1% of sentences are "dev", 1% "test"."""
    number = int.from_bytes(hashlib.blake2b(english.encode(), digest_size=8).digest(), "big") % 100
    return {0: "dev", 1: "test"}.get(number, "train")


def fetch_with_mtdata(name: str, folder: Path, console: Console) -> None:
    """Download a data set with mtdata, and write the two files `corpus.LANGUAGE`.

    Raises: DataError if mtdata is not installed or cannot download the data set.
    """
    if importlib.util.find_spec("mtdata") is None:
        raise DataError(f"{name}: mtdata is not installed. Run pip install 'mt-service[corpora]'")
    languages = name.split("-")[3:]
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=folder, prefix="mtdata-") as temporary:
        arguments = ["--langs", "-".join(languages), "--train", name, "--out", temporary]
        command = [sys.executable, "-m", "mtdata", "get", *arguments]
        with console.status(f"downloading {name} with mtdata"):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        parts = mtdata_parts(Path(temporary) / "train-parts")
        if done.returncode or len(parts) != len(languages):
            last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            finals = " and ".join(str(folder / f"corpus.{language}") for language in languages)
            raise DataError(
                f"mtdata could not download {name}: {last}\nwithout a network, save the corpus by hand as {finals}"
            )
        for language, part in zip(languages, parts, strict=True):
            os.replace(part, folder / f"corpus.{language}")


def mtdata_parts(folder: Path) -> list[Path]:
    """Return the two files ID.LANGUAGE of the data set in `folder`, in the order of the languages in ID.

    Return [] if `folder` does not contain exactly one data set.
    """
    parts = {file.name.rpartition(".")[2]: file for file in folder.glob("*") if ".meta." not in file.name}
    ids = {file.name.rpartition(".")[0] for file in parts.values()}
    return [parts[language] for language in ids.pop().split("-")[3:] if language in parts] if len(ids) == 1 else []
