"""Run `mt-service memory` from a checkout."""

import sys

from mt.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["memory", *sys.argv[1:]]))
