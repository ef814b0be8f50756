"""`python -m tests.service.recorded_service`: `python -m service` whose event loop is recorded.

The variable RECORDED_LOOP names the file for the callbacks that take long (see loop_recorder.py).
"""

import os
import sys
from pathlib import Path

from service.program import main
from tests.service.loop_recorder import Recorder

if __name__ == "__main__":
    Recorder(Path(os.environ["RECORDED_LOOP"])).install()
    sys.exit(main(sys.argv[1:]))
