"""Many sentences in flight: submit; step = schedule, run, settle; drain."""

from collections.abc import Collection, Iterator

from mt.engine.batches import Batch, Decoder
from mt.engine.messages import Request, Result
from mt.engine.runner import Runner
from mt.engine.scheduler import Limits, Scheduler


class Engine:
    """Continuous batching over one decoder. Speaks ids; owned by one thread, which calls `step` while it is `busy`.

    A batch that raises is taken apart and its sentences run again one at a time, so that only the one to blame fails.
    """

    def __init__(self, decoder: Decoder[Batch], limits: Limits | None = None) -> None:
        self.scheduler = Scheduler(limits or Limits(), decoder.kind)
        self.runner = Runner(decoder)
        self.steps = 0  # decoder steps so far
        self.rows = 0  # decoder rows of all these steps

    @property
    def busy(self) -> bool:
        """Whether anything waits or runs."""
        return self.runner.count > 0 or len(self.scheduler) > 0

    @property
    def rows_at_a_time(self) -> int:
        """Decoder rows that can run together."""
        return self.scheduler.limits.rows

    @property
    def marks(self) -> tuple[int, ...]:
        """The steps of each thread, or -1 for one with nothing to do: who looks again and again sees one that hangs."""
        return (self.steps if self.busy else -1,)

    def submit(self, request: Request) -> None:
        """Queue a request; its result comes out of a later `step`."""
        self.scheduler.add(request)

    def cancel(self, request_ids: Collection[int]) -> None:
        """Forget requests, waiting or in flight: no result will come."""
        self.runner.drop({request_id for request_id in request_ids if not self.scheduler.remove(request_id)})

    def step(self) -> list[Result]:
        """Admit what may join, decode one token for every row, and return what finished."""
        runner = self.runner
        admitted = self.scheduler.admit(runner.kind, runner.rows)
        try:
            if admitted:
                runner.join(admitted)
            if not runner.count:
                return []
            self.steps += 1
            self.rows += runner.rows
            return runner.step()
        except Exception as error:  # whatever a model can raise: out of memory, a kernel's complaint
            involved = {request.id: request for request in (*runner.clear(), *admitted)}
            if len(involved) > 1:
                self.scheduler.isolate(involved.values())
                return []
            return [Result(request_id, (), f"{type(error).__name__}: {error}") for request_id in involved]

    def drain(self) -> Iterator[Result]:
        """Step until nothing is left."""
        while self.busy:
            yield from self.step()
