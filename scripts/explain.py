"""Run `mt-service explain` from a checkout."""

import sys

from mt.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["explain", *sys.argv[1:]]))
