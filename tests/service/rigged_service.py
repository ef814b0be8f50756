"""`python -m tests.service.rigged_service`: the whole program, around engines that do what the variable RIGGED says.

RIGGED is the JSON of a tests.service.controlled.Rigged. Everything else is `python -m service`.
"""

import json
import os
import sys

import service.program as program
from service.settings import Settings
from service.workers.fleet import Fleet
from service.workers.messages import ModelSetup
from service.workers.worker import ProcessTransport
from tests.service.controlled import Rigged


def rigged(settings: Settings) -> Fleet:
    load = Rigged(**json.loads(os.environ["RIGGED"]))
    return Fleet(settings, lambda setup: ProcessTransport(ModelSetup(setup.model, setup.device), load))


if __name__ == "__main__":
    setattr(program, "Fleet", rigged)  # noqa: B010
    sys.exit(program.main(sys.argv[1:]))
