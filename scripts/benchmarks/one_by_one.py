"""`python -m scripts.benchmarks.one_by_one MODEL`: POST /translate as LibreTranslate does it, with our engine inside.

A thread for each connection, one lock around the model, and one text after another: what a service is that hands each
request to a translator. Prints its port as JSON when it listens.
"""

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

from mt.engine.translator import Translator


class Server(ThreadingHTTPServer):
    """`translate` is never called by two threads at a time."""

    daemon_threads = True
    request_queue_size = 512

    def __init__(self, translate: Callable[[str], str]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self._translate = translate
        self._lock = Lock()

    def answers(self, texts: Sequence[str]) -> list[str]:
        found = []
        for text in texts:
            with self._lock:
                found.append(self._translate(text))
        return found


class Handler(BaseHTTPRequestHandler):
    """Keeps connections, as every other contender does."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # head and body in one packet
    server: Server

    def do_POST(self) -> None:
        q = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["q"]
        found = self.server.answers([q] if isinstance(q, str) else q)
        body = json.dumps({"translatedText": found[0] if isinstance(q, str) else found}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the log would cost time."""


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--threads", type=int, default=None)
    options = parser.parse_args(arguments)
    translator = Translator.load(options.model, "cpu", options.dtype, options.threads)
    translator.translate(["A sentence to begin with."])
    with Server(lambda text: translator.translate([text])[0].text) as server:
        print(json.dumps({"event": "listening", "port": server.server_address[1]}), flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
