"""Serve models over HTTP: POST /translate, GET /languages, GET /health. All operations are listed at /docs.

    python -m service                                                    # the starter model of the package
    python -m service --model hub:opus-mt-en-de        # installs the model first; mt-service models lists others
    python -m service --model runs/phrasebook-en-de/model
    curl http://localhost:8000/translate -H "Content-Type: application/json" \\
        -d '{"q": "Where is the train station?", "source": "en", "target": "de"}'

Further examples: all models of a volume, in a container; API keys; a proxy in front of the service:

    docker run --gpus all -p 8000:8000 -v models:/models IMAGE
    python -m service --models models --database service.db --require-key true     # keys: mt-service keys
    python -m service --models models --root-path /translator --trusted-proxies 10.0.0.1

At SIGTERM or Ctrl-C the service refuses new requests, answers the accepted requests and exits with status 0; a second
signal ends it at once. At SIGHUP it loads changed model directories, new ones in --models and the glossary of the
page, while it answers requests. If a model or a setting cannot be used, it exits with status 2 and a message;
if the database is locked, read-only or on a full disk, with status 75, after which a supervisor tries again.
"""

import argparse
import asyncio
import os
import select
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, get_args, get_origin

import anyio
import structlog
import uvicorn
import uvloop

from mt.arguments import ArgumentParser
from mt.errors import MTError, did_you_mean, problems
from mt.languages import language_name
from mt.processes import drop_unread_errors
from mt.text.normalise import normalise_text
from service.access.api_keys import list_keys
from service.access.database import Database, DatabaseUnavailable
from service.app import create_app
from service.freed_memory import return_freed_memory, return_large_blocks
from service.http.connections import ACCEPTS, BACKLOG, SEND_BYTES, Connections, connection_limit
from service.hub_models import install_models
from service.logs import open_logs
from service.memories.store import OPERATOR, SUGGESTIONS, list_owned
from service.pauses import GrowthCollector, shorten_pauses
from service.processes import disable_core_dumps
from service.routes.page import files
from service.settings import Settings, SettingsError, load_settings, option, variable
from service.signals import SignalHandlers
from service.workers.fleet import Fleet

GROUPS = {
    "model": "models",
    "host": "address",
    "device": "device",
    "max_body_bytes": "limits of a request",
    "cache_characters": "cache and storage",
    "max_pending_requests": "queue and time-outs",
    "database": "access",
    "read_timeout_seconds": "connections",
    "allow_origins": "web sites and proxies",
    "log_json": "logs",
}
"""Headings of the groups of settings in the help. The key is the first setting of a group."""

PLACEHOLDERS = {"model": "MODEL[,MODEL]", "models": "DIR", "database": "FILE"}
BACKLOG_SECONDS = 1  # longest time in which connections are accepted after all requests are done
SHUTDOWN_SECONDS = 5  # time to send the last answers after all requests are done


def main(arguments: Sequence[str], program: str = "python -m service") -> int:
    drop_unread_errors()
    options = vars(parser(program).parse_args(arguments))
    try:
        settings = load_settings(options)
        with open_logs(not sys.stderr.isatty() if settings.log_json is None else settings.log_json):
            if settings.broad_proxies:
                structlog.get_logger().warning("clients may choose their address", networks=settings.broad_proxies)
            if settings.is_open:
                structlog.get_logger().warning("no key is required", host=settings.host)
            settings = install_models(settings)
            disable_core_dumps()
            return_large_blocks()
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(serve(settings))
    except MTError as error:
        print(f"error: {error}", file=sys.stderr)
        return os.EX_TEMPFAIL if isinstance(error, DatabaseUnavailable) else 2
    except KeyboardInterrupt:
        return 130
    return 0


def parser(program: str = "python -m service") -> argparse.ArgumentParser:
    """Return a parser with an option for each setting. The environment provides the options that are not given."""
    parser = ArgumentParser(
        prog=program,
        usage="%(prog)s [--model MODEL | --models DIR] [options]",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        argument_default=argparse.SUPPRESS,
        epilog="Each option can be set by the environment instead: --max-characters by MT_MAX_CHARACTERS.",
    )
    group = parser.add_argument_group()
    for name, field in Settings.model_fields.items():
        if name in GROUPS:
            group = parser.add_argument_group(GROUPS[name])
        default = "" if field.default in (None, (), "") else f" (default: {_format_default(field.default)})"
        group.add_argument(
            option(name), metavar=_placeholder(name, field.annotation), help=f"{field.description}{default}"
        )
    return parser


def _format_default(value: object) -> str:
    """Return a default value in the form that the user can type."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:_}" if isinstance(value, int) and value >= 10_000 else str(value)


def _placeholder(name: str, annotation: Any) -> str:
    """Return the placeholder for a setting's value in the help: its choices, its unit, or N for a number."""
    kinds = {annotation, *get_args(annotation)}
    if bool in kinds:
        return "{true,false}"
    if get_origin(annotation) is Literal:
        return "{" + ",".join(get_args(annotation)) + "}"
    unit = name.split("_")[-1].upper()
    return "N" if kinds & {int, float} and unit not in ("BYTES", "SECONDS", "PORT") else PLACEHOLDERS.get(name, unit)


