"""Messages between the service and its workers."""

from dataclasses import FrozenInstanceError, fields, is_dataclass

import pytest

from service.workers import messages

KINDS = [kind for kind in vars(messages).values() if is_dataclass(kind) and kind.__module__ == messages.__name__]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_message_cannot_be_changed_after_it_was_sent(kind: type) -> None:
    name = next((each.name for each in fields(kind)), "field")
    with pytest.raises(FrozenInstanceError):
        setattr(object.__new__(kind), name, None)
