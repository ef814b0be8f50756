"""Callers take turns in a queue."""

from mt.engine.turns import TurnQueue


def test_callers_take_turns_and_keep_their_order() -> None:
    queue: TurnQueue[int, str] = TurnQueue()
    for key, (caller, value) in enumerate(
        [("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1"), ("c", "c1"), ("b", "b2")]
    ):
        queue.put(caller, key, value)
    assert queue.pop() == (0, "a1")
    assert 4 in queue and 0 not in queue
    assert queue.remove(4) == "c1" and queue.remove(4) is None
    queue.put("d", 9, "d1")
    assert [queue.pop()[1] for _ in range(len(queue))] == ["b1", "a2", "d1", "b2", "a3"]
    assert not queue
