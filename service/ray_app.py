"""The service on Ray: models on any number of GPUs and machines, behind the same application.

    pip install 'mt-service[ray]'                                 # on every machine
    ray start --head --disable-usage-stats                        # on the first; it says what the others are to do
    python -m service.ray_app --model MODEL --max-replicas 8      # on the first

Every option of `python -m service` is one here too, but that --max-connections and the slowness of heads are up to
Serve's proxies, and logs of replicas are always JSON. Model directories must have the same path on every machine, and
`--database` one that the front reaches wherever it is. Whoever reaches a Ray cluster can run anything in it: keep it
among its machines, and see Ray's RAY_AUTH_MODE=token.

Ray Serve runs two deployments. `front` is the application, once: so there is one queue, one fairness between callers,
one shelf of documents, one /metrics, and an overload is refused with 503 and Retry-After as ever. `models` are replicas
with a GPU each, or with --threads CPU cores (1 if left out); as many as the texts in work ask for. Where there is a
replica, there is a proxy, and all of them answer on --port.

A replica of `models` that dies, or its machine, costs nothing but time: the front gives what it had to another one. If
the front dies, the proxy asks the new one; so no request that was accepted is lost by that either. What is lost then is
what was being streamed, and, without --database, documents that were not fetched. A proxy that dies takes its
connections along, as does the last machine.

SIGTERM or Ctrl-C: nothing new is accepted, what was is answered, and the deployments are ended; the status is 0. They
are ended at once the second time, or while models are still being loaded: the status is then 130.
"""

import argparse
import asyncio
import logging
import re
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any
from uuid import uuid4

import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from mt.errors import MTError, problems
from service.__main__ import parser
from service.access.store import Store
from service.app import create_app
from service.errors import InternalError, ReloadRefused, ServiceError, Unavailable
from service.logs import configure_logs
from service.settings import Settings, SettingsError, load_settings
from service.workers.admission import Size
from service.workers.calls import cost
from service.workers.fleet import Fleet, Plan, in_processes
from service.workers.messages import Done, Failed, Ready, Refused, Translate, Wish, Work
from service.workers.replicas import Answer, ReplicaDied, ReplicasTransport
from service.workers.teams import Team

try:
    import ray
    from ray import serve
    from ray.exceptions import ObjectLostError, RayActorError, RayError, RayTaskError
    from ray.serve.context import _get_global_client  # nothing public tells with which options Serve runs
    from ray.serve.exceptions import RayServeException
except ModuleNotFoundError:  # an optional dependency: `main` says so
    ray = None

NAME = "mt"  # of the application in Ray Serve
CALLBACK = "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH"  # where a proxy finds what is to stand in front of it
UNLIMITED = Size(2**62, 2**62, 2**62)
ONGOING = 512  # texts that a replica has at a time: more than its engine takes in, less than would make it late
LOAD = "batches"  # the name of what a replica tells of its load
BATCHES = 2.0  # that each replica is to have: one that it decodes, and the next
LEAVING = 30  # seconds beyond the grace until a deployment is ended that has not ended
ATTEMPTS = 3  # to start a replica, before the application counts as failed
QUIET = {"enable_access_log": False, "log_level": "WARNING"}  # Serve; the application has a log of its own


@dataclass(frozen=True)
class Scale:
    """How many replicas of the models there are to be, and what each takes of its machine."""

    least: int
    most: int
    gpus: int
    cpus: int


