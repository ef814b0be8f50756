"""The command of the service on Ray, over a double of Ray Serve."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI, Request
from starlette.testclient import TestClient

from mt.languages import Direction
from mt.pipeline.results import SentenceReport
from service import ray_app, ray_deployments
from service.ray_deployments import Scale
from service.settings import Settings, SettingsError, load_settings
from service.workers.messages import SourceText, TextDone, TextProgress, Translate, TranslateOptions, WorkCounts
from service.workers.replicas import ReplicaAnswer, ReplicaDied

SETTINGS = load_settings({"model": "m", "host": "127.0.0.1", "port": 5000})
TRACEBACK = """The deployment failed to start 3 times in a row. Error:
Traceback (most recent call last):
  File "teams.py", line 59, in open
mt.errors.ModelError: these models cannot be served
  - a: no model here
  - b: no model here"""


def test_without_ray_it_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(ray_app, "ray", None)
    assert ray_app.main(["--model", "m"]) == 2
    assert capsys.readouterr().err == "error: ray is not installed. Run pip install 'mt-service[ray]'\n"


def test_the_message_of_a_replica_that_fails_is_found_in_its_traceback() -> None:
    said = ["", "The deployment is UPDATING", TRACEBACK]
    assert ray_app.problem_of(said) == "these models cannot be served\n  - a: no model here\n  - b: no model here"
    assert ray_app.problem_of(["", "ValueError: something else"]) == ""


def test_requests_have_what_the_lifespan_yields() -> None:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[dict[str, Any]]:
        yield {"fleet": "there"}

    app = FastAPI(lifespan=lifespan)

    @app.get("/")
    async def read(request: Request) -> str:
        request.state.fleet += " once"
        return str(request.state.fleet)

    with TestClient(ray_deployments.WithState(app)) as client:
        assert [client.get("/").json() for _ in range(2)] == ["there once", "there once"]


def test_paths_are_the_same_wherever_a_replica_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = load_settings({"model": "a,b", "database": "keys.db"})
    found = ray_app.resolved(given)
    assert found.model == (tmp_path / "a", tmp_path / "b") and found.database == tmp_path / "keys.db"
    assert found.models is None


def test_replicas_are_as_many_as_have_two_batches_each() -> None:
    one, two = (
        SimpleNamespace(aggregated_metrics={"batches": {"a": 5.0, "b": 2.0}}),
        SimpleNamespace(aggregated_metrics=None),
    )
    assert ray_deployments.replicas_for(one) == (3.5, {}) and ray_deployments.replicas_for(two) == (0.0, {})


class RayError(Exception):
    """Ray's, as the next ones."""


class RayActorError(RayError):
    pass


class ObjectLostError(RayError):
    pass


class RayServeException(Exception):
    pass


class RayTaskError(RayError):
    def __init__(self, cause: Exception) -> None:
        super().__init__("a traceback")
        self.cause = cause


@dataclass
class Serve:
    """Ray Serve, which outlives its driver. What is done at each step can fail, or be interrupted."""

    steps: dict[str, Callable[[], None]] = field(default_factory=dict)
    running: dict[str, Any] | None = None  # its options
    applications: dict[str, Any] = field(default_factory=dict)
    done: list[str] = field(default_factory=list)

    def step(self, name: str) -> None:
        self.done.append(name)
        self.steps.get(name, lambda: None)()

    def start(self, http_options: dict[str, Any], **_: Any) -> None:
        self.running = self.running or http_options
        self.step("start")

    def run(self, application: None, name: str) -> None:
        self.applications[name] = SimpleNamespace(deployments={"models": SimpleNamespace(message=TRACEBACK)})
        self.step("run")

    def get_app_handle(self, name: str) -> Any:
        return SimpleNamespace(drain=SimpleNamespace(remote=lambda: SimpleNamespace(result=self.drained)))

    def drained(self) -> bool:
        self.step("drain")
        return True

    def delete(self, name: str) -> None:
        if self.running is None:
            raise RayServeException
        self.step("delete")
        self.applications.pop(name, None)

    def status(self) -> Any:
        return SimpleNamespace(applications=self.applications)

    def shutdown(self) -> None:
        self.running = None


