"""Run `mt-service export` from a checkout."""

import sys

from mt.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["export", *sys.argv[1:]]))
