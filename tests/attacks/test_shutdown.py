"""SIGTERM ends the service within its grace period, whatever is in progress (NEWCOMER 1; ATTACKS 5)."""

import random
import signal
import time

import pytest

from tests.attacks.target import running

pytestmark = pytest.mark.attack
DELAYS = random.Random(1).sample([number / 50 for number in range(100)], 6)  # seconds; scripts/test.sh --all has 100


@pytest.mark.parametrize("delay", DELAYS)
def test_sigterm_after_sighup(delay: float) -> None:
    with running() as target:
        target.process.send_signal(signal.SIGHUP)
        time.sleep(delay)
        assert target.stop(30) == 0


@pytest.mark.parametrize("delay", [0.0, 0.2, 0.5, 1.0, 2.0])
def test_sigterm_during_start(delay: float) -> None:
    with running(ready=False) as target:
        time.sleep(delay)
        assert target.stop(30) == 0
