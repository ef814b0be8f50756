"""Run `mt-service translate` from a checkout."""

import sys

from mt.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["translate", *sys.argv[1:]]))
