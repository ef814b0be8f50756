"""All models of the service: which of them translates what, how much is accepted, and how one is exchanged."""

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import structlog

from mt.decoding.options import SearchOptions
from mt.engine.results import Translation
from mt.errors import ModelError, MTError, RequestError, problems
from service.errors import DeadlineExceeded, InvalidRequest, ReloadRefused, Unavailable, UnsupportedLanguage
from service.languages import Direction
from service.logs import Phase, current_record
from service.settings import Settings
from service.workers.admission import Admission, Size
from service.workers.calls import Call
from service.workers.door import Door
from service.workers.folder import find_models
from service.workers.messages import Order, Setup, Text, Wish, Work
from service.workers.teams import Hire, Team
from service.workers.transport import ProcessTransport
from service.workers.versions import version_of
from service.workers.worker import Patience


@dataclass(frozen=True)
class WorkerStats:
    """Of one post: a model on a device, whichever worker it has."""

    model: str
    version: str
    ready: bool
    running: int  # texts that it has been given
    restarts: int
    work: Work


@dataclass(frozen=True)
class FleetStats:
    """What there is now (queued, running) and what there has been since the start."""

    requests: int  # accepted and not yet answered
    queued: int  # texts that no worker has
    running: int  # texts that a worker has
    finished: int  # texts
    failed: int  # texts that the model fails on
    cancelled: int  # requests, because nobody waited for them any more
    expired: int  # requests
    shed: int  # requests
    restarts: int  # of workers
    reloads: int
    refused_reloads: int
    steps: int  # of the decoder
    rows: int  # of all these steps
    source_tokens: int
    target_tokens: int
    workers: tuple[WorkerStats, ...]

    @property
    def rows_a_step(self) -> float:
        """How full the batches were, on average."""
        return self.rows / self.steps if self.steps else 0.0


@dataclass(frozen=True)
class Plan:
    """How a fleet is to be run."""

    models: tuple[Path, ...]
    device: str
    limits: Size
    patience: Patience
    longest: float  # seconds for a request that says nothing about that
    folder: Path | None = None  # where the models are, if none is named

    @classmethod
    def of(cls, settings: Settings) -> Self:
        return cls(
            models=settings.model,
            folder=None if settings.model else settings.models,
            device=settings.device,
            limits=Size(settings.max_pending_requests, settings.max_pending_texts, settings.max_pending_characters),
            patience=Patience(start=settings.load_seconds, step=settings.hang_seconds),
            longest=settings.max_seconds,
        )

    def found(self) -> tuple[Path, ...]:
        """The model directories that there are now. Raises ModelError."""
        return self.models if self.folder is None else find_models(self.folder)


def in_processes(settings: Settings) -> Hire:
    """Each worker in a process of its own."""

    def hire(model: Path, device: str) -> ProcessTransport:
        return ProcessTransport(Setup(model, device, settings.dtype, settings.threads, settings.shortlist))

    return hire


