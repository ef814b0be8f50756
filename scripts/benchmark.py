"""Run `mt-service benchmark` from a checkout."""

import sys

from mt.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["benchmark", *sys.argv[1:]]))