async def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. A signal that arrives during the loading of the models ends the loading.

    Raises:
        ModelError: if a model cannot be used.
        DatabaseError: if the database cannot be used.
        OfferedGlossaryError: if the glossary of the page cannot be used.
        SettingsError: if the service cannot listen on the address, or a memory of the page does not exist.
    """
    is_new = settings.database is not None and not settings.database.exists()
    with (
        SignalHandlers(settings.grace_seconds) as signals,
        bind(settings.host, settings.port) as listener,
        Database.open(settings.database) as database,
    ):
        preparing = asyncio.create_task(asyncio.to_thread(load_tables))
        if is_new:
            structlog.get_logger().info("new database created", path=str(settings.database))
        if settings.require_key and not any(key.valid(time.time()) for key in database.read_sync(list_keys)):
            structlog.get_logger().warning(
                "no key is valid: every request will be refused", path=str(settings.database)
            )
        check_page_memories(settings, database)
        fleet = Fleet(settings)
        app = create_app(settings, fleet, database)  # reads the glossary of the page before the models are loaded
        async with fleet:
            limit = connection_limit(settings.max_connections)
            config = uvicorn.Config(
                app,
                http=Connections(settings.read_timeout_seconds, limit, settings.max_buffered_bytes).protocol(),
                ws="none",
                backlog=BACKLOG,
                proxy_headers=False,  # the application's own middleware trusts only proxies of the settings
                root_path=settings.root_path,
                log_config=None,
                access_log=False,
                timeout_graceful_shutdown=SHUTDOWN_SECONDS,
                server_header=False,
            )
            server = HttpServer(config)
            signals.serve(fleet, server.stop)
            await preparing
            accepts = min(ACCEPTS, limit // 4)  # each needs descriptors: its own and those of connections to be closed
            await server.serve(sockets=[listener, *(listener.dup() for _ in range(1, accepts))])
        stats = fleet.stats()  # with the last heartbeats of the workers
        structlog.get_logger().info("stopped", texts=stats.finished, decoder_steps=stats.work.steps)


def check_page_memories(settings: Settings, database: Database) -> None:
    """Raise SettingsError if the operator has no memory with a name of `page_memories`."""
    if not settings.page_memories:
        return
    owned = database.read_sync(partial(list_owned, owner=OPERATOR))  # no other process's lock delays a reader
    known = [memory.name for memory in owned] + [SUGGESTIONS] * settings.suggestions  # the first one creates it
    if unknown := [name for name in settings.page_memories if name not in known]:
        wrong = [f"the operator has no memory {name!r}{did_you_mean(name, known)}" for name in unknown]
        accepted = ", ".join(dict.fromkeys(known)) or "a memory that `mt-service memory import` has stored"
        raise SettingsError(problems(f"the setting page_memories cannot be used; accepted: {accepted}", wrong))


def load_tables() -> None:
    """Load what would delay the first requests by a second: names of languages, tables of characters, the page."""
    anyio.run(anyio.sleep, 0)  # loads anyio's modules, which send the streamed answers
    files()
    language_name("en")
    normalise_text("e\u0301")


class HttpServer(uvicorn.Server):
    """A uvicorn server that logs its port and leaves signals to `SignalHandlers`."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        host, port = self.servers[0].sockets[0].getsockname()[:2]  # the others have the same address
        structlog.get_logger().info("listening", host=host, port=port)
        shorten_pauses()
        return_freed_memory()  # of the tables that were read at the start
        self._collector = GrowthCollector()

    async def on_tick(self, counter: int) -> bool:
        """Check the memory every second: uvicorn calls this every 0.1 s."""
        if counter % 10 == 0:
            await self._collector.check(is_busy=bool(self.servers and self.server_state.tasks))
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer the connections that wait in the kernel, which would reset them, and then close the sockets."""
        waiting, end = select.poll(), time.monotonic() + BACKLOG_SECONDS
        for listener in sockets or ():
            waiting.register(listener, select.POLLIN)
        while waiting.poll(0) and time.monotonic() < end:
            await asyncio.sleep(0)
        await asyncio.sleep(0.1)  # the requests of the last ones are read
        await super().shutdown(sockets)

    async def stop(self) -> None:
        """Wait until the server listens, then stop it. uvicorn does not close an application that is still starting."""
        while not self.started:
            await asyncio.sleep(0.01)
        self.should_exit = True


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that is bound but does not listen yet. Raises: SettingsError if the address cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm only if the protocol is given
    listener = socket.socket(family, proto=socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)  # connections inherit it
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise SettingsError(
            f"cannot listen on {host}, port {port}: {error.strerror}; accepted: an address of this machine and a free "
            f"port ({option('host')}, {option('port')}, or {variable('host')}, {variable('port')})"
        ) from error
    return listener
