"""Print sentences per second, in total and per second of CPU time: `python speed.py MODEL FILE`, for image.sh."""

import sys
import time
from pathlib import Path

from mt import Translator


def main(model: Path, text: Path) -> int:
    translator = Translator.load(model, device="auto")
    lines = text.read_text(encoding="utf-8").splitlines()
    list(translator.translate(lines[:50]))
    begun, worked = time.perf_counter(), time.process_time()
    list(translator.translate(lines))
    wall, processor = time.perf_counter() - begun, time.process_time() - worked
    print(f"{len(lines) / wall:.1f} ({len(lines) / processor:.1f})")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
