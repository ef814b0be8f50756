"""Run `mt-service import` from a checkout."""

import sys

from mt.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["import", *sys.argv[1:]]))
