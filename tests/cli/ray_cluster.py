"""A Ray cluster on 127.0.0.1, as a user starts it, and its processes, to be killed."""

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from uuid import uuid4

from tests.service.conftest import ROOT, environment

MARK = "MT_TEST_CLUSTER"  # in the environment of every process of a cluster, so that nobody else's is killed
LOCAL = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # Ray's name for: stay on the loopback
    "RAY_USAGE_STATS_ENABLED": "0",
    "OMP_NUM_THREADS": "1",
}


def free_ports(count: int) -> list[int]:
    held = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return ports


@dataclass(frozen=True)
class Cluster:
    """One machine that says it has `cpus` cores."""

    address: str
    mark: str

    def processes(self, name: str) -> list[int]:
        """Ids of those whose title begins like this, such as `ray::ClusterWorker`."""
        found = []
        for path in Path("/proc").glob("[0-9]*"):
            try:
                if not (path / "cmdline").read_bytes().startswith(name.encode()):
                    continue
                if f"{MARK}={self.mark}".encode() in (path / "environ").read_bytes().split(b"\0"):
                    found.append(int(path.name))
            except OSError:  # it has ended
                continue
        return sorted(found)


@contextmanager
def cluster(cpus: int = 8) -> Iterator[Cluster]:
    gcs, client, agent = free_ports(3)
    mark = uuid4().hex
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:  # a short path
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--head", "--block", "--disable-usage-stats"]
        command += ["--node-ip-address=127.0.0.1", f"--port={gcs}", f"--num-cpus={cpus}", "--num-gpus=0"]
        command += ["--include-dashboard=false", f"--ray-client-server-port={client}", f"--temp-dir={folder}"]
        command += [f"--dashboard-agent-listen-port={agent}", f"--object-store-memory={200_000_000}"]
        env = environment(
            {MARK: mark, "PYTHONUNBUFFERED": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), **LOCAL}
        )
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, text=True)
        found = Cluster(f"127.0.0.1:{gcs}", mark)
        try:
            assert process.stdout is not None
            assert any("until terminated" in line for line in process.stdout)  # the last that it says
            Thread(target=process.stdout.read, daemon=True).start()
            yield found
        finally:
            process.terminate()
            process.wait()
            for pid in found.processes(""):  # what has survived its raylet
                os.kill(pid, signal.SIGKILL)
