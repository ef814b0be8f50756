"""Serve a model over HTTP: POST /translate, GET /languages, GET /health, and their description at GET /docs.

    python -m service --model runs/phrasebook-en-de/model
    curl http://localhost:8000/translate -H "Content-Type: application/json" \\
        -d '{"q": "Where is the train station?", "source": "en", "target": "de"}'

SIGTERM or Ctrl-C: the service takes no more requests, answers those it has accepted, and exits with status 0.
A model or a setting that cannot be used: one message on stderr, and status 2.
"""

import argparse
import asyncio
import signal
import socket
import sys
from collections.abc import Sequence
from functools import partial

import structlog
import uvicorn

from mt.engine.translator import Translator
from mt.errors import MTError
from service.app import create_app
from service.logs import configure_logs
from service.settings import Settings, SettingsError, load_settings, option, variable
from service.worker import QueueLimits, ThreadTransport, Worker


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
        default = "" if field.is_required() or field.default is None else f" (default: {field.default})"
        found.add_argument(option(name), metavar=name.split("_")[-1].upper(), help=f"{field.description}{default}")
    return found


async def serve(settings: Settings) -> None:
    """Until SIGTERM or SIGINT. Raises ModelError, or SettingsError if nothing can listen there."""
    log = structlog.get_logger()
    with bound(settings.host, settings.port) as listener:
        load = partial(
            Translator.load,
            settings.model,
            settings.device,
            settings.dtype,
            settings.threads,
            shortlist=settings.shortlist,
        )
        transport = ThreadTransport(load)
        limits = QueueLimits(settings.max_pending_requests, settings.max_pending_characters)
        async with Worker(transport, limits, lambda problem: log.error("worker stopped", where=problem)) as worker:
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)  # Server handles them, and raises them again when it has ended
            config = uvicorn.Config(
                create_app(settings, worker),
                log_config=None,
                access_log=False,
                timeout_graceful_shutdown=settings.grace_seconds,
                server_header=False,
            )
            await Server(config).serve(sockets=[listener])
            if worker.alive:
                counts = await worker.counts()
                log.info("stopped", texts=counts.finished, decoder_steps=counts.steps)


class Server(uvicorn.Server):
    """uvicorn's, which says on which port it listens."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or []:
            host, port = listener.getsockname()[:2]
            structlog.get_logger().info("listening", host=host, port=port)


def bound(host: str, port: int) -> socket.socket:
    """A socket with an address, which does not listen yet. Raises SettingsError."""
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
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
