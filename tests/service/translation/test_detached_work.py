"""Work whose client has left."""

import asyncio

import pytest
from starlette.requests import ClientDisconnect

from service.translation.detached_work import MAX_DETACHED, DetachedWork


@pytest.mark.parametrize(("patience", "ended"), [(0.0, ["done"]), (9.0, ["cancelled"])])
async def test_only_the_work_of_a_client_that_has_waited_long_goes_on(patience: float, ended: list[str]) -> None:
    outcome: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(0.05)
            outcome.append("done")
        except asyncio.CancelledError:
            outcome.append("cancelled")

    detached = DetachedWork(patience)
    with pytest.raises(ClientDisconnect), detached.working(work()):  # noqa: PT012
        await asyncio.sleep(0.01)
        raise ClientDisconnect
    await asyncio.sleep(0.1)
    assert outcome == ended


async def test_the_work_of_a_limited_number_of_clients_goes_on() -> None:
    done: list[int] = []

    async def work(number: int) -> None:
        await asyncio.sleep(0.01)
        done.append(number)

    detached = DetachedWork(0.0)
    for number in range(MAX_DETACHED + 1):
        with pytest.raises(ClientDisconnect), detached.working(work(number)):
            raise ClientDisconnect
    await asyncio.sleep(0.2)
    assert done == list(range(MAX_DETACHED))
