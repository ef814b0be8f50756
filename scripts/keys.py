"""Run `mt-service keys` from a checkout."""

import sys

from mt.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["keys", *sys.argv[1:]]))