class Models:
    """A replica: a fleet of its own, with a GPU or some cores, which accepts what the front has accepted."""

    async def __init__(self, settings: Settings) -> None:  # type: ignore[misc]  # Serve awaits it
        configure_logs(as_json=True)
        self._name = uuid4().hex
        self._ends = AsyncExitStack()
        plan = replace(Plan.of(settings), limits=UNLIMITED)
        self._fleet = await self._ends.enter_async_context(Fleet(plan, in_processes(settings)))
        self._reloading: asyncio.Task[None] | None = None
        self._batches = 0.0  # sentences in work, by how many are decoded at a time

    async def __del__(self) -> None:
        await self._ends.aclose()

    async def check_health(self) -> None:
        """Asked by Serve, which puts another replica in the place of one that raises."""
        if any(team.hopeless for team in self._fleet.teams):
            raise RuntimeError("no worker can be started")

    def record_autoscaling_stats(self) -> dict[str, float]:
        """Asked by Serve, for `replicas_for`."""
        return {LOAD: self._batches}

    async def describe(self, model: Path) -> Ready | Refused:
        """What is in the directory now; it is taken up if it is not what there was."""
        try:
            await self._reload()
        except ReloadRefused as error:
            return Refused(str(error))
        team = self._team(model)
        if team is None:
            return Refused(f"{model} is not among the models of a replica; accepted: the same on every machine")
        return Ready(team.directions, team.options, team.version, ("replicas",), team.capacity)

    async def translate(self, model: Path, version: str, message: Translate, seconds: float | None) -> Answer:
        """In so many seconds. `message.deadline` is by another machine's clock."""
        team = self._team(model)
        if team is None or team.version != version:
            with suppress(ReloadRefused):
                await self._reload()
            team = self._team(model)
        outcome = None
        if team is not None and team.version == version:
            batches = cost(message.text) / team.capacity
            self._batches += batches
            try:
                outcome = await self._outcome(message, seconds)
            finally:
                self._batches -= batches
        stats = self._fleet.stats()
        work = Work(stats.finished, stats.steps, stats.rows, stats.source_tokens, stats.target_tokens)
        return Answer(outcome, "" if team is None else team.version, self._name, work)

    async def _reload(self) -> None:
        """Once for all who ask meanwhile. Raises ReloadRefused."""
        if self._reloading is None or self._reloading.done():
            self._reloading = asyncio.create_task(self._fleet.reload())
        await asyncio.shield(self._reloading)

    async def _outcome(self, message: Translate, seconds: float | None) -> Done | Failed | None:
        order, deadline = message.order, None if seconds is None else monotonic() + seconds
        wish = Wish(order.options, sentences=order.sentences, terms=order.terms, insight=order.insight)
        try:
            (found,) = await self._fleet.translate(
                [message.text], order.direction, wish, caller=order.caller, deadline=deadline
            )
        except Unavailable:
            return None
        except ServiceError as error:
            return Failed(message.id, error.code, error.where if isinstance(error, InternalError) else error.message)
        return Done(message.id, found)

    def _team(self, model: Path) -> Team | None:
        return next((team for team in self._fleet.teams if team.model == model), None)


class Front:
    """The application, whose one worker is all the replicas."""

    async def __init__(self, settings: Settings, most: int, models: Any) -> None:  # type: ignore[misc]
        configure_logs(as_json=True)
        served = Served(models, most)
        self._settings = settings
        self._ends = AsyncExitStack()
        self._store = self._ends.enter_context(Store.open(settings.database))
        hire = partial(_hire, served)
        self._fleet = await self._ends.enter_async_context(Fleet(Plan.of(settings), hire))

    def __serve_build_asgi_app__(self) -> ASGIApp:
        return WithState(create_app(self._settings, self._fleet, self._store))

    async def __del__(self) -> None:
        await self._ends.aclose()

    async def drain(self) -> bool:
        """Accept nothing new; whether all that was is answered."""
        return await self._fleet.drain(self._settings.grace_seconds)


class WithState:
    """Gives requests what the application's lifespan yields: other servers do that, and Serve does not."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._state: dict[str, Any] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            scope["state"] = self._state
        else:
            scope["state"] = dict(self._state)
        await self._app(scope, receive, send)


class Served:
    """The replicas, as the front reaches them: through a handle of Serve's."""

    def __init__(self, handle: Any, most: int) -> None:
        self._handle = handle
        self._most = most

    async def describe(self, model: Path) -> Ready | Refused:
        found: Ready | Refused = await _answered(self._handle.describe.remote(model))
        return replace(found, capacity=found.capacity * self._most) if isinstance(found, Ready) else found

    async def translate(self, model: Path, version: str, message: Translate) -> Answer:
        seconds = None if message.deadline is None else message.deadline - monotonic()
        found: Answer = await _answered(self._handle.translate.remote(model, version, message, seconds))
        return found


