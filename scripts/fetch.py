"""Run `mt-service fetch` from a checkout."""

import sys

from mt.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["fetch", *sys.argv[1:]]))
