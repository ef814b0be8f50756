"""A local server with the calls of the Hugging Face hub that a download makes: models, discussions, files, ranges."""

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

LARGE = (".safetensors", ".bin", ".spm")  # files that the hub stores by their SHA-256


def commit_of(folder: Path) -> str:
    return hashlib.sha1(str(folder).encode()).hexdigest()


@dataclass
class Repository:
    """A model on the hub: the folder of each branch, and its pull requests as (number, author)."""

    branches: Mapping[str, Path]
    licence: str | None = "cc-by-4.0"
    gated: bool = False
    requests: list[tuple[int, str]] = field(default_factory=list)

    def folder(self, revision: str) -> Path | None:
        states = {commit_of(folder): folder for folder in self.branches.values()}
        return {**states, **self.branches}.get(revision)

    def info(self, folder: Path, name: str) -> dict[str, Any]:
        siblings = []
        for file in sorted(path for path in folder.iterdir() if path.is_file()):
            content = file.read_bytes()
            entry: dict[str, Any] = {"rfilename": file.name, "size": len(content)}
            entry["blobId"] = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            if file.suffix in LARGE:
                digest = hashlib.sha256(content).hexdigest()
                entry["lfs"] = {"size": len(content), "sha256": digest, "pointerSize": 134}
            siblings.append(entry)
        card = {} if self.licence is None else {"cardData": {"license": self.licence}}
        gated = "manual" if self.gated else False
        return {"id": name, "modelId": name, "sha": commit_of(folder), "siblings": siblings, "gated": gated, **card}

    def discussions(self, name: str) -> dict[str, Any]:
        entries = [
            {
                "num": number,
                "title": "Adding `safetensors` variant of this model",
                "author": {"name": author},
                "createdAt": "2023-08-23T10:00:00.000Z",
                "status": "open",
                "repo": {"name": name, "type": "model"},
                "isPullRequest": True,
            }
            for number, author in self.requests
        ]
        return {"discussions": entries, "count": len(entries), "start": 0}


@dataclass
class HubStub:
    """The server. `cuts` are bytes of a file after which the next answers lose the connection, once for each number."""

    repositories: dict[str, Repository] = field(default_factory=dict)
    cuts: dict[str, list[int]] = field(default_factory=dict)
    corrupt: set[str] = field(default_factory=set)  # files that arrive with wrong bytes
    log: list[tuple[str, str, str]] = field(default_factory=list)  # method, path, range
    endpoint: str = ""

    def fetched(self, name: str) -> list[str]:
        """The ranges of the GET requests for a file, "" for the whole."""
        return [range for method, path, range in self.log if method == "GET" and path.endswith("/" + name)]

    def answer(self, path: str) -> tuple[int, dict[str, str], bytes]:
        words = unquote(path.partition("?")[0]).strip("/").split("/")
        api = words[:2] == ["api", "models"]
        name, rest = "/".join(words[2:4] if api else words[:2]), words[4:] if api else words[2:]
        repository = self.repositories.get(name)
        if repository is None:
            return 401, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Invalid username or password."}, b""
        if api and rest[:1] == ["discussions"]:
            return 200, {}, json.dumps(repository.discussions(name)).encode()
        revision, file = ("/".join(rest[1:]) or "main", "") if api else (rest[1], rest[2])
        folder = repository.folder(revision)
        if folder is None:
            return 404, {"X-Error-Code": "RevisionNotFound"}, b""
        if api:
            return 200, {}, json.dumps(repository.info(folder, name)).encode()
        if repository.gated:
            return 403, {"X-Error-Code": "GatedRepo", "X-Error-Message": f"Access to {name} is restricted."}, b""
        if not (folder / file).is_file():
            return 404, {"X-Error-Code": "EntryNotFound"}, b""
        content = (folder / file).read_bytes()
        headers = {"ETag": f'"{hashlib.sha256(content).hexdigest()}"', "X-Repo-Commit": commit_of(folder)}
        return 200, headers, content[::-1] if file in self.corrupt else content


def handler_for(hub: HubStub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.reply(body=False)

        def do_GET(self) -> None:
            self.reply(body=True)

        def reply(self, body: bool) -> None:
            asked = self.headers.get("Range", "")
            hub.log.append((self.command, self.path.partition("?")[0], asked))
            status, headers, content = hub.answer(self.path)
            size = len(content)
            if asked and status == 200:
                first = int(asked.removeprefix("bytes=").partition("-")[0])
                status, content = 206, content[first:]
                headers["Content-Range"] = f"bytes {first}-{size - 1}/{size}"
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), "Accept-Ranges": "bytes", **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if body:
                cuts = hub.cuts.get(self.path.rpartition("/")[2], [])
                self.wfile.write(content[: cuts.pop(0)] if cuts else content)
                self.close_connection = True

        def log_message(self, format: str, *arguments: object) -> None:
            return

    return Handler


@contextmanager
def running(hub: HubStub) -> Iterator[HubStub]:
    """Run the server; `hub.endpoint` is then its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_for(hub))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    hub.endpoint = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
