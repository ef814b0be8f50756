"""Serve models over HTTP: POST /translate, GET /languages, GET /health, and their description at /openapi.json.

    python -m service --model runs/phrasebook-en-de/model
    curl http://localhost:8000/translate -H "Content-Type: application/json" \\
        -d '{"q": "Where is the train station?", "source": "en", "target": "de"}'

In a container, every folder of the volume is a model; for callers with keys; behind a proxy:

    docker run --gpus all -p 8000:8000 -v models:/models IMAGE
    python -m service --models models --database service.db --require-key true     # scripts/keys.py makes the keys
    python -m service --models models --root-path /translator --trusted-proxies 10.0.0.0/8

SIGTERM or Ctrl-C: the service takes no more requests, answers those it has accepted, and exits with status 0; the
second one ends it at once. SIGHUP: model directories that have changed, or are new in --models, are loaded, while
requests go on.
A model or a setting that cannot be used: one message on stderr, and status 2.
"""

import argparse
import asyncio
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, get_args, get_origin

import structlog
import uvicorn

from mt.errors import MTError
from service.access.store import Store
from service.app import create_app
from service.connections import Connections
from service.logs import configure_logs
from service.middleware import HEAD_BYTES
from service.settings import Settings, SettingsError, load_settings, option, variable
from service.signals import Signals
from service.workers.fleet import Fleet, Plan, in_processes

GROUPS = {
    "model": "what is served",
    "host": "where",
    "device": "on what",
    "max_body_bytes": "how much a request may ask for",
    "cache_characters": "what is kept",
    "max_pending_requests": "how much is accepted at a time, and how long it may take",
    "database": "who may ask",
    "body_seconds": "connections",
    "allow_origins": "web sites and proxies",
    "log_json": "logs",
}
"""The heads of the help, each before the first setting under it."""

KINDS = {"model": "DIR[,DIR]", "models": "DIR", "database": "FILE"}

LONGEST_GOODBYE = 5  # seconds for answers to be sent once all are there


def main(arguments: Sequence[str]) -> int:
    given = vars(parser().parse_args(arguments))
    try:
        settings = load_settings(given)
        configure_logs(not sys.stderr.isatty() if settings.log_json is None else settings.log_json)
        asyncio.run(serve(settings))
    except MTError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def parser() -> argparse.ArgumentParser:
    """An option for each setting; what is not given is left to the environment."""
    found = argparse.ArgumentParser(
        prog="python -m service",
        usage="%(prog)s (--model DIR | --models DIR) [options]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
        epilog="Each option can be set by the environment instead: --max-characters by MT_MAX_CHARACTERS.",
    )
    group = found.add_argument_group()
    for name, field in Settings.model_fields.items():
        if name in GROUPS:
            group = found.add_argument_group(GROUPS[name])
        default = "" if field.default in (None, (), "") else f" (default: {_written(field.default)})"
        group.add_argument(option(name), metavar=_kind(name, field.annotation), help=f"{field.description}{default}")
    return found


def _written(value: object) -> str:
    """A value as it can be typed."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:_}" if isinstance(value, int) and value >= 10_000 else str(value)


def _kind(name: str, annotation: Any) -> str:
    """What stands for a value in the help: its choices, its unit, or what it is."""
    kinds = {annotation, *get_args(annotation)}
    if bool in kinds:
        return "{true,false}"
    if get_origin(annotation) is Literal:
        return "{" + ",".join(get_args(annotation)) + "}"
    unit = name.split("_")[-1].upper()
    return "N" if kinds & {int, float} and unit not in ("BYTES", "SECONDS", "PORT") else KINDS.get(name, unit)


async def serve(settings: Settings) -> None:
    """Until SIGTERM or SIGINT. Raises ModelError, StoreError, or SettingsError if nothing can listen there."""
    with (
        bound(settings.host, settings.port) as listener,
        Store.open(settings.database) as store,
        Signals(settings.grace_seconds) as signals,
    ):
        async with Fleet(Plan.of(settings), in_processes(settings)) as fleet:
            config = uvicorn.Config(
                create_app(settings, fleet, store),
                http=Connections(settings.body_seconds, settings.max_connections).protocol(),
                proxy_headers=False,  # the application has them from those whom the settings trust
                h11_max_incomplete_event_size=HEAD_BYTES,
                root_path=settings.root_path,
                log_config=None,
                access_log=False,
                timeout_graceful_shutdown=LONGEST_GOODBYE,
                server_header=False,
            )
            server = Server(config)
            signals.serve(fleet, server)
            await server.serve(sockets=[listener])
            stats = await fleet.fresh_stats()
            structlog.get_logger().info("stopped", texts=stats.finished, decoder_steps=stats.steps)


class Server(uvicorn.Server):
    """uvicorn's, which says on which port it listens, and leaves signals to us."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or []:
            host, port = listener.getsockname()[:2]
            structlog.get_logger().info("listening", host=host, port=port)


def bound(host: str, port: int) -> socket.socket:
    """A socket with an address, which does not listen yet. Raises SettingsError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, proto=socket.IPPROTO_TCP)  # unsaid, asyncio would leave Nagle's delay in place
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise SettingsError(
            f"cannot listen on {host}, port {port}: {error.strerror}; accepted: an address of this machine and a free "
            f"port ({option('host')}, {option('port')}, or {variable('host')}, {variable('port')})"
        ) from error
    return listener


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
