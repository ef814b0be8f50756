"""Dispatcher of text tasks: it passes the calls of tasks to an engine, and the results of the engine to the tasks."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from threading import RLock
from time import monotonic

from mt.engine.backends.protocol import Attend, device_failed
from mt.engine.requests import Request, Result
from mt.engine.threads import AnyEngine
from mt.engine.turns import TurnQueue
from mt.pipeline.driver import AttentionCall, DecodeCall, EngineAnswer
from mt.pipeline.results import Failure, Translation
from mt.pipeline.text_task import AnyRoutine, TextTask
from mt.scoring.attention import CrossAttention, Pair

TOKENS_PER_TEXT = 64  # most source tokens per text in a chunk of a stream, as a mean: limits the memory for long texts
# Maximum time in which one step passes results to tasks; others wait for the next step. Without the limit, a long text
# with many repairs would delay other callers, and its worker would appear to hang.
STEP_SECONDS = 0.002
# Results of a caller with many unfinished requests wait until there are so many of them: between two steps of the
# engine, the code of the tasks leaves the caches of the processor, so that a single result takes twice as long.
RESULTS_TOGETHER, MANY_REQUESTS = 16, 64
ATTENTION_TOKENS = 120  # most source and target tokens in an attention pass of several pairs: longer ones delay others


class ResultDispatcher:
    """Dispatcher that runs text tasks on one engine.

    The callers take turns in decoding, in receiving results, and in attention passes. Methods can be called from
    several threads; a lock lets one method run at a time.
    """

    def __init__(self, engine: AnyEngine, attend: Attend) -> None:
        self.engine = engine
        self.step_seconds, self.attention_tokens = STEP_SECONDS, ATTENTION_TOKENS
        self._cross_attention = attend
        self._lock = RLock()
        self._waiting: dict[int, tuple[TextTask, AnyRoutine]] = {}  # by the id of the request that the routine awaits
        self._unfinished = Counter[int]()  # number of requests in `_waiting`, by caller
        self._results: TurnQueue[int, Result] = TurnQueue()  # results that were not yet passed to a task
        self._is_due = False  # whether they are to be passed on now
        self._attending: TurnQueue[TextTask, deque[AnyRoutine]] = TurnQueue()  # routines that wait for attention

    @property
    def busy(self) -> bool:
        return self.engine.busy or bool(self._results or self._attending)

    def submit(self, tasks: Iterable[TextTask]) -> None:
        """Queue the sentences of new tasks, the longest first, so that similar lengths are decoded together."""
        with self._lock:
            requests = [request for task in tasks for request in self._take_calls(task)]
            for request in sorted(requests, key=lambda request: -len(request.source)):
                self.engine.submit(request)

    def cancel(self, tasks: Iterable[TextTask]) -> None:
        """Cancel tasks: drop their waiting and running requests. A cancelled task gets no translation."""
        with self._lock:
            ids = []
            for task in tasks:
                self._attending.remove(task)
                ids += [request.id for request in task.requests if self._forget(request.id)]
            for id in ids:
                self._results.remove(id)
            if ids:
                self.engine.cancel(ids)

    def step(self) -> list[TextTask]:
        """Run one step of the engine, and pass results to tasks. Return the tasks that are done in this step.

        A task is also done if it has a problem.
        """
        with self._lock:
            done: list[TextTask] = []
            for result in self.engine.step() if self.engine.busy else ():
                if waiting := self._waiting.get(result.id):
                    caller = waiting[0].planner.context.caller
                    self._results.put(caller, result.id, result)
                    self._is_due |= self._unfinished[caller] < MANY_REQUESTS
            if not self._results:
                self._is_due = False
            elif not self._is_due:
                self._is_due = len(self._results) >= RESULTS_TOGETHER or not self.engine.busy
            stop = monotonic() + self.step_seconds
            while self._is_due:
                id, result = self._results.pop()
                task, routine = self._forget(id) or (None, None)
                if task and routine and (results := routine.add_result(result)):
                    done += self._resume(task, routine, results)
                self._is_due = bool(self._results)
                if monotonic() >= stop:
                    break
            return done + self._attend() if self._attending else done

    def finish(self, task: TextTask) -> None:
        """Call `step` until a submitted task is done."""
        with self._lock:
            while not task.done:
                assert self.busy
                self.step()

    def run(self, tasks: list[TextTask]) -> None:
        """Submit tasks and step until all are done. If an exception is raised, all tasks are cancelled."""
        try:
            self.submit(tasks)
            for task in tasks:
                self.finish(task)
        finally:
            self.cancel(tasks)

    def stream(self, tasks: Iterator[TextTask], ahead: int) -> Iterator[Translation | Failure]:
        """Yield the outcome of each task in order. At most two chunks of `ahead` tasks are in memory.

        The second chunk is submitted before the first chunk is finished, so that the engine stays busy.
        """
        held: deque[TextTask] = deque()
        chunks: deque[int] = deque()  # number of held tasks of each chunk
        try:
            while True:
                while len(chunks) < 2 and (chunk := _chunk(tasks, ahead)):
                    held.extend(chunk)
                    chunks.append(len(chunk))
                    self.submit(chunk)
                if not chunks:
                    return
                for _ in range(chunks[0]):
                    self.finish(held[0])
                    yield held.popleft().outcome()
                chunks.popleft()
        finally:
            self.cancel(held)

    def _forget(self, id: int) -> tuple[TextTask, AnyRoutine] | None:
        """Return the task and the routine that await a request, which they no longer do; None if there are none."""
        if waiting := self._waiting.pop(id, None):
            caller = waiting[0].planner.context.caller
            self._unfinished[caller] -= 1
            if not self._unfinished[caller]:
                del self._unfinished[caller]
        return waiting

    def _take_calls(self, task: TextTask) -> list[Request]:
        """Register the new engine calls of a task. Return the decoding requests of these calls.

        The caller must submit the requests.
        """
        requests: list[Request] = []
        for routine in task.take_calls():
            if isinstance(routine.call, DecodeCall):
                requests += routine.call.requests
                self._waiting.update((request.id, (task, routine)) for request in routine.call.requests)
                self._unfinished[task.planner.context.caller] += len(routine.call.requests)
            else:
                routines = self._attending.remove(task) or deque()
                self._attending.put(task.planner.context.caller, task, routines)
                routines.append(routine)
        return requests

    def _resume(self, task: TextTask, routine: AnyRoutine, answer: EngineAnswer) -> list[TextTask]:
        """Resume a routine with the answer to its call, and submit the next call of the routine.

        Return a list with the task if the task is done, otherwise an empty list.
        """
        task.resume(routine, answer)
        if task.problem:
            self.cancel([task])
        else:
            for request in self._take_calls(task):
                self.engine.submit(request)
        return [task] if task.done else []

    def _attend(self) -> list[TextTask]:
        """Answer attention calls with at most `attention_tokens` tokens in total, or one longer call, in one pass.

        Return the tasks that are done.
        """
        chosen: list[tuple[TextTask, AnyRoutine]] = []
        pairs: list[Pair] = []
        tokens = 0
        while self._attending:
            task, routines = self._attending.pop()
            call, caller = routines[0].call, task.planner.context.caller
            assert isinstance(call, AttentionCall)
            source, target = call.pair
            tokens += len(source) + len(target)
            if pairs and tokens > self.attention_tokens:
                self._attending.put_back(caller, task, routines)
                break
            chosen.append((task, routines.popleft()))
            pairs.append(call.pair)
            if routines:
                self._attending.put(caller, task, routines)
        done = []
        for (task, routine), answer in zip(chosen, self._answers(pairs), strict=True):
            if not task.problem:
                done += self._resume(task, routine, answer)
        return done

    def _answers(self, pairs: Sequence[Pair]) -> list[CrossAttention | Exception]:
        """Return the cross-attention of each pair, or the exception that its pass raised.

        All pairs share one pass; if it fails, each gets its own. If the device has failed, the exception is raised.
        """
        try:
            return [CrossAttention(weights) for weights in self._cross_attention(pairs)]
        except Exception as error:  # any exception of the model concerns only one pair
            if device_failed(error):
                raise
            return [error] if len(pairs) == 1 else [answer for pair in pairs for answer in self._answers([pair])]


def _chunk(tasks: Iterator[TextTask], ahead: int) -> list[TextTask]:
    """Return the next `ahead` tasks, or fewer if their sources together reach TOKENS_PER_TEXT * `ahead` tokens."""
    chunk, tokens = [], 0
    for task in tasks:
        chunk.append(task)
        tokens += sum(len(request.source) for request in task.requests)
        if len(chunk) >= ahead or tokens >= TOKENS_PER_TEXT * ahead:
            break
    return chunk
