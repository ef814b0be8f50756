"""`python -m service`: runs service/program.py.

The imports of service/program.py take about a second, and the first process of a container ignores signals that have no
handler. This module therefore installs signal handlers first, and imports the program afterwards.
"""

import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module


def main(arguments: Sequence[str], program: str = "python -m service") -> int:
    """Run service/program.py and return its exit status.

    Until service/program.py installs its signal handlers, SIGTERM ends the process and SIGHUP is ignored.
    """
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # no request has been accepted
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # no model is loaded that could be replaced
    return int(import_module("service.program").main(arguments, program))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