class Fleet:
    """Translates as long as it is entered: `async with Fleet(...) as fleet`."""

    def __init__(self, plan: Plan, hire: Hire) -> None:
        self.door = Door()
        self._plan = plan
        self._hire = hire
        self._admission = Admission(plan.limits)
        self.teams: list[Team] = []  # one for each model
        self._leaving: list[Team] = []  # which have a successor, and still work
        self._routes: dict[Direction, Team] = {}
        self._past = Work()  # of teams that are gone
        self._counts: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._reloading = asyncio.Lock()
        self._closed = False

    async def __aenter__(self) -> Self:
        """Waits until every model is loaded. Raises ModelError, which lists all that cannot be."""
        self.teams = [self._team(model) for model in self._plan.found()]
        try:
            await _open(self.teams)
            self._routes = _routes(self.teams)
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._close()

    @property
    def directions(self) -> tuple[Direction, ...]:
        return tuple(self._routes)

    def options(self, direction: Direction) -> SearchOptions:
        """How the model searches unless it is told otherwise. Raises UnsupportedLanguage."""
        return self._team_of(direction).options

    def version(self, direction: Direction) -> str:
        """Changes with the model. Raises UnsupportedLanguage."""
        return self._team_of(direction).version

    @property
    def ready(self) -> bool:
        """Whether new work is accepted and each model has a worker."""
        return not self.draining and all(team.ready for team in self.teams)

    @property
    def draining(self) -> bool:
        return self._closed or self.door.closed

    async def drain(self, seconds: float) -> bool:
        """Accept nothing new from now on, and wait until what has been accepted is answered, but not longer than that.

        Whether all of it has been; the rest is told that it will not be.
        """
        self.door.closed = True
        if await self.door.empty(seconds):
            return True
        self._give_up()
        return False

    async def translate(
        self,
        texts: Sequence[Text],
        direction: Direction,
        wish: Wish,
        *,
        caller: str = "",
        deadline: float | None = None,
    ) -> list[Translation]:
        """In order, all by one version of the model. If this is cancelled, the texts are dropped.

        Callers take turns. `deadline` is one of time.monotonic().

        Raises UnsupportedLanguage, InvalidRequest for a wish that cannot be fulfilled, Overloaded, Unavailable,
        DeadlineExceeded, CannotTranslate if one of the texts cannot be, and InternalError.
        """
        if not texts:
            return []
        team = self._team_of(direction)
        if self._closed or team.hopeless:
            raise Unavailable
        try:
            search = wish.search(team.options)
        except RequestError as error:
            raise InvalidRequest(str(error)) from error
        loop = asyncio.get_running_loop()
        latest = loop.time() + self._plan.longest
        order = Order(direction, search, wish.sentences, wish.terms, wish.insight, caller)
        call = Call(order, tuple(texts), latest if deadline is None else min(deadline, latest), loop.create_future())
        size = Size(1, len(texts), sum(len(text.text) for text in texts))
        if call.deadline <= loop.time():
            self._counts["expired"] += 1
            raise DeadlineExceeded
        with self._admission.admitted(caller, size):
            self._admission.pace.note(time.monotonic(), 0, busy=True)
            return await self._answer(team, call, size)

    async def reload(self) -> None:
        """Let each model whose directory has changed be what is there now; if one cannot be used, all stay as they are.

        In a folder of models there may be new ones, and one may be gone if another translates all that it did.

        New workers load them beside the old ones and translate something; new requests go to them then, and the old
        ones end when they have finished what they have. Raises ReloadRefused.
        """
        async with self._reloading:
            if self.draining:
                raise ReloadRefused("the service is being stopped")
            log = structlog.get_logger()
            try:
                new, successors = await self._loaded_anew()
            except ModelError as error:
                self._counts["refused_reloads"] += 1
                log.error("reload refused", problem=str(error))
                raise ReloadRefused(str(error)) from error
            self._counts["reloads"] += len(new)
            for team in new:
                log.info("reloaded", model=team.model.name, version=team.version)
            for old, successor in successors.items():
                log.info("leaving", model=old.model.name, version=old.version)
                self._leaving.append(old)
                old.retire(successor)
                self._spawn(self._see_off(old))

    def stats(self) -> FleetStats:
        """As far as the workers have told, which they do about every second."""
        teams = [*self.teams, *self._leaving]
        work = sum((team.work for team in teams), self._past)
        return FleetStats(
            requests=self._admission.held.requests,
            queued=sum(team.queued for team in teams),
            running=sum(team.running for team in teams),
            finished=self._counts["finished"] + sum(team.translated for team in teams),
            failed=self._counts["failed"] + sum(team.failed for team in teams),
            cancelled=self._counts["cancelled"],
            expired=self._counts["expired"],
            shed=self._admission.shed,
            restarts=self._counts["restarts"] + sum(post.restarts for team in teams for post in team.posts),
            reloads=self._counts["reloads"],
            refused_reloads=self._counts["refused_reloads"],
            steps=work.steps,
            rows=work.rows,
            source_tokens=work.source_tokens,
            target_tokens=work.target_tokens,
            workers=tuple(
                WorkerStats(
                    model=team.model.name,
                    version=team.version,
                    ready=post.worker is not None,
                    running=len(post.worker.flight) if post.worker else 0,
                    restarts=post.restarts,
                    work=post.work,
                )
                for team in self.teams
                for post in team.posts
            ),
        )

    async def fresh_stats(self) -> FleetStats:
        """`stats`, after every worker has told once more."""
        workers = [worker for team in (*self.teams, *self._leaving) for worker in team.workers]
        await asyncio.gather(*(worker.ask() for worker in workers))
        return self.stats()

    async def _answer(self, team: Team, call: Call, size: Size) -> list[Translation]:
        translated, accepted = 0, time.monotonic()
        try:
            team.submit(call)
            async with asyncio.timeout_at(call.deadline):
                found = await call.answer
            translated = size.characters
            _note_phases(accepted, call.begun or accepted)
            return found
        except TimeoutError:
            self._counts["expired"] += 1
            raise DeadlineExceeded from None
        except asyncio.CancelledError:
            self._counts["cancelled"] += 1
            raise
        finally:
            call.end()
            busy = self._admission.held.requests > 1
            self._admission.pace.note(time.monotonic(), translated, busy)

    async def _loaded_anew(self) -> tuple[list[Team], dict[Team, Team]]:
        """Teams with what is new; and by those that are no longer needed, who takes their place.

        Raises ModelError; then nothing has changed.
        """
        new: list[Team] = []
        teams: list[Team] = []
        known = {team.model: team for team in self.teams}
        for model in await asyncio.to_thread(self._plan.found):
            team = known.get(model)
            if team is None or await asyncio.to_thread(version_of, model) != team.version:
                new.append(team := self._team(model))
            teams.append(team)
        try:
            await _open(new)
            successors = {old: _successor(old, teams) for old in self.teams if old not in teams}
            routes = _routes(teams)
        except BaseException:
            await asyncio.gather(*(team.close() for team in new))
            raise
        self.teams, self._routes = teams, routes
        return new, successors

    async def _see_off(self, team: Team) -> None:
        await team.done.wait()
        await team.close()
        self._leaving.remove(team)
        self._past += team.work
        self._counts["finished"] += team.translated
        self._counts["failed"] += team.failed
        self._counts["restarts"] += sum(post.restarts for post in team.posts)

    def _changed(self, _: Team) -> None:
        """A worker that was started again found another model."""
        self._spawn(self._reload_quietly())

    async def _reload_quietly(self) -> None:
        with suppress(ReloadRefused):
            await self.reload()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _close(self) -> None:
        """Whatever is still in work gets no answer."""
        self._closed = True
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._give_up()
        await asyncio.gather(*(team.close() for team in (*self.teams, *self._leaving)))

    def _give_up(self) -> None:
        for call in [call for team in (*self.teams, *self._leaving) for call in team.calls]:
            call.fail(Unavailable("The service is being stopped"))

    def _team(self, model: Path) -> Team:
        return Team(model, self._plan.device, self._hire, self._plan.patience, self._changed)

    def _team_of(self, direction: Direction) -> Team:
        team = self._routes.get(direction)
        if team is None:
            raise UnsupportedLanguage(f"{'-'.join(direction)} is not supported")
        return team


