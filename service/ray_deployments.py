"""The two deployments of the service on Ray Serve (see ray_app.py): `front`, and the replicas `models`."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic
from typing import Any
from uuid import uuid4

from starlette.types import ASGIApp, Receive, Scope, Send

from mt.pipeline.results import SentenceReport
from service.access.database import Database
from service.app import create_app
from service.errors import InternalError, ReloadRefused, ServiceError, Unavailable
from service.logs import configure_logs
from service.settings import Settings
from service.workers.admission import RequestSize
from service.workers.fleet import Fleet, FleetConfig, process_transports
from service.workers.messages import LoadFailed, Ready, TextDone, TextFailed, TextProgress, Translate
from service.workers.pending import OnSentence
from service.workers.pool import WorkerPool
from service.workers.replicas import ReplicaAnswer, ReplicaDied, ReplicasTransport

try:
    from ray import serve
    from ray.exceptions import ObjectLostError, RayActorError
except ModuleNotFoundError:  # an optional dependency; ray_app.main reports that it is missing
    pass

UNLIMITED = RequestSize(2**62, 2**62, 2**62)
MAX_TEXTS = 512  # texts of a replica: more than its engine decodes at a time, but few enough to be answered soon
LOAD_METRIC = "batches"
BATCHES_PER_REPLICA = 2.0  # load of a replica: a batch in decoding, and a batch that waits
SHUTDOWN_SECONDS = 30  # time after the grace period until a deployment is killed
MAX_STARTS = 3  # failed starts of a replica after which the application counts as failed
QUIET = {"enable_access_log": False, "log_level": "WARNING"}  # Ray Serve's log


@dataclass(frozen=True)
class Scale:
    """Number of model replicas, and the resources of each."""

    min_replicas: int
    max_replicas: int
    gpus: int
    cpus: int


class ModelReplica:
    """Replica of the models: a fleet with a GPU or some cores. It accepts every text that `Front` has accepted."""

    async def __init__(self, settings: Settings) -> None:  # type: ignore[misc]  # Serve awaits it
        configure_logs(as_json=True)
        self._name = uuid4().hex
        self._exit_stack = AsyncExitStack()
        config = replace(FleetConfig.of(settings), limits=UNLIMITED)
        self._fleet = await self._exit_stack.enter_async_context(Fleet(config, process_transports(settings)))
        self._reloading: asyncio.Task[None] | None = None
        self._batches = 0.0  # load, in batches

    async def __del__(self) -> None:
        await self._exit_stack.aclose()

    async def check_health(self) -> None:
        """Raise an error if no worker can be started. Ray Serve calls this method, and replaces a failed replica."""
        if any(pool.unrecoverable for pool in self._fleet.pools):
            raise RuntimeError("no worker can be started")

    def record_autoscaling_stats(self) -> dict[str, float]:
        """Return the present load, counted in batches. Ray Serve calls this method for `replicas_for`."""
        return {LOAD_METRIC: self._batches}

    async def describe(self, model: Path) -> Ready | LoadFailed:
        """Load the model directory `model` in its present version. Return the model's description, or LoadFailed."""
        try:
            await self._reload()
        except ReloadRefused as error:
            return LoadFailed(str(error))
        pool = self._pool(model)
        if pool is None:
            return LoadFailed(
                f"{model} is not among the models of a replica; accepted: equal model directories on every machine"
            )
        return replace(pool.description, devices=("replicas",), no_gpu="")

    async def translate(
        self,
        model: Path,
        version: str,
        message: Translate,
        seconds: float | None,
        on_sentence: OnSentence | None = None,
    ) -> ReplicaAnswer:
        """Translate a text within `seconds`. If the replica cannot load `version`, the answer has no outcome.

        `message.deadline` is ignored, because it refers to the clock of another machine.
        """
        pool = self._pool(model)
        if pool is None or pool.description.version != version:
            with suppress(ReloadRefused):
                await self._reload()
            pool = self._pool(model)
        outcome = None
        if pool is not None and pool.description.version == version:
            batches = message.text.cost / pool.description.capacity
            self._batches += batches
            try:
                outcome = await self._outcome(message, seconds, on_sentence)
            finally:
                self._batches -= batches
        stats = self._fleet.stats()
        work = replace(stats.work, texts=stats.finished)
        return ReplicaAnswer(outcome, "" if pool is None else pool.description.version, self._name, work)

    async def translate_reporting(
        self, model: Path, version: str, message: Translate, seconds: float | None
    ) -> AsyncIterator[TextProgress | ReplicaAnswer]:
        """Yield a TextProgress for each finished sentence of a text, then the answer that `translate` returns."""
        reports: asyncio.Queue[SentenceReport | None] = asyncio.Queue()
        task = asyncio.create_task(self.translate(model, version, message, seconds, reports.put_nowait))
        task.add_done_callback(lambda _: reports.put_nowait(None))
        try:
            while (report := await reports.get()) is not None:
                yield TextProgress(message.id, (report,))
            yield await task
        finally:
            task.cancel()

    async def _reload(self) -> None:
        """Reload the models; simultaneous calls share one reload. Raises: ReloadRefused if a model cannot be used."""
        if self._reloading is None or self._reloading.done():
            self._reloading = asyncio.create_task(self._fleet.reload())
        await asyncio.shield(self._reloading)

    async def _outcome(
        self, message: Translate, seconds: float | None, on_sentence: OnSentence | None
    ) -> TextDone | TextFailed | None:
        deadline = None if seconds is None else monotonic() + seconds
        try:
            (translation,) = await self._fleet.translate(
                [message.text], message.options, caller=message.caller, deadline=deadline, on_sentence=on_sentence
            )
        except Unavailable:
            return None
        except ServiceError as error:
            problem = error.location if isinstance(error, InternalError) else error.message
            return TextFailed(message.id, error.code, problem)
        return TextDone(message.id, translation)

    def _pool(self, model: Path) -> WorkerPool | None:
        return next((pool for pool in self._fleet.pools if pool.model == model), None)