def _hire(served: Served, model: Path, _: str) -> ReplicasTransport:
    return ReplicasTransport(model, served)


async def _answered(response: Any) -> Any:
    try:
        return await response
    except (RayActorError, ObjectLostError) as error:  # large answers stay on the replica's machine until fetched
        raise ReplicaDied from error
    except asyncio.CancelledError:
        response.cancel()
        raise


def replicas_for(context: Any) -> tuple[float, dict[str, Any]]:
    """How many there are to be, for Serve, which knows the bounds and waits whether it lasts. Requests would be a bad
    measure: a text may be a word or a book."""
    return sum((context.aggregated_metrics or {}).get(LOAD, {}).values()) / BATCHES, {}


def application(settings: Settings, scale: Scale) -> Any:
    """For serve.run."""
    ends = {
        "graceful_shutdown_wait_loop_s": 0.2,
        "graceful_shutdown_timeout_s": settings.grace_seconds + LEAVING,
        "max_constructor_retry_count": ATTEMPTS,
        "logging_config": QUIET,
    }
    of_replicas = settings.model_copy(update={"device": "cuda" if scale.gpus else "cpu", "threads": scale.cpus})
    models = serve.deployment(Models).options(
        name="models",
        ray_actor_options={"num_cpus": scale.cpus, "num_gpus": scale.gpus},
        autoscaling_config={
            "min_replicas": scale.least,
            "initial_replicas": scale.least,
            "max_replicas": scale.most,
            "policy": {"policy_function": "service.ray_app:replicas_for"},
        },
        max_ongoing_requests=ONGOING,
        **ends,
    )
    front = serve.deployment(serve.ingress()(Front)).options(
        name="front",
        num_replicas=1,
        ray_actor_options={"num_cpus": 0},  # else it could take the place of a replica
        max_ongoing_requests=2**31 - 1,  # it says itself when it has enough, and never to a probe
        **ends,
    )
    return front.bind(settings, scale.most, models.bind(of_replicas))


def main(arguments: Sequence[str]) -> int:
    given = vars(options().parse_args(arguments))
    address, least, most = (given.pop(name) for name in ("address", "min_replicas", "max_replicas"))
    try:
        if ray is None:
            raise SettingsError("ray is not installed; accepted: pip install 'mt-service[ray]'")
        settings = resolved(load_settings(given))
        configure_logs(not sys.stderr.isatty() if settings.log_json is None else settings.log_json)
        with connected(address):
            run(settings, scale_of(settings, least, most))
    except MTError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def options() -> argparse.ArgumentParser:
    """Those of `python -m service`, and ours."""
    found = parser()
    found.prog, found.description = "python -m service.ray_app", __doc__
    found.add_argument("--address", default="auto", help="of the cluster; auto: the one that this machine is in")
    found.add_argument("--min-replicas", type=int, default=1, metavar="N", help="of the models (default: 1)")
    most = "(default: as many as there is room for)"
    found.add_argument("--max-replicas", type=int, default=None, metavar="N", help=most)
    return found


@contextmanager
def connected(address: str) -> Iterator[None]:
    """To a Ray cluster. Raises SettingsError."""
    try:
        ray.init(address=address, logging_level=logging.WARNING)
    except (ConnectionError, RuntimeError, ValueError) as error:
        said = f"no Ray cluster at {address!r}: {error}; accepted: auto, or HOST:PORT; `ray start --head` makes one"
        raise SettingsError(said) from error
    try:
        yield
    finally:
        ray.shutdown()


