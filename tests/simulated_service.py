"""`python -m tests.simulated_service`: the service, whose workers decode on the simulated device."""

import sys
from pathlib import Path

import service.program as program
from service.settings import Settings
from service.workers.messages import ModelSetup
from service.workers.pool import TransportFactory
from service.workers.transport import ProcessTransport
from tests.simulated_gpu import load


def transports(settings: Settings) -> TransportFactory:
    """Return the factory of worker processes with `load` in the place of the usual function."""

    def new_transport(model: Path, device: str) -> ProcessTransport:
        setup = ModelSetup(model, device, settings.dtype, settings.threads, settings.shortlist, settings.backend)
        return ProcessTransport(setup, load)

    return new_transport


if __name__ == "__main__":
    setattr(program, "process_transports", transports)  # noqa: B010
    sys.exit(program.main(sys.argv[1:]))
