"""The longest callback of the event loop, whatever a client sends: requests at the limits of every route."""

import pytest

from scripts.attack.event_loop import ATTACKS, recorded
from scripts.attack.loop_recorder import findings

pytestmark = pytest.mark.attack
LONGEST_MILLISECONDS = 25.0  # on a slow processor; most of the attacks cause no callback of 5 ms


@pytest.mark.parametrize("name", ATTACKS)
def test_no_callback_of_the_event_loop_takes_long(name: str) -> None:
    with recorded() as (target, file):
        ATTACKS[name](target)
        assert target.request("GET", "/livez").status == 200
        assert [callback for callback in findings(file) if callback[0] > LONGEST_MILLISECONDS] == []
