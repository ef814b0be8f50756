"""Run `mt-service distil` from a checkout."""

import sys

from mt.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["distil", *sys.argv[1:]]))
