"""Run `mt-service prepare` from a checkout."""

import sys

from mt.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["prepare", *sys.argv[1:]]))