def _routes(teams: Sequence[Team]) -> dict[Direction, Team]:
    """Who translates what. Raises ModelError where two do the same."""
    found: dict[Direction, Team] = {}
    twice = []
    for team in teams:
        for direction in team.directions:
            first = found.setdefault(direction, team)
            if first is not team:
                twice.append(f"{'-'.join(direction)}: {first.model} and {team.model}")
    if twice:
        raise ModelError(problems("models that translate the same cannot be served together", twice))
    return found


def _successor(old: Team, teams: Sequence[Team]) -> Team:
    """Who translates all that it did: the one of the same name, if there is one. Raises ModelError."""
    named = [team for team in teams if team.model == old.model]
    missing = {team: set(old.directions) - set(team.directions) for team in named or teams}
    found = next((team for team, lacks in missing.items() if not lacks), None)
    if found is None:
        lost = ", ".join(sorted(map("-".join, missing[named[0]] if named else old.directions)))
        raise ModelError(
            f"{old.model}: it does not translate {lost} any more; accepted: a model with the same directions, or more"
            if named
            else f"{old.model} is gone, and no other model translates {lost}; accepted: one that does"
        )
    return found


async def _open(teams: Iterable[Team]) -> None:
    """All at a time. Raises ModelError, which lists all that cannot be opened."""
    found = await asyncio.gather(*(team.open() for team in teams), return_exceptions=True)
    errors = [error for error in found if isinstance(error, BaseException)]
    for error in errors:
        if len(errors) == 1 or not isinstance(error, MTError):
            raise error
    if errors:
        raise ModelError(problems("these models cannot be served", map(str, errors)))


def _note_phases(accepted: float, begun: float) -> None:
    """For the log line of the request, and for metrics."""
    record = current_record()
    record.took(Phase.QUEUE, begun - accepted)
    record.took(Phase.TRANSLATE, time.monotonic() - begun)
