"""A worker in a thread of this process: cheap to start, and without protection from what a model can do."""

import asyncio
from collections.abc import Sequence
from queue import SimpleQueue
from threading import Thread

from service.errors import error_location
from service.workers.messages import Close, Deliver, FromWorker, ModelSetup, ToWorker, WorkerStopped
from service.workers.worker import ProcessTransport
from service.workers.worker_loop import Load, load, work


class ThreadTransport(ProcessTransport):
    """Behaves as a process does, but cannot be killed: a thread that hangs is left to itself."""

    def __init__(self, setup: ModelSetup, load: Load = load) -> None:
        super().__init__(setup)
        self._setup = setup
        self._load = load
        self._inbox: SimpleQueue[Sequence[ToWorker]] = SimpleQueue()
        self._deliver: Deliver
        self._ended = False

    def start(self, deliver: Deliver) -> None:
        self._deliver = deliver
        loop = asyncio.get_running_loop()
        Thread(target=self._run, args=(loop,), name="worker", daemon=True).start()

    def send(self, messages: Sequence[ToWorker]) -> None:
        self._inbox.put(messages)

    def kill(self) -> None:
        self._inbox.put([Close()])
        asyncio.get_running_loop().call_soon(self._hand_on, [WorkerStopped("given up")])

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        problem = ""

        def deliver(messages: Sequence[FromWorker]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._hand_on, messages)

        try:
            work(self._setup, self._load, self._receive, deliver)
        except BaseException as error:  # the thread ends, and those who wait must hear of it
            problem = error_location(error)
        deliver([WorkerStopped(problem)])

    def _hand_on(self, messages: Sequence[FromWorker]) -> None:
        if not self._ended:
            self._ended = any(isinstance(message, WorkerStopped) for message in messages)
            self._deliver(messages)

    def _receive(self, wait: bool) -> list[ToWorker]:
        messages: list[ToWorker] = []
        while wait or not self._inbox.empty():
            messages += self._inbox.get()
            wait = False
        return messages
