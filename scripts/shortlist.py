"""Run `mt-service shortlist` from a checkout."""

import sys

from mt.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["shortlist", *sys.argv[1:]]))
