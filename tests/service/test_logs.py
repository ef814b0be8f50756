"""Events of the log."""

import ast
import subprocess
import sys
from pathlib import Path

import service
from service.logs import LOG_EVENTS

LEVELS = ("debug", "info", "warning", "error")


def test_every_event_is_described_and_every_description_is_of_an_event() -> None:
    root = Path(service.__path__[0])
    calls = (node for path in root.rglob("*.py") for node in ast.walk(ast.parse(path.read_text("utf-8"))))
    events = {
        call.args[0].value
        for call in calls
        if isinstance(call, ast.Call)
        and (
            (isinstance(call.func, ast.Attribute) and call.func.attr in LEVELS)
            or getattr(call.func, "id", "") == "write"
        )
        and call.args
        and isinstance(call.args[0], ast.Constant)
    }
    assert events == set(LOG_EVENTS)


def test_a_closed_stderr_ends_no_request() -> None:
    program = (
        "import os, structlog; from service.logs import configure_logs; configure_logs(as_json=True); "
        "read, write = os.pipe(); os.close(read); os.dup2(write, 2); "
        "structlog.get_logger().info('request'); structlog.get_logger().warning('failed'); print('goes on')"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout == "goes on\n"
