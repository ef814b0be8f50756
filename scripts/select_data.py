"""Run `mt-service select-data` from a checkout."""

import sys

from mt.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["select-data", *sys.argv[1:]]))
