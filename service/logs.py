"""Logs on stderr. They contain ids, counts, times and lines of code, never text that a client sent."""

import json
import logging
import sys
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum

import structlog
from structlog.typing import EventDict, Processor

LOG_EVENTS = {
    "clients may choose their address": "The setting trusted_proxies is * or a large network; clients can then evade "
    "rate limits by address (networks).",
    "database failed": "The database could not be read or written; requests that need it get 503 or 507 (problem).",
    "failed": "A request failed because of a defect and was answered with 500 (location, request_id).",
    "heading in the glossary is no term": "The first row of the operator's glossary names no languages and is left out "
    "(path, line, heading).",
    "installing a model": "A model of the Hugging Face hub is downloaded and converted (model, directory).",
    "listening": "The service accepts connections (host, port).",
    "model loaded": "The workers of a model are ready (model, version, devices).",
    "model loaded on demand": "A request needed a model that was not in memory (model, seconds).",
    "model unloaded": "A replaced model has finished its requests (model, version), or a model made room for another "
    "(model, reason).",
    "the folder of models is empty: the starter model is served; put models there, then reload": "The folder of the "
    "setting models, such as a new volume, has no file (folder).",
    "new database created": "The file of the setting database did not exist (path).",
    "no GPU: the CPU translates": "The setting device is auto, but no GPU can be used (reason).",
    "no model translates the languages of glossary terms": "Some terms never apply (path, line, direction).",
    "no key is valid: every request will be refused": "The setting require_key is set (path).",
    "no key is required": "The service listens beyond this machine without require_key: every machine that reaches it "
    "may translate (host).",
    "no model is named: the starter model is served": "Neither model nor models is set; this model is for trying out.",
    "not answered in time": "The grace period ended before all requests were answered (requests); they have 5 s more.",
    "parser did not start": "No process of a document library could be started (problem).",
    "parser failed": "A document library raised an unexpected exception in its process (location).",
    "parser killed": "A process of a document library was killed from outside; its operation is run once more "
    "(operation).",
    "parsing limit exceeded": "A document or markup exceeded a limit of time or memory (operation).",
    "reload refused": "New models cannot be used; the old models stay in use (problem).",
    "reloaded": "The new models are in use (models), and the glossary of the page as it is now.",
    "reloading": "A reload has begun, by SIGHUP or POST /admin/reload.",
    "request": "A request was answered (method, route, status, milliseconds, caller, the code of an error, characters, "
    "models, and times of phases).",
    "segments not translated": "Segments of a document could not be translated and stay unchanged (failed, segments).",
    "stopped": "The service has ended (texts, decoder_steps).",
    "stopping": "SIGTERM or SIGINT was received; new work is refused from now on (requests).",
    "worker died": "A worker ended unexpectedly; its texts are translated again (model, problem, texts, isolated).",
    "worker hangs": "A worker hangs and is restarted (seconds_without_heartbeat, seconds_without_step).",
    "worker not started": "A worker could not load its model (attempts, problem).",
    "worker restarted": "A worker has loaded its model again (restarts).",
}
"""Meaning and fields of every log event, for the reference page."""


class Phase(StrEnum):
    """Phases of a translation. The service measures the time that each phase takes."""

    QUEUE = "queue"  # the time from the acceptance of a request until a worker has its first text
    TRANSLATE = "translate"


@dataclass
class RequestRecord:
    """Properties of a request, in addition to route and status, for its log line and for metrics."""

    caller: str = ""  # a network address until the caller is admitted
    characters: int = 0
    # seconds; of a request with several parts, those of the slowest
    phases: dict[Phase, float] = field(default_factory=dict)
    models: set[str] = field(default_factory=set)  # names
    code: str = ""  # of the error, which is logged in place of its message, because that may quote the client

    def add_phase(self, phase: Phase, seconds: float) -> None:
        """Record the seconds that a part of the request spent in a phase. Only the slowest part is kept."""
        self.phases[phase] = max(seconds, self.phases.get(phase, 0.0))

    def log_fields(self) -> dict[str, str | int | list[str]]:
        """Return the recorded properties as fields of a log line, with times in milliseconds."""
        named = {"caller": self.caller, "code": self.code}
        fields: dict[str, str | int | list[str]] = {name: value for name, value in named.items() if value}
        if self.characters:
            fields["characters"] = self.characters
        if self.models:
            fields["models"] = sorted(self.models)
        return fields | {f"{phase}_milliseconds": round(1000 * seconds) for phase, seconds in self.phases.items()}


_current: ContextVar[RequestRecord] = ContextVar("record")
"""Record of the request on which a task works. A task inherits the record of the task that started it."""


def start_record(address: str) -> RequestRecord:
    """Create the record of a new request from `address`, make it the current record, and return it."""
    record = RequestRecord(address)
    _current.set(record)
    return record


def current_record() -> RequestRecord:
    """Return the record of the current request, or a new one outside of requests."""
    return _current.get(None) or RequestRecord()


class ErrorOutput:
    """Logger of structlog that prints on stderr, and ignores a closed pipe and a full disk, as logging does."""

    def msg(self, line: str) -> None:
        with suppress(OSError, ValueError):  # ValueError: stderr is closed
            print(line, file=sys.stderr, flush=True)

    debug = info = warning = error = critical = fatal = exception = log = msg


_encoder = json.JSONEncoder(default=repr)


def _render_json(_logger: object, _method: str, event: EventDict) -> str:
    """Return a line of JSON. structlog's JSONRenderer creates an encoder for each line, which takes as long again."""
    return _encoder.encode(event)


def configure_logs(as_json: bool) -> None:
    """Write the logs of all packages as JSON lines, or as text in columns."""
    shared: list[Processor] = [structlog.stdlib.add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True)]
    renderer: Processor = _render_json if as_json else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    structlog.configure(  # not through the handlers of logging, which take twice the time
        processors=[*shared, renderer],
        logger_factory=lambda *_: ErrorOutput(),
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
    )
    handler = logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
