"""Routines: coroutines that await calls of the engine."""

from mt.engine.requests import Result
from mt.pipeline.driver import DecodeCall, Routine


async def nothing() -> list[Result]:
    return await DecodeCall([])


def test_a_call_for_nothing_is_answered_at_once() -> None:
    """Nobody else would answer: no result of the engine would arrive."""
    routine = Routine(nothing())
    assert routine.done and routine.value == []
