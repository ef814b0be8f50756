"""Serve models over HTTP. This command is the same as `python -m service`."""

import sys
from collections.abc import Sequence

from mt.cli.command import program_name
from service.__main__ import main as serve


def main(argv: Sequence[str] | None = None) -> int:
    return serve(sys.argv[1:] if argv is None else argv, program_name("serve"))
