"""The wrapper of all verbs."""

from collections.abc import Sequence

import pytest

from mt.cli.command import command


@command
def print_to_closed_pipe(argv: Sequence[str]) -> int:
    raise BrokenPipeError


def test_a_closed_pipe_is_no_error(capfd: pytest.CaptureFixture[str]) -> None:
    assert print_to_closed_pipe([]) == 141
    assert capfd.readouterr().err == ""
