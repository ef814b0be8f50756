"""`python -m tests.service.rigged_service`: the whole program, around engines that do what the variable RIGGED says.

RIGGED is the JSON of a tests.service.controlled.Rigged. Everything else is `python -m service`.
"""

import json
import os
import sys
from pathlib import Path

import service.program as program
from service.settings import Settings
from service.workers.messages import ModelSetup
from service.workers.pool import TransportFactory
from service.workers.worker import ProcessTransport
from tests.service.controlled import Rigged


def rigged(settings: Settings) -> TransportFactory:
    """Each worker in a process of its own, as always."""
    load = Rigged(**json.loads(os.environ["RIGGED"]))

    def new_transport(model: Path, device: str) -> ProcessTransport:
        return ProcessTransport(ModelSetup(model, device), load)

    return new_transport


if __name__ == "__main__":
    setattr(program, "process_transports", rigged)  # noqa: B010
    sys.exit(program.main(sys.argv[1:]))