def scale_of(settings: Settings, least: int, most: int | None) -> Scale:
    """A GPU for each replica if the cluster has some. Raises SettingsError."""
    there = ray.cluster_resources()
    gpus, cores, cpus = int(there.get("GPU", 0)), int(there.get("CPU", 0)), settings.threads or 1
    wanted = settings.device == "cuda" or (settings.device == "auto" and gpus > 0)
    found = []
    if settings.device == "cuda" and not gpus:
        found.append("--device is 'cuda', and there is no GPU in the cluster; accepted: auto or cpu")
    if settings.device not in ("auto", "cpu", "cuda"):
        found.append(f"--device is {settings.device!r}; accepted: auto, cpu or cuda: Ray says which GPU a replica has")
    if most is None:
        most = max(least, gpus if wanted else cores // cpus)
    if not 1 <= least <= most:
        found.append(f"--min-replicas is {least} and --max-replicas {most}; accepted: 1 or more, and no more than that")
    if found:
        raise SettingsError(problems("the settings cannot be used", found))
    return Scale(least, most, gpus=int(wanted), cpus=cpus)


def run(settings: Settings, scale: Scale) -> None:
    """Until SIGTERM or SIGINT. Raises SettingsError, and KeyboardInterrupt if they come too early or twice.

    Whatever ends it, nothing of it stays on the cluster: Serve outlives who has started it.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)
    wanted = {"host": settings.host, "port": settings.port, "root_path": settings.root_path}
    _refuse_another(wanted)
    log = structlog.get_logger()
    try:
        _start(wanted)
        _deploy(settings, scale)
        with suppress(KeyboardInterrupt):
            log.info("listening", host=settings.host, port=settings.port, least=scale.least, most=scale.most)
            Event().wait()
        log.info("stopping")
        if not _drained():
            log.error("not answered in time")
    finally:
        _delete()
    log.info("stopped")


def _refuse_another(wanted: dict[str, Any]) -> None:
    """Serve that runs already keeps the options that it has. Raises SettingsError."""
    client = _get_global_client(raise_if_no_controller_running=False)
    if client is None:
        return
    there = {name: getattr(client.http_config, name) for name in wanted}
    if there != wanted:
        told = "accepted: the same, or another after `serve shutdown`, which ends all that it runs"
        raise SettingsError(f"Ray Serve is on this cluster already, with {there}, and {wanted} was asked for; {told}")


def _start(wanted: dict[str, Any]) -> None:
    """Serve, with its proxies. Raises SettingsError."""
    try:
        serve.start(
            proxy_location="EveryNode",
            http_options=wanted,
            controller_options={"runtime_env": {"env_vars": {CALLBACK: "service.replay.middleware"}}},
            logging_config=QUIET,
        )
    except (RayError, TimeoutError) as error:
        said = str(error.cause if isinstance(error, RayTaskError) else error).rstrip(".")
        told = "accepted: an address of every machine of the cluster, and a port that is free on all of them"
        where = f"{wanted['host']}, port {wanted['port']}"
        raise SettingsError(f"Ray Serve cannot listen on {where}: {said}; {told}") from error


def _deploy(settings: Settings, scale: Scale) -> None:
    """Until the models are there. Raises SettingsError."""
    try:
        serve.run(application(settings, scale), name=NAME)
    except RuntimeError as error:
        said = [each.message for each in serve.status().applications[NAME].deployments.values()]
        raise SettingsError(problem_of(said) or str(error)) from error


def _drained() -> bool:
    """Whether all is answered that was accepted. What a front had that dies now is refused."""
    try:
        return bool(serve.get_app_handle(NAME).drain.remote().result())
    except RayActorError:
        return False


def _delete() -> None:
    """And Serve itself if it has nothing else: it would keep its port, whatever the next one asks for."""
    with suppress(RayServeException):  # it has not come to be
        try:
            serve.delete(NAME)
        except TimeoutError:  # it goes on, and so does its shutdown
            structlog.get_logger().error("not ended in time")
        if set(serve.status().applications) <= {NAME}:
            serve.shutdown()


def problem_of(messages: Iterable[str]) -> str:
    """The message of an error of ours at the end of a traceback, which is what Serve tells of a replica that fails."""
    found = [re.findall(r"^(?:mt|service)\.[\w.]+: (.+)", message, re.MULTILINE | re.DOTALL) for message in messages]
    return next((each[-1] for each in found if each), "")


def resolved(settings: Settings) -> Settings:
    """With paths that mean the same wherever a replica is."""
    paths = {name: path.resolve() for name in ("models", "database") if (path := getattr(settings, name))}
    return settings.model_copy(update={"model": tuple(path.resolve() for path in settings.model), **paths})


if __name__ == "__main__":  # by its name: of what is in __main__, Ray would send the code along
    sys.exit(import_module("service.ray_app").main(sys.argv[1:]))
