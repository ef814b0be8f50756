"""`python -m service.probe`, as a container's HEALTHCHECK runs it."""

import subprocess
import sys

from tests.service.application import Application
from tests.service.conftest import ROOT, environment


def probe(port: int, host: str = "127.0.0.1") -> subprocess.CompletedProcess[str]:
    settings = environment({"MT_PORT": str(port), "MT_HOST": host})
    return subprocess.run(
        [sys.executable, "-m", "service.probe"], cwd=ROOT, env=settings, capture_output=True, text=True
    )


def test_the_probe_of_a_container() -> None:
    application = Application()
    for host in ("0.0.0.0", "127.0.0.1"):
        done = probe(application.port, host)
        assert (done.returncode, done.stderr) == (0, "")
    application.models.ready = False
    assert probe(application.port).returncode == 1
    application.stop()
    done = probe(application.port)
    assert done.returncode == 1 and done.stderr.startswith("not ready: ") and "Traceback" not in done.stderr
