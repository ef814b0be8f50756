"""The engine knows its backends by a protocol of plain types."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("module", ["requests", "scheduler", "engine", "threads", "backends.protocol"])
def test_the_engine_does_not_import_torch(module: str) -> None:
    code = f"import sys, mt.engine.{module}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
