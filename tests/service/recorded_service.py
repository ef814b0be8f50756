"""`python -m tests.service.recorded_service`: `python -m service` whose event loop is recorded.

The variable RECORDED_LOOP names the file for the callbacks that take long (see loop_recorder.py).
"""

import asyncio
import os
import sys
from pathlib import Path

import uvloop

from scripts.attack.loop_recorder import Recorder
from service.__main__ import main

if __name__ == "__main__":
    setattr(uvloop, "new_event_loop", asyncio.new_event_loop)  # noqa: B010 - callbacks of uvloop cannot be recorded
    Recorder(Path(os.environ["RECORDED_LOOP"])).install()
    sys.exit(main(sys.argv[1:]))