def unheard(number: int, frame: Any) -> None:
    raise AssertionError(f"{signal.Signals(number).name} would have ended the process")


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Generator[Serve]:
    """Nothing has to do with signals but what is tested."""
    before = {number: signal.signal(number, unheard) for number in (signal.SIGTERM, signal.SIGINT)}
    found = Serve()

    for error in (RayError, RayActorError, ObjectLostError, RayTaskError, RayServeException):
        monkeypatch.setattr(ray_app, error.__name__, error, raising=False)
        monkeypatch.setattr(ray_deployments, error.__name__, error, raising=False)
    monkeypatch.setattr(ray_app, "serve", found, raising=False)
    monkeypatch.setattr(ray_app, "application", lambda settings, scale: None)
    monkeypatch.setattr(ray_app, "Event", lambda: SimpleNamespace(wait=lambda: found.step("wait")))
    yield found
    for number, handler in before.items():
        signal.signal(number, handler)


def run(settings: Settings = SETTINGS) -> None:
    ray_app.run(settings, Scale(1, 1, gpus=0, cpus=1))


def told(number: signal.Signals) -> Callable[[], None]:
    return lambda: signal.raise_signal(number)


def failing(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_what_is_accepted_is_answered_before_the_end(serve: Serve, number: signal.Signals) -> None:
    serve.steps["wait"] = told(number)
    run()
    assert serve.done == ["start", "run", "wait", "drain", "delete"] and serve.running is None


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("step", ["start", "run", "drain"])
def test_nothing_stays_on_the_cluster_when_it_is_interrupted(serve: Serve, step: str, number: signal.Signals) -> None:
    """As models are loaded, or a second time."""
    serve.steps = {"wait": told(number), step: told(number)}
    with pytest.raises(KeyboardInterrupt):
        run()
    assert serve.running is None and serve.applications == {}


def test_nothing_stays_when_the_front_dies_at_the_end(serve: Serve) -> None:
    serve.steps = {"wait": told(signal.SIGTERM), "drain": failing(RayActorError())}
    run()
    assert serve.running is None and serve.applications == {}


def test_nothing_stays_when_the_application_does_not_end_in_time(serve: Serve) -> None:
    serve.steps = {"run": told(signal.SIGTERM), "delete": failing(TimeoutError())}
    with pytest.raises(KeyboardInterrupt):
        run()
    assert serve.running is None


@pytest.mark.parametrize(
    ("step", "error", "message"),
    [
        ("start", RayTaskError(RuntimeError("Failed to bind.")), "listen on 127.0.0.1, port 5000: Failed to bind; acc"),
        ("start", TimeoutError("not available after 60s."), "port 5000: not available after 60s; accepted: an address"),
        ("run", RuntimeError("failed"), "these models cannot be served"),
    ],
)
def test_what_cannot_start_is_an_error_message_and_leaves_nothing(
    serve: Serve, step: str, error: Exception, message: str
) -> None:
    serve.steps[step] = failing(error)
    with pytest.raises(SettingsError, match=message):
        run()
    assert serve.running is None and serve.applications == {}


def test_a_serve_with_other_applications_is_refused_and_stays(serve: Serve) -> None:
    serve.running, serve.applications = {"port": 5000}, {"other": None}
    with pytest.raises(SettingsError, match=r"Ray Serve runs other applications on this cluster \(other\)"):
        run()
    assert serve.running == {"port": 5000} and serve.done == []


def test_a_serve_that_an_earlier_run_left_is_started_anew_with_the_options_of_this_one(serve: Serve) -> None:
    serve.running, serve.applications = {"port": 5001}, {"mt": None}
    options: list[Any] = []
    serve.steps = {"start": lambda: options.append(serve.running), "wait": told(signal.SIGTERM)}
    run()
    assert options == [{"host": "127.0.0.1", "port": 5000, "root_path": ""}]
    assert serve.done == ["start", "run", "wait", "drain", "delete"]


@pytest.mark.parametrize("error", [RayActorError, ObjectLostError])
def test_an_answer_that_is_lost_with_its_machine_is_a_death(serve: Serve, error: type[Exception]) -> None:
    """Ray leaves a large one where it was made until it is fetched."""

    async def lost(*_: Any) -> None:
        raise error

    handle = SimpleNamespace(describe=SimpleNamespace(remote=lost))
    with pytest.raises(ReplicaDied):
        asyncio.run(ray_deployments.ServeReplicas(handle, 1).describe(Path("model")))


def test_a_text_whose_sentences_are_reported_comes_from_a_stream(serve: Serve) -> None:
    progress = TextProgress(1, (SentenceReport((0, 1), (0, 1), "", "A", ""),))
    answer = ReplicaAnswer(None, "1", "replica", WorkCounts())

    async def items(*_: Any) -> AsyncIterator[TextProgress | ReplicaAnswer]:
        yield progress
        yield answer

    method = SimpleNamespace(options=lambda stream: SimpleNamespace(remote=items))
    replicas = ray_deployments.ServeReplicas(SimpleNamespace(translate_reporting=method), 1)
    message = Translate(1, SourceText("a"), TranslateOptions(Direction("en", "de")), report=True)
    reported: list[TextProgress] = []
    assert asyncio.run(replicas.translate(Path("model"), "1", message, reported.append)) == answer
    assert reported == [progress]


@pytest.mark.parametrize(
    ("device", "gpus", "message"),
    [
        ("cuda", 0, "--device is 'cuda', but the cluster has no GPU; accepted: auto or cpu"),
        ("cuda:1", 2, "--device is 'cuda:1'; accepted: auto, cpu or cuda"),
    ],
)
def test_a_device_that_no_replica_could_have_is_refused(
    monkeypatch: pytest.MonkeyPatch, device: str, gpus: int, message: str
) -> None:
    cluster = SimpleNamespace(cluster_resources=lambda: {"CPU": 8.0, "GPU": float(gpus)})
    monkeypatch.setattr(ray_app, "ray", cluster)
    with pytest.raises(SettingsError, match=message):
        ray_app.scale_of(SETTINGS.model_copy(update={"device": device}), 1, None)


@pytest.mark.parametrize(
    ("device", "gpus", "expected"),
    [
        ("auto", 2, Scale(1, 2, gpus=1, cpus=1)),
        ("cuda", 2, Scale(1, 2, gpus=1, cpus=1)),
        ("cpu", 2, Scale(1, 8, gpus=0, cpus=1)),
        ("auto", 0, Scale(1, 8, gpus=0, cpus=1)),
    ],
)
def test_replicas_take_the_gpus_that_there_are(
    monkeypatch: pytest.MonkeyPatch, device: str, gpus: int, expected: Scale
) -> None:
    cluster = SimpleNamespace(cluster_resources=lambda: {"CPU": 8.0, "GPU": float(gpus)})
    monkeypatch.setattr(ray_app, "ray", cluster)
    assert ray_app.scale_of(SETTINGS.model_copy(update={"device": device}), 1, None) == expected


class Replica(ray_deployments.ModelReplica):
    """A replica of a fleet that a test makes."""

    def __init__(self, fleet: Any) -> None:
        self._fleet, self._name, self._reloading, self._batches = fleet, "a", None, 0.0

    def __del__(self) -> None: ...  # type: ignore[override]  # Ray Serve awaits that of ModelReplica


def test_a_replica_translates_only_with_the_version_that_was_asked_for() -> None:
    """Its directory has version 2 after a reload; a text for version 1 goes to another replica."""
    pool = SimpleNamespace(model=Path("model"), description=SimpleNamespace(version="0", capacity=8))
    reloads: list[str] = []

    async def reload() -> None:
        reloads.append(pool.description.version)
        pool.description.version = "2"

    async def translate(*_: Any, **__: Any) -> list[str]:
        return ["translated"]

    stats = SimpleNamespace(work=WorkCounts(), finished=3)
    replica = Replica(SimpleNamespace(pools=[pool], reload=reload, translate=translate, stats=lambda: stats))
    message = Translate(1, SourceText("a"), TranslateOptions(Direction("en", "de")))

    def ask(model: str, version: str) -> ReplicaAnswer:
        return asyncio.run(replica.translate(Path(model), version, message, None))

    refused = ask("model", "1")
    assert (refused.outcome, refused.version, reloads) == (None, "2", ["0"])
    assert ask("another", "2").outcome is None
    answer = ask("model", "2")
    assert answer == ReplicaAnswer(TextDone(1, "translated"), "2", "a", WorkCounts(texts=3))  # type: ignore[arg-type]
    assert replica.record_autoscaling_stats() == {"batches": 0.0}
