"""Serve models over HTTP: POST /translate, GET /languages, GET /health, and their description at /openapi.json.

    python -m service --model runs/phrasebook-en-de/model
    curl http://localhost:8000/translate -H "Content-Type: application/json" \\
        -d '{"q": "Where is the train station?", "source": "en", "target": "de"}'

SIGTERM or Ctrl-C: the service takes no more requests, answers those it has accepted, and exits with status 0; the
second one ends it at once. SIGHUP: model directories that have changed are loaded anew, while requests go on.
A model or a setting that cannot be used: one message on stderr, and status 2.
"""

import argparse
import asyncio
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

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
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
        epilog="Each option can be set by the environment instead: --max-characters by MT_MAX_CHARACTERS.",
    )
    for name, field in Settings.model_fields.items():
        default = "" if field.is_required() or field.default in (None, (), "") else f" (default: {field.default})"
        found.add_argument(option(name), metavar=name.split("_")[-1].upper(), help=f"{field.description}{default}")
    return found


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
