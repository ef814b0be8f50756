import gzip
import io
import lzma
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from rich.console import Console

from mt.cli import fetch
from mt.cli.command import command
from mt.cli.fetch import Hosts, RemoteFile, download, run, split_of
from mt.errors import DataError

CONTENT = b"A dog.\nA cat.\n"
CHECKSUM = sha256(CONTENT).hexdigest()
WRONG = f"train.gz: (the SHA-256 is .*, not {CHECKSUM}|the file is damaged)"


def main(argv: Sequence[str], hosts: Hosts) -> int:
    """Exit status of the verb with other hosts."""
    return command(lambda arguments: run(arguments, hosts))(argv)


class Server(SimpleHTTPRequestHandler):
    """The files of a folder; a path that ends in .short breaks off half-way."""

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        if not self.path.endswith(".short"):
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"x" * 500)
        return None


@pytest.fixture
def remote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path]]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    folder = tmp_path / "remote"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Server, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", folder
        server.shutdown()
        thread.join()


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        return f"http://127.0.0.1:{server.server_port}"


@pytest.fixture
def console() -> Console:
    return Console(file=io.StringIO())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("train.gz", gzip.compress(CONTENT), ""),
        ("train.gz", gzip.compress(b"another text\n"), WRONG),
        ("train.gz", gzip.compress(CONTENT)[:-9], WRONG),
        ("train.gz", b"<html>", WRONG),
        ("a.short", b"", r"lost after 500 of 1,000 bytes|IncompleteRead"),
    ],
    ids=["whole", "another", "cut short", "no gzip", "a broken connection"],
)
def test_the_uncompressed_content_of_a_fetched_file_is_checked(
    remote: tuple[str, Path], tmp_path: Path, console: Console, name: str, content: bytes, problem: str
) -> None:
    address, served = remote
    (served / name).write_bytes(content)
    out = tmp_path / "out" / name
    with pytest.raises(DataError, match=problem) if problem else nullcontext():
        download([RemoteFile(f"{address}/{name}", out, CHECKSUM)], console)
    assert names(out.parent) == ([] if problem else [name])


@pytest.mark.parametrize(("content", "problem"), [(CONTENT, ""), (b"mine\n", "delete the file to fetch it again")])
def test_existing_files_are_kept(tmp_path: Path, refused: str, console: Console, content: bytes, problem: str) -> None:
    path = tmp_path / "train.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=problem) if problem else nullcontext():
        download([RemoteFile(refused, path, CHECKSUM)], console)
    assert path.read_bytes() == content


def test_offline_the_files_are_listed(tmp_path: Path, refused: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "multi30k"
    assert main(["multi30k", "--out", str(out)], Hosts(multi30k=refused)) == 2
    printed = capsys.readouterr().err
    assert "refused" in printed
    assert "save each at its path" in printed
    assert "Traceback" not in printed
    for name in fetch.MULTI30K:
        assert f"{refused}/{name} as {out / name}" in printed


def tatoeba_archive(path: Path, member: str, lines: list[str]) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_about.txt", "about")
        archive.writestr(member, "".join(f"{line}\n" for line in lines))


def test_tatoeba_is_split(remote: tuple[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address, served = remote
    lines = [f"Sentence {i // 2}.\tSatz {i}.\tCC-BY 2.0 (France)" for i in range(2000)]
    tatoeba_archive(served / "deu-eng.zip", "deu.txt", lines)
    out = tmp_path / "tatoeba"
    assert main(["tatoeba-en-de", "--out", str(out)], Hosts(tatoeba=address)) == 0
    splits = {}
    for split in ("train", "dev", "test"):
        splits[split] = lzma.decompress((out / f"{split}.en-de.tsv.xz").read_bytes()).decode().splitlines()
    pairs = sorted(line.rpartition("\t")[0] for line in lines)
    assert sorted(line for item in splits.values() for line in item) == pairs
    english = {split: {line.split("\t")[0] for line in item} for split, item in splits.items()}
    assert english["dev"] and english["test"]
    assert not english["train"] & english["dev"] and not (english["train"] | english["dev"]) & english["test"]
    assert names(out) == ["deu-eng.zip", "dev.en-de.tsv.xz", "test.en-de.tsv.xz", "train.en-de.tsv.xz"]
    assert "licence: CC-BY 2.0 FR" in capsys.readouterr().err


@pytest.mark.parametrize(("member", "line"), [("", ""), ("deu.txt", "Go.\tGeh."), ("fra.txt", "Go.")])
def test_damaged_zip(tmp_path: Path, refused: str, capsys: pytest.CaptureFixture[str], member: str, line: str) -> None:
    """It is no zip file, has another member, or a line without a tab."""
    archive = tmp_path / "fra-eng.zip"
    archive.write_bytes(b"<html>")
    if member:
        tatoeba_archive(archive, member, [line])
    assert main(["tatoeba-en-fr", "--out", str(tmp_path)], Hosts(tatoeba=refused)) == 2
    assert f"{archive}: damaged, or without the file fra.txt" in capsys.readouterr().err
    assert names(tmp_path) == ["fra-eng.zip"]


def test_the_split_of_a_sentence_never_changes() -> None:
    assert [split_of(f"Sentence {number}.") for number in (0, 46, 89)] == ["train", "dev", "test"]


def test_missing_mtdata(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert main(["Statmt-news_commentary-16-de-en", "--out", str(tmp_path)], Hosts()) == 2
    assert "pip install 'mt-service[corpora]'" in capsys.readouterr().err


FAKE_MTDATA = """
import pathlib, sys
arguments = sys.argv[1:]
assert arguments[:5] == ["get", "--langs", "de-en", "--train", "Statmt-news_commentary-16-de-en"], arguments
if {fails}:
    raise ConnectionError("no route to host")
parts = pathlib.Path(arguments[arguments.index("--out") + 1]) / "train-parts"
parts.mkdir()
for language, text in (("deu", "Hund"), ("eng", "dog")):
    (parts / f"Statmt-news_commentary-16-deu-eng.{{language}}").write_text(text + "\\n")
(parts / "Statmt-news_commentary-16-deu-eng.meta.jsonl.gz").write_bytes(b"")
"""


@pytest.mark.parametrize("fails", [False, True])
def test_mtdata_is_asked_and_its_files_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], fails: bool
) -> None:
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "mtdata.py").write_text(FAKE_MTDATA.format(fails=fails))
    monkeypatch.setenv("PYTHONPATH", str(modules))
    monkeypatch.setattr(sys, "path", [str(modules), *sys.path])
    out = tmp_path / "out"
    status = main(["Statmt-news_commentary-16-de-en", "--out", str(out)], Hosts())
    if fails:
        assert status == 2
        assert "no route to host" in (printed := capsys.readouterr().err)
        assert f"{out / 'corpus.de'} and {out / 'corpus.en'}" in printed
        assert "Traceback" not in printed
        assert names(out) == []
    else:
        assert status == 0
        assert (out / "corpus.de").read_text() == "Hund\n"
        assert (out / "corpus.en").read_text() == "dog\n"
        assert names(out) == ["corpus.de", "corpus.en"]
