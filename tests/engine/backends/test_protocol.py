"""The engine knows its backends by a protocol of plain types."""

import subprocess
import sys


def test_the_engine_does_not_import_torch() -> None:
    modules = ("requests", "scheduler", "engine", "threads", "backends.protocol")
    code = f"import sys, {', '.join(f'mt.engine.{name}' for name in modules)}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
