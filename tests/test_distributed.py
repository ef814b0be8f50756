"""Process groups, with functions of torch.distributed that only record their arguments."""

from typing import Any

import pytest
import torch.distributed as dist

from mt.distributed import BARRIER_TIMEOUT, UPDATE_TIMEOUT, join_process_group


def test_waiting_for_preparation_does_not_use_nccl(monkeypatch: pytest.MonkeyPatch) -> None:
    """NCCL would give up after 30 minutes, when rank 0 still prepares the data."""
    calls: list[tuple[Any, ...]] = []
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setattr(dist, "init_process_group", lambda backend, timeout: calls.append((backend, timeout)))
    monkeypatch.setattr(dist, "new_group", lambda timeout, backend=None: calls.append((backend, timeout)))
    monkeypatch.setattr(dist, "get_rank", lambda: 0)
    monkeypatch.setattr(dist, "get_world_size", lambda: 2)
    monkeypatch.setattr(dist, "destroy_process_group", lambda: None)
    with join_process_group("cuda") as world:
        assert world.size == 2
    assert calls == [("nccl", UPDATE_TIMEOUT), ("gloo", BARRIER_TIMEOUT)]