class Front:
    """Deployment of the application. Its fleet has one worker for each model, which stands for all replicas."""

    async def __init__(self, settings: Settings, max_replicas: int, models: Any) -> None:  # type: ignore[misc]
        configure_logs(as_json=True)
        replicas = ServeReplicas(models, max_replicas)
        self._settings = settings
        self._exit_stack = AsyncExitStack()
        self._database = self._exit_stack.enter_context(Database.open(settings.database))
        config = replace(FleetConfig.of(settings), memory=None)  # each replica has a budget of its own
        fleet = Fleet(config, lambda model, _: ReplicasTransport(model, replicas))
        self._fleet = await self._exit_stack.enter_async_context(fleet)

    def __serve_build_asgi_app__(self) -> ASGIApp:
        return WithState(create_app(self._settings, self._fleet, self._database))

    async def __del__(self) -> None:
        await self._exit_stack.aclose()

    async def drain(self) -> bool:
        """Refuse new requests, and wait for the accepted requests. Return whether all were answered in time."""
        return await self._fleet.drain(self._settings.grace_seconds)


class WithState:
    """Middleware that adds the state of the application's lifespan to each request, because Ray Serve does not."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._state: dict[str, Any] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"] = self._state if scope["type"] == "lifespan" else dict(self._state)
        await self._app(scope, receive, send)


class ServeReplicas:
    """Client of the replicas. It calls them through a deployment handle of Ray Serve."""

    def __init__(self, handle: Any, max_replicas: int) -> None:
        self._handle = handle
        self._max_replicas = max_replicas

    async def describe(self, model: Path) -> Ready | LoadFailed:
        """Let a replica load the model directory `model` in its present version. Return the model's description."""
        with _deaths_of_replicas():
            answer: Ready | LoadFailed = await _cancelling(self._handle.describe.remote(model))
        return replace(answer, capacity=answer.capacity * self._max_replicas) if isinstance(answer, Ready) else answer

    async def translate(
        self, model: Path, version: str, message: Translate, on_progress: Callable[[TextProgress], None]
    ) -> ReplicaAnswer:
        """Translate a text on a replica. Raises: ReplicaDied if the replica dies before it has answered."""
        seconds = None if message.deadline is None else message.deadline - monotonic()
        with _deaths_of_replicas():
            if not message.report:
                answer: ReplicaAnswer = await _cancelling(
                    self._handle.translate.remote(model, version, message, seconds)
                )
                return answer
            items = self._handle.translate_reporting.options(stream=True).remote(model, version, message, seconds)
            try:
                async for item in items:
                    if isinstance(item, ReplicaAnswer):
                        return item
                    on_progress(item)
            except asyncio.CancelledError:
                items.cancel()
                raise
        raise ReplicaDied


@contextmanager
def _deaths_of_replicas() -> Iterator[None]:
    """Convert Ray's errors to ReplicaDied while the context is open.

    ObjectLostError means that a large answer was lost because the machine that stored it failed.
    """
    try:
        yield
    except (RayActorError, ObjectLostError) as error:
        raise ReplicaDied from error


async def _cancelling(response: Any) -> Any:
    """Wait for the response of a replica and return it. If this coroutine is cancelled, cancel the call."""
    try:
        return await response
    except asyncio.CancelledError:
        response.cancel()
        raise


def replicas_for(context: Any) -> tuple[float, dict[str, Any]]:
    """Return (number of replicas that the load needs, {}).

    Ray Serve calls this function, and applies its own limits and delays to the number.
    The load is counted in batches, not in requests, because a text may be a word or a book.
    """
    return sum((context.aggregated_metrics or {}).get(LOAD_METRIC, {}).values()) / BATCHES_PER_REPLICA, {}


def application(settings: Settings, scale: Scale) -> Any:
    """Return the application, with both deployments, for ray.serve.run."""
    shutdown = {
        "graceful_shutdown_wait_loop_s": 0.2,
        "graceful_shutdown_timeout_s": settings.grace_seconds + SHUTDOWN_SECONDS,
        "max_constructor_retry_count": MAX_STARTS,
        "logging_config": QUIET,
    }
    replica_settings = settings.model_copy(update={"device": "cuda" if scale.gpus else "cpu", "threads": scale.cpus})
    models = serve.deployment(ModelReplica).options(
        name="models",
        ray_actor_options={"num_cpus": scale.cpus, "num_gpus": scale.gpus},
        autoscaling_config={
            "min_replicas": scale.min_replicas,
            "initial_replicas": scale.min_replicas,
            "max_replicas": scale.max_replicas,
            "policy": {"policy_function": "service.ray_deployments:replicas_for"},
        },
        max_ongoing_requests=MAX_TEXTS,
        **shutdown,
    )
    front = serve.deployment(serve.ingress()(Front)).options(
        name="front",
        num_replicas=1,
        ray_actor_options={"num_cpus": 0},  # with more, the front could use up the resources of a replica
        max_ongoing_requests=2**31 - 1,  # no limit: the application itself refuses requests, but no probes
        **shutdown,
    )
    return front.bind(settings, scale.max_replicas, models.bind(replica_settings))
