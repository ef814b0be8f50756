"""Run `mt-service shrink` from a checkout."""

import sys

from mt.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["shrink", *sys.argv[1:]]))
