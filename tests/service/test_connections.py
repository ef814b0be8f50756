"""Numbers of connections and descriptors."""

import subprocess
import sys

import pytest

from service.connections import PER_CONNECTION


def limits(soft: int, hard: int, connections: int, raised: bool) -> tuple[int, int]:
    """Return the limit of connections and of descriptors in a process with these limits."""
    code = f"""
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, ({soft}, {hard}))
from service.connections import connection_limit, raise_descriptor_limit
if {raised}: raise_descriptor_limit({connections})
print(connection_limit({connections}), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    most, descriptors = map(int, done.stdout.split())
    return most, descriptors


@pytest.mark.parametrize(("soft", "connections"), [(64, 900), (256, 900), (1024, 900), (8192, 900)])
def test_each_connection_has_a_descriptor_for_a_file(soft: int, connections: int) -> None:
    most, descriptors = limits(soft, soft, connections, raised=False)
    assert 1 <= most <= connections
    assert PER_CONNECTION * most < descriptors


def test_the_limit_of_descriptors_is_raised_as_far_as_the_system_allows() -> None:
    assert limits(1024, 4096, 900, raised=True)[0] == 900
    assert limits(64, 64, 900, raised=True)[1] == 64
