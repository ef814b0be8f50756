"""Run `mt-service calibrate` from a checkout."""

import sys

from mt.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["calibrate", *sys.argv[1:]]))
