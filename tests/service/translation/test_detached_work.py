"""Work whose client has left."""

import asyncio

import pytest
from starlette.requests import ClientDisconnect

from service.translation.detached_work import DetachedWork


@pytest.mark.parametrize(("patience", "ended"), [(0.0, ["done"]), (9.0, ["cancelled"])])
def test_only_the_work_of_a_client_that_has_waited_long_goes_on(patience: float, ended: list[str]) -> None:
    outcome: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(0.05)
            outcome.append("done")
        except asyncio.CancelledError:
            outcome.append("cancelled")

    async def leave() -> None:
        detached = DetachedWork(patience)
        with pytest.raises(ClientDisconnect), detached.working(work()):  # noqa: PT012
            await asyncio.sleep(0.01)
            raise ClientDisconnect
        await asyncio.sleep(0.1)

    asyncio.run(leave())
    assert outcome == ended
