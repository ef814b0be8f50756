"""A database for a test."""

from collections.abc import Iterator

import pytest

from service.access.database import Database


@pytest.fixture
def store() -> Iterator[Database]:
    with Database.open(None) as opened:
        yield opened
