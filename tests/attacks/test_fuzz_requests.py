"""A short run of the fuzzer of requests; `python -m tests.attacks.fuzz_requests` is the long one."""

import pytest

from tests.attacks.fuzz_requests import run

pytestmark = pytest.mark.attack


def test_no_request_hangs_or_breaks_the_service() -> None:
    assert run(count=400, seed=1, warmup=100) == []
