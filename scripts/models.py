"""Run `mt-service models` from a checkout."""

import sys

from mt.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["models", *sys.argv[1:]]))
